"""The schema of the chart's values: closed, the sections of the two configuration files from the code that reads them.

Pure but for the chart's own files.
"""

import json
from typing import Any

import msgspec
import yaml

from agent import settings as agent_settings
from agent.checks.profiles import PROFILES
from extender.config import settings as extender_settings
from tests.charts.rendering import CHART

Schema = dict[str, Any]
DRAFT = "https://json-schema.org/draft/2020-12/schema"
# Helm's own, and what it does not show to the chart's templates.
ALSO: dict[str, Schema] = {"global": {"type": "object"}}
# Sections that the chart gives the rest of.
JOINED = {"Tls"}
_NAME: Schema = {"type": "string", "pattern": "^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$"}
_COUNT: Schema = {"type": "integer", "minimum": 1}
# What the kubelet takes as a mount, and no text that ends in the middle of a template's.
_FOLDER: Schema = {"type": "string", "pattern": r"^(/(\.?[^/.\x00-\x1f][^/\x00-\x1f]*))+/?$"}
# Its parent is mounted: not the whole host, and not the folder itself, which that of `folder/` would be.
_FOLDER_WITH_PARENT: Schema = {"type": "string", "pattern": r"^(/(\.?[^/.\x00-\x1f][^/\x00-\x1f]*)){2,}$"}
_NAME_PART = "[a-z0-9]+([._-]+[a-z0-9]+)*"
_QUANTITIES: Schema = {
    "type": "object",
    "additionalProperties": {"anyOf": [{"type": "string"}, {"type": "number", "minimum": 0}]},
}
_LABELS: Schema = {"type": "object", "additionalProperties": {"type": "string"}}
_TEXTS: Schema = {"type": "array", "items": {"type": "string"}}
_EXPRESSION: Schema = {
    "type": "object",
    "properties": {
        "key": {"type": "string", "minLength": 1},
        "operator": {"enum": ["In", "NotIn", "Exists", "DoesNotExist"]},
        "values": _TEXTS,
    },
    "required": ["key", "operator"],
    "additionalProperties": False,
}
_SELECTOR: Schema = {
    "type": "object",
    "properties": {"matchLabels": _LABELS, "matchExpressions": {"type": "array", "items": _EXPRESSION}},
    "additionalProperties": False,
}
_BLOCK: Schema = {
    "type": "object",
    "properties": {"cidr": {"type": "string", "minLength": 1}, "except": _TEXTS},
    "required": ["cidr"],
    "additionalProperties": False,
}
_RESOURCES: Schema = {
    "type": "object",
    "properties": {"requests": _QUANTITIES, "limits": _QUANTITIES},
    "additionalProperties": False,
}
_FIGURE: Schema = {"anyOf": [_COUNT, {"type": "null"}]}
# What the value in values.yaml does not say of itself, by its path.
RULES: dict[str, Schema] = {
    # A host with or without a port, folders, a name; tag and digest are values of their own.
    "image.repository": {
        "type": "string",
        "pattern": rf"^(([0-9a-zA-Z.-]+|\[[0-9a-fA-F:]+\])(:[0-9]+)?/)?({_NAME_PART}(/{_NAME_PART})*)?$",
    },
    "image.tag": {"type": "string", "pattern": "^([A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?$"},
    "image.digest": {"type": "string", "pattern": "^(sha256:[0-9a-f]{64})?$"},
    "image.pullPolicy": {"enum": ["IfNotPresent", "Always", "Never"]},
    "image.pullSecrets": {"type": "array", "items": _NAME},
    "image.architectures": {"type": "array", "minItems": 1, "items": {"type": "string", "minLength": 1}},
    "kubernetes.server": {"type": "string", "pattern": "^(https?://.+)?$"},
    "enforcement": {"enum": ["shadow", "armed"]},
    "agent.profile": {"enum": ["default", "fast"]},
    "agent.checkProfile": {"enum": ["", *PROFILES]},
    "agent.leaveOut": _TEXTS,
    "agent.speaker": {"enum": ["pod", "node"]},
    "agent.heartbeat": {"anyOf": [{"type": "boolean"}, {"type": "null"}]},
    "agent.checkPeriodSeconds": _FIGURE,
    "agent.checkFailureThreshold": _FIGURE,
    "agent.probePeriodSeconds": _FIGURE,
    "agent.probeFailureThreshold": _FIGURE,
    "agent.cni.confDir": _FOLDER_WITH_PARENT,
    "agent.cni.binDirs": {"type": "array", "items": _FOLDER},
    "agent.checks": {"type": "array", "items": {"$ref": "#/$defs/agent.Check"}},
    "agent.reader.checks": {"type": "array", "items": {"$ref": "#/$defs/agent.Check"}},
    "agent.reader.writes": {"type": "array", "items": _FOLDER},
    "agent.reader.resources": _RESOURCES,
    "agent.hostPaths": {"type": "array", "items": _FOLDER},
    "agent.runAsUser": {"anyOf": [{"type": "integer", "minimum": 0, "maximum": 2**31 - 1}, {"type": "null"}]},
    "agent.metricsFrom": {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {"namespaceSelector": _SELECTOR, "podSelector": _SELECTOR, "ipBlock": _BLOCK},
            "additionalProperties": False,
        },
    },
    "agent.nodeSelector": _LABELS,
    "agent.resources": _RESOURCES,
    "agent.logLevel": {"enum": ["debug", "info", "warning", "error"]},
    "agent.maxUnavailable": {"anyOf": [_COUNT, {"type": "string", "pattern": "^([1-9][0-9]?|100)%$"}]},
    "agent.minReadySeconds": {"type": "integer", "minimum": 0},
    "extender.configuration": {"$ref": "#/$defs/extender.Settings"},
    "extender.port": {"type": "integer", "minimum": 1, "maximum": 65535},
    "extender.tlsSecret": {"type": "string", "pattern": "^([a-z0-9]([a-z0-9.-]*[a-z0-9])?)?$"},
    "extender.nodeSelector": _LABELS,
    "extender.resources": _RESOURCES,
    "extender.statusApi.resources": _RESOURCES,
    "monitoring.podMonitors.labels": _LABELS,
    "monitoring.podMonitors.interval": {"type": "string", "pattern": "^[0-9]+(ms|s|m)$"},
    "monitoring.rules.labels": _LABELS,
    "monitoring.dashboard.labels": _LABELS,
}
# Of these null means none, as of texts and of labels; any other value that is null is none at all: false, where its
# default keeps something shut. `--reuse-values` of an earlier chart leaves out what that did not know; for the port the
# chart has a default.
MAY_BE_NULL = {
    "image.pullSecrets",
    "agent.metricsFrom",
    "extender.port",
    "monitoring.podMonitors",
    "monitoring.rules",
    "monitoring.dashboard",
}
_TYPES = {bool: "boolean", str: "string", int: "integer", float: "number"}


