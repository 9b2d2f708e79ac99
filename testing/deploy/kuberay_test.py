"""deploy/kuberay: objects that Kubernetes and KubeRay take, and that fit each other."""

import copy
import re
import shlex

import jsonschema
from absl.testing import absltest, parameterized

from laser_tf.training import run_config
from launch import found_config
from testing import commands
from testing.deploy import kubernetes_objects as objects

_LOCK = objects.FOLDER.parents[1] / "requirements.lock"
_SAVE_BYTES_PER_SECOND = 40e6  # Reverb's, measured
_CPUS, _GPUS = "cpu", "nvidia.com/gpu"


def _job():
    return objects.named("RayJob", "laser-pong")["spec"]


def _server():
    return objects.named("StatefulSet", "laser-replay")["spec"]


def _config(arguments):
    """The configuration that a command line gives."""
    config = found_config.load(_flag(arguments, "config"))
    for argument in arguments:
        if argument.startswith("--config."):
            key, _, text = argument.removeprefix("--config.").partition("=")
            section, name = key.split(".")
            config[section][name] = type(config[section][name])(text)
    return run_config.parse(config.to_dict())


def _flag(arguments, name):
    (value,) = (a.partition("=")[2] for a in arguments if a.startswith(f"--{name}="))
    return value


def _mebibytes(text):
    number, unit = re.fullmatch(r"(\d+)(Mi|Gi)", text).groups()
    return int(number) * (1024 if unit == "Gi" else 1)


class SchemaTest(parameterized.TestCase):
    @parameterized.parameters(*range(len(objects.read())))
    def test_an_object_is_taken(self, index):
        objects.check(objects.read()[index])

    @parameterized.parameters(
        ("RayJob", "laser-pong", "spec", "entryPoint", "x"),
        ("RayJob", "laser-pong", "spec rayClusterSpec authOptions", "mode", "tokens"),
        ("RayJob", "laser-pong", "spec rayClusterSpec workerGroupSpecs 0", "maxReplica", 1),
        ("RayJob", "laser-pong", "spec rayClusterSpec headGroupSpec template spec", "volume", []),
        ("RayJob", "laser-pong", "spec rayClusterSpec autoscalerOptions resources", "limit", {}),
        ("StatefulSet", "laser-replay", "spec template spec containers 0", "arg", []),
        ("StatefulSet", "laser-replay", "spec", "replicas", "one"),
        ("NetworkPolicy", "laser-ray", "spec ingress 0 from 0", "podSelektor", {}),
        ("Service", "laser-replay", "spec", "port", 1),
        ("PersistentVolumeClaim", "laser-runs", "spec resources", "request", {}),
    )
    def test_what_is_misspelt_is_refused(self, kind, name, path, key, value):
        found = copy.deepcopy(objects.named(kind, name))
        part = found
        for step in path.split():
            part = part[int(step) if step.isdigit() else step]
        part[key] = value
        with self.assertRaises(jsonschema.ValidationError):
            objects.check(found)


