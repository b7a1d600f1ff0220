"""What objects may look like: Kubernetes' own schemas, strictly, and ours for the custom kinds that are used.

Those of the Prometheus operator (monitoring.coreos.com/v1, 0.80) and KEDA (keda.sh/v1alpha1, 2.17) hold only what the
manifests use, so that anything else is a mistake until somebody has looked it up.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import jsonschema
import kubernetes_validate.utils as validating

from tests.docker.manifests import CUSTOM_KINDS, Object

# The oldest that the chart admits (Chart.yaml), and the newest there are schemas for.
VERSIONS = ("1.27", "1.37")
# It reads a file of 2 MB anew for each object; what it says stays the same.
validating.schema_contents = cache(validating.schema_contents)

_TEXT: dict[str, Any] = {"type": "string", "minLength": 1}
_TEXTS: dict[str, Any] = {"type": "object", "additionalProperties": {"type": "string"}}
_DURATION: dict[str, Any] = {"type": "string", "pattern": r"^(\d+(ms|s|m|h|d))+$"}


def _closed(required: str = "", **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": required.split(),
        "properties": properties,
    }


def _listed(item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "minItems": 1, "items": item}


_RULE = {
    "oneOf": [
        _closed("record expr", record=_TEXT, expr=_TEXT, labels=_TEXTS),
        _closed(
            "alert expr annotations", alert=_TEXT, expr=_TEXT, labels=_TEXTS, annotations=_TEXTS, **{"for": _DURATION}
        ),
    ]
}
_SCALING = _closed(
    "policies",
    stabilizationWindowSeconds={"type": "integer", "minimum": 0, "maximum": 3600},
    selectPolicy={"enum": ["Max", "Min", "Disabled"]},
    policies=_listed(
        _closed(
            "type value periodSeconds",
            type={"enum": ["Pods", "Percent"]},
            value={"type": "integer", "minimum": 1},
            periodSeconds={"type": "integer", "minimum": 1, "maximum": 1800},
        )
    ),
)
_SPECS: dict[str, tuple[str, dict[str, Any]]] = {
    "ServiceMonitor": (
        "monitoring.coreos.com/v1",
        _closed(
            "selector endpoints",
            jobLabel=_TEXT,
            selector=_closed("matchLabels", matchLabels=_TEXTS),
            endpoints=_listed(_closed("port path", port=_TEXT, path=_TEXT, interval=_DURATION)),
        ),
    ),
    "PrometheusRule": (
        "monitoring.coreos.com/v1",
        _closed("groups", groups=_listed(_closed("name rules", name=_TEXT, interval=_DURATION, rules=_listed(_RULE)))),
    ),
    "ScaledObject": (
        "keda.sh/v1alpha1",
        _closed(
            "scaleTargetRef triggers",
            scaleTargetRef=_closed("name", name=_TEXT),
            minReplicaCount={"type": "integer", "minimum": 0},
            maxReplicaCount={"type": "integer", "minimum": 1},
            pollingInterval={"type": "integer", "minimum": 1},
            advanced=_closed(
                "horizontalPodAutoscalerConfig",
                horizontalPodAutoscalerConfig=_closed(
                    "behavior", behavior=_closed("", scaleUp=_SCALING, scaleDown=_SCALING)
                ),
            ),
            # KEDA reads every member of metadata as text; a number there is refused by its admission.
            triggers=_listed(
                _closed(
                    "type metadata",
                    type={"enum": ["cpu", "prometheus"]},
                    metricType={"enum": ["Utilization", "AverageValue", "Value"]},
                    metadata=_TEXTS,
                )
            ),
        ),
    ),
}


def problems(each: Object) -> list[str]:
    """What is wrong with an object, in any version it should work with."""
    if each["kind"] in CUSTOM_KINDS:
        return _custom_problems(each)
    told = []
    for version in VERSIONS:
        try:
            validating.validate(each, version, strict=True)
        except (validating.ValidationError, validating.SchemaNotFoundError) as error:
            told.append(f"{each['kind']} {each['metadata']['name']} in {version}: {error.message}")
    return told


def _custom_problems(each: Object) -> list[str]:
    api, spec = _SPECS[each["kind"]]
    whole = _closed(
        "apiVersion kind metadata spec",
        apiVersion={"const": api},
        kind=_TEXT,
        metadata=_closed("name labels", name=_TEXT, namespace=_TEXT, labels=_TEXTS),
        spec=spec,
    )
    found = jsonschema.Draft202012Validator(whole).iter_errors(each)
    return [f"{each['kind']}: {'.'.join(map(str, error.path))}: {error.message}" for error in found]