def schema() -> str:
    """The text of values.schema.json."""
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    root = _section(values, "")
    root["properties"] |= ALSO
    definitions = _definitions("extender", extender_settings.Settings) | _definitions("agent", agent_settings.Check)
    return json.dumps({"$schema": DRAFT, "title": "readygate"} | root | {"$defs": definitions}, indent=2) + "\n"


def _section(values: dict[str, Any], path: str) -> Schema:
    properties = {key: _of(value, f"{path}{key}") for key, value in values.items()}
    needed = [key for key, value in values.items() if _needed(value, f"{path}{key}")]
    return {"type": "object", "properties": properties, "required": needed, "additionalProperties": False}


def _needed(value: Any, path: str) -> bool:
    if path in MAY_BE_NULL or value is None or value == "":
        return False
    return RULES.get(path) not in (_LABELS, _RESOURCES)


def _of(value: Any, path: str) -> Schema:
    if path in RULES:
        return RULES[path]
    if isinstance(value, dict):
        return _section(value, f"{path}.")
    return {"type": _TYPES[type(value)]}


def _definitions(half: str, root: type) -> dict[str, Schema]:
    """What a type and those in it may be, their names led by which half's they are."""
    found = msgspec.json.schema(root)["$defs"]
    for name in JOINED & found.keys():
        del found[name]["required"]
    return {f"{half}.{name}": _portable(definition, half) for name, definition in sorted(found.items())}


def _portable(node: Any, half: str) -> Any:
    """As Go takes it: its regular expressions know no `\\Z`. What is a default is the code's affair."""
    if isinstance(node, list):
        return [_portable(each, half) for each in node]
    if not isinstance(node, dict):
        return node
    kept = {}
    for key, value in node.items():
        if key in ("default", "title"):
            continue
        if key == "$ref":
            kept[key] = value.replace("#/$defs/", f"#/$defs/{half}.")
        elif key == "pattern":
            kept[key] = value.replace(r"\Z", "$")
        elif key == "description" and isinstance(value, str):
            kept[key] = " ".join(value.split())
        else:
            kept[key] = _portable(value, half)
    return kept