class JobTest(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        self._command, *self._arguments = shlex.split(_job()["entrypoint"])
        self._groups = {g["groupName"]: g for g in _job()["rayClusterSpec"]["workerGroupSpecs"]}

    def _amount(self, group, kind):
        (container,) = self._groups[group]["template"]["spec"]["containers"]
        return float(container["resources"]["limits"].get(kind, 0))

    def test_the_command_knows_its_flags(self):
        self.assertEqual(self._command, "laser-train")
        code, _, errors = commands.run("train", *self._arguments, "--help")
        self.assertEqual(code, 0, errors)
        code, _, errors = commands.run(
            "train", *self._arguments, "--config.cluster.actor=1", "--help"
        )
        self.assertEqual(code, 2, errors)

    def test_the_configuration_is_taken_and_its_roles_fit_the_pods(self):
        config = _config(self._arguments)
        cluster = config.cluster
        self.assertEqual(cluster.address, "auto")
        self.assertGreaterEqual(self._amount("learner", _GPUS), cluster.learner_gpus)
        self.assertGreaterEqual(self._amount("learner", _CPUS), cluster.learner_cpus)
        self.assertGreaterEqual(self._groups["learner"]["maxReplicas"], cluster.learners)
        asked = cluster.actors * cluster.actor_cpus + cluster.evaluator_cpus + cluster.replay_cpus
        self.assertGreaterEqual(
            self._amount("actors", _CPUS) * self._groups["actors"]["maxReplicas"], asked
        )

    def test_the_autoscaler_adds_pods_and_the_run_waits_for_them(self):
        self.assertTrue(_job()["rayClusterSpec"]["enableInTreeAutoscaling"])
        actors = self._groups["actors"]
        self.assertLess(actors["minReplicas"], actors["maxReplicas"])
        self.assertGreater(_config(self._arguments).cluster.wait_minutes, 0)

    def test_runs_lie_on_a_volume_that_all_nodes_write_to(self):
        claim = objects.named("PersistentVolumeClaim", "laser-runs")
        self.assertEqual(claim["spec"]["accessModes"], ["ReadWriteMany"])
        workdir = _flag(self._arguments, "workdir")
        _, *pods = objects.templates(objects.named("RayJob", "laser-pong"))
        for pod in pods:
            (volume,) = pod["spec"]["volumes"]
            self.assertEqual(volume["persistentVolumeClaim"]["claimName"], "laser-runs")
            (mount,) = pod["spec"]["containers"][0]["volumeMounts"]
            self.assertEqual(mount["name"], volume["name"])
            self.assertStartsWith(workdir, mount["mountPath"] + "/")

    def test_ray_is_the_version_of_the_lock_and_asks_for_a_token(self):
        cluster = _job()["rayClusterSpec"]
        self.assertIn(f"\nray=={cluster['rayVersion']}\n", _LOCK.read_text())
        self.assertEqual(cluster["authOptions"]["mode"], "token")

    def test_a_run_has_the_time_to_be_saved(self):
        head, learner = (
            group["template"]["spec"]
            for group in (_job()["rayClusterSpec"]["headGroupSpec"], self._groups["learner"])
        )
        (variable,) = head["containers"][0]["env"]
        self.assertEqual(variable["name"], "RAY_JOB_STOP_WAIT_TIME_S")
        seconds = int(variable["value"])
        # Actors, the learner and replay are ended one after the other.
        (of_a_role,) = re.findall(
            r"^    stop_seconds: float = ([\d.]+)",
            (_LOCK.parent / "laser_tf/cluster/role_spec.py").read_text(),
            re.M,
        )
        self.assertGreaterEqual(seconds, 3 * float(of_a_role))
        for spec in (head, learner):
            self.assertGreaterEqual(spec["terminationGracePeriodSeconds"], seconds + 30)
            self.assertIn(_job()["jobId"], str(spec["containers"][0]["lifecycle"]["preStop"]))


class ReplayServerTest(absltest.TestCase):
    def setUp(self):
        super().setUp()
        (self._container,) = _server()["template"]["spec"]["containers"]
        self._arguments = self._container["args"]

    def test_the_command_knows_its_flags(self):
        self.assertEqual(self._container["command"], ["laser-replay-server"])
        code, _, errors = commands.run("replay_server", *self._arguments, "--help")
        self.assertEqual(code, 0, errors)
        code, _, errors = commands.run("replay_server", *self._arguments, "--ports=1", "--help")
        self.assertEqual(code, 2, errors)

    def test_the_job_names_the_server_that_there_is(self):
        address = _config(shlex.split(_job()["entrypoint"])).replay.address
        service = objects.named("Service", "laser-replay")
        self.assertEqual(service["spec"]["clusterIP"], "None")  # else pods have no names
        (port,) = service["spec"]["ports"]
        self.assertEqual(_server()["replicas"], 1)
        self.assertEqual(address, f"laser-replay-0.{_server()['serviceName']}:{port['port']}")
        self.assertEqual(_server()["serviceName"], service["metadata"]["name"])

    def test_it_keeps_what_the_job_learns_from(self):
        of_job = _config(shlex.split(_job()["entrypoint"]))
        of_server = _config(self._arguments)
        self.assertEqual(of_server.environment, of_job.environment)
        for name in ("unroll_length", "capacity", "queue_capacity", "replay_table"):
            self.assertEqual(getattr(of_server.replay, name), getattr(of_job.replay, name))

    def test_ports_agree(self):
        port = int(_flag(self._arguments, "port"))
        (declared,) = self._container["ports"]
        (served,) = objects.named("Service", "laser-replay")["spec"]["ports"]
        self.assertEqual(declared["containerPort"], port)
        self.assertEqual(served["port"], port)
        for name in (served["targetPort"], self._container["startupProbe"]["tcpSocket"]["port"]):
            self.assertEqual(name, declared["name"])

    def test_the_service_selects_its_pods(self):
        labels = _server()["template"]["metadata"]["labels"]
        self.assertEqual(objects.named("Service", "laser-replay")["spec"]["selector"], labels)
        self.assertEqual(_server()["selector"]["matchLabels"], labels)

    def test_checkpoints_have_their_room_and_time(self):
        limit = float(_flag(self._arguments, "memory_limit_gb"))
        (claim,) = _server()["volumeClaimTemplates"]
        room = _mebibytes(claim["spec"]["resources"]["requests"]["storage"]) * 2**20
        self.assertGreater(room, 3 * limit * 1e9)
        spec = _server()["template"]["spec"]
        self.assertGreater(
            spec["terminationGracePeriodSeconds"], limit * 1e9 / _SAVE_BYTES_PER_SECOND
        )
        memory = _mebibytes(self._container["resources"]["limits"]["memory"]) * 2**20
        self.assertGreater(memory, 1.2 * limit * 1e9)
        probe = self._container["startupProbe"]
        self.assertGreater(
            probe["periodSeconds"] * probe["failureThreshold"], limit * 1e9 / _SAVE_BYTES_PER_SECOND
        )
        (mount,) = (m for m in self._container["volumeMounts"] if m["name"] == "replay")
        folder = _flag(self._arguments, "checkpoint_folder")
        self.assertStartsWith(folder, mount["mountPath"] + "/")  # within: it is renamed


class NetworkPolicyTest(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        self._policies = [found for found in objects.read() if found["kind"] == "NetworkPolicy"]
        self._pods = objects.components()

    def test_every_pod_of_the_fleet_is_closed_to_others(self):
        self.assertEqual(set(self._pods), {"head", "worker", "submitter", "replay"})
        for labels in self._pods.values():
            for port in (5000, 6379, 8080, 8265, 10001, 10002, 52365):
                for stranger in (("fleet", {"app": "x"}), ("default", labels)):
                    self.assertFalse(objects.is_allowed(self._policies, stranger, labels, port))

    @parameterized.parameters(
        ("worker", "replay", 5000, True),
        ("head", "replay", 5000, True),
        ("submitter", "replay", 5000, False),
        ("worker", "replay", 5001, False),
        ("replay", "worker", 6379, False),
        ("replay", "replay", 5000, False),
        ("worker", "head", 6379, True),
        ("head", "worker", 10_002, True),
        ("worker", "worker", 40_000, True),
        ("submitter", "head", 8265, True),
        ("submitter", "head", 6379, False),
        ("submitter", "worker", 8265, False),
        ("head", "submitter", 8265, False),
    )
    def test_pods_of_the_fleet(self, source, target, port, expected):
        source = ("fleet", self._pods[source])
        allowed = objects.is_allowed(self._policies, source, self._pods[target], port)
        self.assertEqual(allowed, expected)

    @parameterized.parameters(
        ("kuberay-system", "kuberay-operator", 8265, True),
        ("kuberay-system", "kuberay-operator", 6379, False),
        ("kuberay-system", "other", 8265, False),
        ("default", "kuberay-operator", 8265, False),
        ("monitoring", "prometheus", 8080, True),
        ("monitoring", "prometheus", 8265, False),
        ("default", "prometheus", 8080, False),
    )
    def test_the_head_is_open_to_the_operator_and_prometheus(self, namespace, name, port, expected):
        source = (namespace, {"app.kubernetes.io/name": name})
        allowed = objects.is_allowed(self._policies, source, self._pods["head"], port)
        self.assertEqual(allowed, expected)


class SecurityTest(absltest.TestCase):
    def test_no_pod_runs_as_root_or_can_become_root(self):
        pods = [pod["spec"] for found in objects.read() for pod in objects.templates(found)]
        self.assertLen(pods, 5)
        for spec in pods:
            self.assertTrue(spec["securityContext"]["runAsNonRoot"])
            self.assertEqual(spec["securityContext"]["seccompProfile"]["type"], "RuntimeDefault")
            for container in spec["containers"]:
                context = container["securityContext"]
                self.assertFalse(context["allowPrivilegeEscalation"])
                self.assertEqual(context["capabilities"]["drop"], ["ALL"])
                self.assertIn("memory", container["resources"]["limits"])

    def test_only_the_head_whose_autoscaler_asks_kubernetes_has_its_credentials(self):
        pods = [pod for found in objects.read() for pod in objects.templates(found)]
        having = [
            pod["metadata"]["labels"]["app.kubernetes.io/component"]
            for pod in pods
            if pod["spec"].get("automountServiceAccountToken", True)
        ]
        self.assertEqual(having, ["head"])


if __name__ == "__main__":
    absltest.main()
