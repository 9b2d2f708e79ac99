"""The objects of deploy/kuberay, their validation, and what their network policies allow."""

import pathlib
from collections.abc import Iterable, Mapping
from typing import Any

import kubernetes_validate
import yaml

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "deploy" / "kuberay"
Object = Mapping[str, Any]

_VERSION = kubernetes_validate.latest_version()
_GROUP = "rayStartParams template"
_WORKERS = f"{_GROUP} groupName replicas minReplicas maxReplicas"
# Fields of KubeRay 1.7 (ray.io/v1) that the project uses. A misspelt field would have no effect.
_RAY_JOB_FIELDS = {
    "": "apiVersion kind metadata spec",
    "spec": "entrypoint jobId submitterPodTemplate backoffLimit shutdownAfterJobFinishes "
    "ttlSecondsAfterFinished rayClusterSpec",
    "spec rayClusterSpec": "rayVersion authOptions enableInTreeAutoscaling autoscalerOptions "
    "headGroupSpec workerGroupSpecs",
    "spec rayClusterSpec authOptions": "mode",
    "spec rayClusterSpec autoscalerOptions": "version idleTimeoutSeconds securityContext resources",
    "spec rayClusterSpec headGroupSpec": _GROUP,
    "spec rayClusterSpec workerGroupSpecs 0": _WORKERS,
    "spec rayClusterSpec workerGroupSpecs 1": _WORKERS,
}


def read() -> list[Object]:
    """Returns all objects of the folder."""
    paths = sorted(FOLDER.glob("*.yaml"))
    return [found for path in paths for found in yaml.safe_load_all(path.read_text())]


def named(kind: str, name: str) -> Object:
    """Returns one object of the folder."""
    (found,) = (o for o in read() if (o["kind"], o["metadata"]["name"]) == (kind, name))
    return found


def part(found: Any, path: str) -> Any:
    """Returns the part of an object at keys and indices separated by spaces."""
    for step in path.split():
        found = found[int(step) if step.isdigit() else step]
    return found


def check(found: Object) -> None:
    """Checks the fields of an object.

    Raises:
      ValueError, kubernetes_validate.ValidationError: For an unknown field or a wrong value.
    """
    if found["kind"] != "RayJob":
        kubernetes_validate.validate(found, _VERSION, strict=True)
        return
    for path, fields in _RAY_JOB_FIELDS.items():
        if unknown := part(found, path).keys() - set(fields.split()):
            raise ValueError(f"unknown fields {unknown} in {path}")
    for template in templates(found):
        made = {"apiVersion": "v1", "kind": "PodTemplate", "template": template}
        kubernetes_validate.validate(made, _VERSION, strict=True)


def templates(found: Object) -> list[Object]:
    """Returns the templates of the pods that an object creates."""
    if found["kind"] == "StatefulSet":
        return [found["spec"]["template"]]
    if found["kind"] != "RayJob":
        return []
    cluster = found["spec"]["rayClusterSpec"]
    workers = (group["template"] for group in cluster["workerGroupSpecs"])
    return [found["spec"]["submitterPodTemplate"], cluster["headGroupSpec"]["template"], *workers]


def pods() -> list[Object]:
    """Returns the templates of all pods."""
    return [template for found in read() for template in templates(found)]


def is_allowed(
    policies: Iterable[Object],
    source: tuple[str, Mapping[str, str]],
    target: Mapping[str, str],
    port: int,
) -> bool:
    """Returns whether policies of the namespace "fleet" let a pod connect to another by TCP.

    Args:
      policies: NetworkPolicy objects of the namespace "fleet".
      source: Namespace and labels of the pod that connects.
      target: Labels of a pod of the namespace "fleet".
      port: Port of the target.
    """
    selecting = [p["spec"] for p in policies if _selects(p["spec"]["podSelector"], target)]
    return not selecting or any(  # Every source may connect to a pod without a policy.
        _matches(peer, *source)
        for spec in selecting
        for rule in spec.get("ingress", ())
        for peer in rule["from"]
        if port in (p["port"] for p in rule.get("ports", ({"port": port},)))
    )


def _matches(peer: Object, namespace: str, labels: Mapping[str, str]) -> bool:
    namespaces = peer.get(
        "namespaceSelector", {"matchLabels": {"kubernetes.io/metadata.name": "fleet"}}
    )
    return _selects(namespaces, {"kubernetes.io/metadata.name": namespace}) and _selects(
        peer.get("podSelector", {}), labels
    )


def _selects(selector: Object, labels: Mapping[str, str]) -> bool:
    """Returns whether a selector matches; all its expressions have the operator In."""
    expressions = selector.get("matchExpressions", ())
    return all(
        labels.get(key) == value for key, value in selector.get("matchLabels", {}).items()
    ) and all(labels.get(expression["key"]) in expression["values"] for expression in expressions)
