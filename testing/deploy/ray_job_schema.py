"""The fields of a KubeRay RayJob (ray.io/v1, KubeRay 1.7) that the project's may use, as a schema.

Pod templates are objects here: `kubernetes_objects` checks them as Kubernetes' own. What is not
listed is refused; a field that is needed is added as KubeRay's API reference describes it.
"""

from collections.abc import Mapping
from typing import Any

_TEXT = {"type": "string"}
_FLAG = {"type": "boolean"}
_COUNT = {"type": "integer", "minimum": 0}
_TEXTS = {"type": "object", "additionalProperties": _TEXT}
_OBJECT = {"type": "object"}


def _object(required: str = "", **properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": required.split(),
        "additionalProperties": False,
    }


def _choice(*values: str) -> dict[str, Any]:
    return {"enum": list(values)}


_CLUSTER = _object(
    "headGroupSpec",
    rayVersion=_TEXT,
    authOptions=_object(mode=_choice("disabled", "token"), secretName=_TEXT),
    enableInTreeAutoscaling=_FLAG,
    autoscalerOptions=_object(
        version=_choice("v1", "v2"),
        upscalingMode=_choice("Default", "Aggressive", "Conservative"),
        idleTimeoutSeconds=_COUNT,
        image=_TEXT,
        securityContext=_OBJECT,
        resources=_OBJECT,
    ),
    headGroupSpec=_object(
        "template", rayStartParams=_TEXTS, resources=_TEXTS, labels=_TEXTS, template=_OBJECT
    ),
    workerGroupSpecs={
        "type": "array",
        "items": _object(
            "groupName minReplicas maxReplicas template",
            groupName=_TEXT,
            replicas=_COUNT,
            minReplicas=_COUNT,
            maxReplicas=_COUNT,
            idleTimeoutSeconds=_COUNT,
            rayStartParams=_TEXTS,
            resources=_TEXTS,
            labels=_TEXTS,
            template=_OBJECT,
        ),
    },
)

SCHEMA = _object(
    "apiVersion kind metadata spec",
    apiVersion=_choice("ray.io/v1"),
    kind=_choice("RayJob"),
    metadata=_object(
        "name",
        # KubeRay adds to it, and Kubernetes takes 63 characters.
        name={"type": "string", "pattern": "^[a-z]([-a-z0-9]{0,45}[a-z0-9])?$"},
        namespace=_TEXT,
        labels=_TEXTS,
        annotations=_TEXTS,
    ),
    spec=_object(
        "entrypoint rayClusterSpec",
        entrypoint=_TEXT,
        jobId=_TEXT,
        submissionMode=_choice("K8sJobMode", "HTTPMode", "InteractiveMode", "SidecarMode"),
        submitterPodTemplate=_OBJECT,
        submitterConfig=_object(backoffLimit=_COUNT),
        backoffLimit=_COUNT,
        activeDeadlineSeconds={"type": "integer", "minimum": 1},
        preRunningDeadlineSeconds={"type": "integer", "minimum": 1},
        shutdownAfterJobFinishes=_FLAG,
        ttlSecondsAfterFinished=_COUNT,
        suspend=_FLAG,
        rayClusterSpec=_CLUSTER,
    ),
)
