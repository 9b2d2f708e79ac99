"""deploy/kuberay: valid objects that fit each other, the configuration and the commands."""

import re
import shlex

from absl.testing import absltest, parameterized

from laser_tf.api import config_files
from laser_tf.training import run_config
from testing import commands
from testing.deploy import kubernetes_objects as objects

_ROOT = objects.FOLDER.parents[1]
_SAVE_BYTES_PER_SECOND = 40e6  # Measured for Reverb.
_STOP_SECONDS = 180  # Of a role, see `laser_tf.cluster`.


def _job():
    return objects.named("RayJob", "laser-pong")["spec"]


def _server():
    return objects.named("StatefulSet", "laser-replay")["spec"]


def _config(arguments):
    """The configuration that a command line gives."""
    config = config_files.load(_flag(arguments, "config"))
    for argument in arguments:
        if argument.startswith("--config."):
            key, _, text = argument.removeprefix("--config.").partition("=")
            section, name = key.split(".")
            config[section][name] = type(config[section][name])(text)
    return run_config.parse(config.to_dict())


def _flag(arguments, name):
    (value,) = (a.partition("=")[2] for a in arguments if a.startswith(f"--{name}="))
    return value


def _bytes(text):
    number, unit = re.fullmatch(r"(\d+)(Mi|Gi)", text).groups()
    return int(number) * 2 ** {"Mi": 20, "Gi": 30}[unit]


class SchemaTest(absltest.TestCase):
    def test_objects_are_valid(self):
        for found in objects.read():
            objects.check(found)


class CommandsTest(absltest.TestCase):
    def test_commands_know_their_flags(self):
        (server,) = _server()["template"]["spec"]["containers"]
        for words in (shlex.split(_job()["entrypoint"]), [*server["command"], *server["args"]]):
            name, *arguments = words
            module = name.removeprefix("laser-").replace("-", "_")
            code, _, errors = commands.run_forked(module, *arguments, "--help")
            self.assertEqual(code, 0, errors)


class JobTest(absltest.TestCase):
    def setUp(self):
        super().setUp()
        self._arguments = shlex.split(_job()["entrypoint"])[1:]
        self._cluster = _job()["rayClusterSpec"]
        self._groups = {group["groupName"]: group for group in self._cluster["workerGroupSpecs"]}

    def _amount(self, group, kind):
        limits = objects.part(self._groups[group], "template spec containers 0 resources limits")
        return float(limits.get(kind, 0))

    def test_roles_fit_the_pods(self):
        cluster = _config(self._arguments).cluster
        self.assertEqual(cluster.address, "auto")
        self.assertGreaterEqual(self._amount("learner", "nvidia.com/gpu"), cluster.learner_gpus)
        self.assertGreaterEqual(self._amount("learner", "cpu"), cluster.learner_cpus)
        self.assertGreaterEqual(self._groups["learner"]["maxReplicas"], cluster.learners)
        requested = cluster.actors * cluster.actor_cpus
        requested += cluster.evaluator_cpus + cluster.replay_cpus
        actors = self._groups["actors"]
        self.assertGreaterEqual(self._amount("actors", "cpu") * actors["maxReplicas"], requested)

    def test_run_waits_for_pods_of_the_autoscaler(self):
        self.assertTrue(self._cluster["enableInTreeAutoscaling"])
        actors = self._groups["actors"]
        self.assertLess(actors["minReplicas"], actors["maxReplicas"])
        self.assertGreater(_config(self._arguments).cluster.wait_minutes, 0)

    def test_all_nodes_write_runs_to_one_volume(self):
        claim = objects.named("PersistentVolumeClaim", "laser-runs")
        self.assertEqual(claim["spec"]["accessModes"], ["ReadWriteMany"])
        _, *pods = objects.templates(objects.named("RayJob", "laser-pong"))
        for pod in pods:
            (volume,) = pod["spec"]["volumes"]
            self.assertEqual(volume["persistentVolumeClaim"]["claimName"], "laser-runs")
            (mount,) = pod["spec"]["containers"][0]["volumeMounts"]
            self.assertEqual(mount["name"], volume["name"])
            self.assertStartsWith(_flag(self._arguments, "workdir"), mount["mountPath"] + "/")

    def test_ray_has_the_version_of_the_lock_and_a_token(self):
        lock = (_ROOT / "requirements.lock").read_text()
        self.assertIn(f"\nray=={self._cluster['rayVersion']}\n", lock)
        self.assertEqual(self._cluster["authOptions"]["mode"], "token")

    def test_run_has_time_to_be_saved(self):
        head = objects.part(self._cluster, "headGroupSpec template spec")
        learner = objects.part(self._groups["learner"], "template spec")
        (variable,) = head["containers"][0]["env"]
        self.assertEqual(variable["name"], "RAY_JOB_STOP_WAIT_TIME_S")
        seconds = int(variable["value"])
        # Actors, learner and replay end one after the other.
        self.assertGreaterEqual(seconds, 3 * _STOP_SECONDS)
        for spec in (head, learner):
            self.assertGreaterEqual(spec["terminationGracePeriodSeconds"], seconds + 30)
            self.assertIn(_job()["jobId"], str(spec["containers"][0]["lifecycle"]["preStop"]))


