"""Whether what a scheduler has loaded is what it was given. Pure."""

import json
import re
from typing import Any, Dict, List

_UNITS_NS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}


def _plain(value: object) -> object:
    """Go's durations as nanoseconds, so that 60s is 1m0s and 1400ms is 1.4s."""
    if isinstance(value, str) and re.match(r"^([0-9.]+(ns|us|ms|s|m|h))+$", value):
        return sum(round(float(n) * _UNITS_NS[unit]) for n, unit in re.findall(r"([0-9.]+)(ns|us|ms|s|m|h)", value))
    return value


def differences(expected: object, loaded: object, where: str = "") -> List[str]:
    """What is expected and not loaded, a line each. More may be loaded; what is empty may be left out."""
    if isinstance(expected, dict):
        loaded = loaded if isinstance(loaded, dict) else {}
        found = [differences(each, loaded.get(key), (where + "." + key).strip(".")) for key, each in expected.items()]
        return [line for lines in found for line in lines]
    if isinstance(expected, list):
        loaded = loaded if isinstance(loaded, list) else []
        if len(expected) != len(loaded):
            return ["%s: %d are expected, %d loaded" % (where, len(expected), len(loaded))]
        pairs = enumerate(zip(expected, loaded))
        return [line for n, (a, b) in pairs for line in differences(a, b, "%s[%d]" % (where, n))]
    if _plain(expected) == _plain(loaded) or not (expected or loaded):
        return []
    return ["%s: %s is expected, %s loaded" % (where, json.dumps(expected), json.dumps(loaded))]


def configuration_of(configz: str) -> Dict[str, Any]:
    """Of what /configz said. Raises ValueError where it is none of a kube-scheduler."""
    for each in json.loads(configz).values():
        if isinstance(each, dict) and each.get("kind") == "KubeSchedulerConfiguration":
            return each
    raise ValueError("no KubeSchedulerConfiguration")
