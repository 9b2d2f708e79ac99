"""The objects of deploy/kuberay, held against schemas, and what its network policies allow."""

import pathlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import jsonschema
import kubernetes_validate
import yaml

from testing.deploy import ray_job_schema

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "deploy" / "kuberay"
_VERSION = kubernetes_validate.latest_version()
Object = Mapping[str, Any]


def read() -> list[Object]:
    """All objects of the folder."""
    return [
        found
        for path in sorted(FOLDER.glob("*.yaml"))
        for found in yaml.safe_load_all(path.read_text())
    ]


def named(kind: str, name: str) -> Object:
    """One object of the folder."""
    (found,) = (o for o in read() if (o["kind"], o["metadata"]["name"]) == (kind, name))
    return found


def check(found: Object) -> None:
    """Checks an object, unknown fields included.

    Raises:
      ValidationError: jsonschema's, if it is refused.
    """
    if found["kind"] != "RayJob":
        kubernetes_validate.validate(found, _VERSION, strict=True)
        return
    jsonschema.validate(found, ray_job_schema.SCHEMA)
    for template in templates(found):
        made = {"apiVersion": "v1", "kind": "PodTemplate", "template": template}
        kubernetes_validate.validate(made, _VERSION, strict=True)
    options = found["spec"]["rayClusterSpec"].get("autoscalerOptions", {})
    container = {name: options[name] for name in ("securityContext", "resources", "image")
                 if name in options}  # fmt: skip
    spec = {"containers": [{"name": "autoscaler", **container}]}
    made = {"apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": spec}
    kubernetes_validate.validate(made, _VERSION, strict=True)


def templates(found: Object) -> list[Object]:
    """The templates of the pods that an object makes."""
    if found["kind"] == "StatefulSet":
        return [found["spec"]["template"]]
    if found["kind"] != "RayJob":
        return []
    cluster = found["spec"]["rayClusterSpec"]
    workers = (group["template"] for group in cluster["workerGroupSpecs"])
    return [found["spec"]["submitterPodTemplate"], cluster["headGroupSpec"]["template"], *workers]


def components() -> dict[str, Mapping[str, str]]:
    """The fleet's pods: component -> labels."""
    pods = (template for found in read() for template in templates(found))
    labels = (pod["metadata"]["labels"] for pod in pods)
    return {label["app.kubernetes.io/component"]: label for label in labels}


def is_allowed(
    policies: Iterable[Object],
    source: tuple[str, Mapping[str, str]],
    target: Mapping[str, str],
    port: int,
) -> bool:
    """Whether policies of the fleet's namespace let a pod connect to another by TCP.

    Args:
      policies: NetworkPolicy objects, all of the namespace "fleet".
      source: the namespace and the labels of the pod that connects.
      target: the labels of a pod of the namespace "fleet".
      port: on the target.
    """
    selecting = [p["spec"] for p in policies if _selects(p["spec"]["podSelector"], target)]
    if not selecting:
        return True  # what no policy selects is open
    return any(
        _matches_peer(peer, source)
        for spec in selecting
        for rule in spec.get("ingress", ())
        for peer in rule["from"]
        if port in _ports(rule)
    )


def _ports(rule: Object) -> Iterator[int] | range:
    if "ports" not in rule:
        return range(65536)
    return (p["port"] for p in rule["ports"] if p["protocol"] == "TCP")


def _matches_peer(peer: Object, source: tuple[str, Mapping[str, str]]) -> bool:
    namespace, labels = source
    if "namespaceSelector" in peer:
        name = {"kubernetes.io/metadata.name": namespace}
        if not _selects(peer["namespaceSelector"], name):
            return False
    elif namespace != "fleet":
        return False
    return _selects(peer.get("podSelector", {}), labels)


def _selects(selector: Object, labels: Mapping[str, str]) -> bool:
    wanted = selector.get("matchLabels", {}).items()
    expressions = selector.get("matchExpressions", ())
    if any(expression["operator"] != "In" for expression in expressions):
        raise ValueError(f"only the operator In is known here: {expressions}")
    return all(labels.get(key) == value for key, value in wanted) and all(
        labels.get(expression["key"]) in expression["values"] for expression in expressions
    )