class ReplayServerTest(absltest.TestCase):
    def setUp(self):
        super().setUp()
        self._pod = _server()["template"]["spec"]
        (self._container,) = self._pod["containers"]
        self._arguments = self._container["args"]
        self._service = objects.named("Service", "laser-replay")["spec"]

    def test_job_uses_the_server(self):
        self.assertEqual(self._service["clusterIP"], "None")  # Gives pods their names.
        self.assertEqual(_server()["serviceName"], "laser-replay")
        job = _config(shlex.split(_job()["entrypoint"]))
        (served,) = self._service["ports"]
        self.assertEqual(job.replay.address, f"laser-replay-0.laser-replay:{served['port']}")
        server = _config(self._arguments)
        self.assertEqual(server.environment, job.environment)
        for name in ("unroll_length", "capacity", "queue_capacity", "replay_table"):
            self.assertEqual(getattr(server.replay, name), getattr(job.replay, name))

    def test_ports_and_labels_agree(self):
        port = int(_flag(self._arguments, "port"))
        (declared,) = self._container["ports"]
        (served,) = self._service["ports"]
        self.assertEqual((declared["containerPort"], served["port"]), (port, port))
        for name in (served["targetPort"], self._container["startupProbe"]["tcpSocket"]["port"]):
            self.assertEqual(name, declared["name"])
        labels = _server()["template"]["metadata"]["labels"]
        self.assertEqual(self._service["selector"], labels)
        self.assertEqual(_server()["selector"]["matchLabels"], labels)

    def test_checkpoints_have_space_and_time(self):
        limit = 1e9 * float(_flag(self._arguments, "memory_limit_gb"))
        (claim,) = _server()["volumeClaimTemplates"]
        self.assertGreater(_bytes(claim["spec"]["resources"]["requests"]["storage"]), 3 * limit)
        self.assertGreater(_bytes(self._container["resources"]["limits"]["memory"]), 1.2 * limit)
        seconds = limit / _SAVE_BYTES_PER_SECOND
        self.assertGreater(self._pod["terminationGracePeriodSeconds"], seconds)
        probe = self._container["startupProbe"]
        self.assertGreater(probe["periodSeconds"] * probe["failureThreshold"], seconds)
        (mount,) = (m for m in self._container["volumeMounts"] if m["name"] == "replay")
        # Within the volume, since checkpoints are renamed.
        self.assertStartsWith(_flag(self._arguments, "checkpoint_folder"), mount["mountPath"] + "/")


class NetworkPolicyTest(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        self._policies = [found for found in objects.read() if found["kind"] == "NetworkPolicy"]
        labels = [pod["metadata"]["labels"] for pod in objects.pods()]
        self._labels = {label["app.kubernetes.io/component"]: label for label in labels}

    def test_every_pod_of_the_fleet_is_closed_to_others(self):
        self.assertEqual(set(self._labels), {"head", "worker", "submitter", "replay"})
        for labels in self._labels.values():
            for port in (5000, 6379, 8080, 8265, 10001, 10002, 52365):
                for stranger in (("fleet", {"app": "x"}), ("default", labels)):
                    self.assertFalse(objects.is_allowed(self._policies, stranger, labels, port))

    @parameterized.parameters(
        ("fleet", "worker", "replay", 5000, True),
        ("fleet", "head", "replay", 5000, True),
        ("fleet", "submitter", "replay", 5000, False),
        ("fleet", "worker", "replay", 5001, False),
        ("fleet", "replay", "worker", 6379, False),
        ("fleet", "worker", "head", 6379, True),
        ("fleet", "head", "worker", 10_002, True),
        ("fleet", "submitter", "head", 8265, True),
        ("fleet", "submitter", "head", 6379, False),
        ("fleet", "submitter", "worker", 8265, False),
        ("fleet", "head", "submitter", 8265, False),
        ("kuberay-system", "kuberay-operator", "head", 8265, True),
        ("kuberay-system", "kuberay-operator", "head", 6379, False),
        ("kuberay-system", "other", "head", 8265, False),
        ("default", "kuberay-operator", "head", 8265, False),
        ("monitoring", "prometheus", "head", 8080, True),
        ("monitoring", "prometheus", "head", 8265, False),
    )
    def test_only_known_pods_may_connect(self, namespace, source, target, port, expected):
        labels = self._labels.get(source, {"app.kubernetes.io/name": source})
        allowed = objects.is_allowed(
            self._policies, (namespace, labels), self._labels[target], port
        )
        self.assertEqual(allowed, expected)


class SecurityTest(absltest.TestCase):
    def test_no_pod_can_become_root(self):
        specs = [pod["spec"] for pod in objects.pods()]
        self.assertLen(specs, 5)
        for spec in specs:
            self.assertTrue(spec["securityContext"]["runAsNonRoot"])
            self.assertEqual(spec["securityContext"]["seccompProfile"]["type"], "RuntimeDefault")
            for container in spec["containers"]:
                context = container["securityContext"]
                self.assertFalse(context["allowPrivilegeEscalation"])
                self.assertEqual(context["capabilities"]["drop"], ["ALL"])
                self.assertIn("memory", container["resources"]["limits"])

    def test_only_the_head_has_credentials_of_kubernetes(self):
        components = [  # The autoscaler of the head uses them.
            pod["metadata"]["labels"]["app.kubernetes.io/component"]
            for pod in objects.pods()
            if pod["spec"].get("automountServiceAccountToken", True)
        ]
        self.assertEqual(components, ["head"])


if __name__ == "__main__":
    absltest.main()
