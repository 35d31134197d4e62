"""Compares the configuration that a scheduler has loaded with the expected one. Pure."""

import json
import re
from typing import Any, Dict, List

KIND = "KubeSchedulerConfiguration"
_INITIALS = re.compile(r"^[A-Z]+(?=[A-Z][a-z]|$)|^[A-Z]")
_UNITS_NS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}


def _plain(value: object) -> object:
    """Go's durations as nanoseconds, so that 60s equals 1m0s and 1400ms equals 1.4s."""
    if isinstance(value, str) and re.match(r"^([0-9.]+(ns|us|ms|s|m|h))+$", value):
        return sum(round(float(n) * _UNITS_NS[unit]) for n, unit in re.findall(r"([0-9.]+)(ns|us|ms|s|m|h)", value))
    return value


def differences(expected: object, loaded: object, where: str = "") -> List[str]:
    """What is expected but not loaded, a line each. More may be loaded; empty values may be missing."""
    if isinstance(expected, dict):
        loaded = loaded if isinstance(loaded, dict) else {}
        found = [differences(each, loaded.get(key), (where + "." + key).strip(".")) for key, each in expected.items()]
        return [line for lines in found for line in lines]
    if isinstance(expected, list):
        loaded = loaded if isinstance(loaded, list) else []
        if len(expected) != len(loaded):
            return ["%s: %d expected, %d loaded" % (where, len(expected), len(loaded))]
        pairs = enumerate(zip(expected, loaded))
        return [line for n, (a, b) in pairs for line in differences(a, b, "%s[%d]" % (where, n))]
    if _plain(expected) == _plain(loaded) or not (expected or loaded):
        return []
    return ["%s: %s expected, %s loaded" % (where, json.dumps(expected), json.dumps(loaded))]


def configuration_of(configz: str) -> Dict[str, Any]:
    """The configuration in the answer of /configz. Raises ValueError if it is not that of a kube-scheduler."""
    for each in json.loads(configz).values():
        named = _as_in_files(each)
        if isinstance(named, dict) and (named.get("kind") == KIND or _without_kind(named)):
            return named
    raise ValueError("no KubeSchedulerConfiguration")


def _without_kind(named: Dict[str, Any]) -> bool:
    """Whether it is a configuration without its kind, which a kube-scheduler omits up to Kubernetes 1.35."""
    return "kind" not in named and str(named.get("apiVersion", "")).startswith("kubescheduler.config.k8s.io/")


def _as_in_files(value: object) -> object:
    """Keys as a file has them: up to Kubernetes 1.35 /configz shows Go's names, URLPrefix for urlPrefix."""
    if isinstance(value, dict):
        return {_INITIALS.sub(lambda found: found[0].lower(), key): _as_in_files(each) for key, each in value.items()}
    return [_as_in_files(each) for each in value] if isinstance(value, list) else value
