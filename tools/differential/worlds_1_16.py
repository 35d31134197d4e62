"""Random pods and statuses as the API of 1.16 has them: those of `worlds` without the fields that came later. Pure."""

from typing import Any

from tools.differential.worlds import Json

_PROBES = ("startupProbe", "readinessProbe", "livenessProbe")
_LATER = ("restartPolicy", "restartPolicyRules")


def pod_of_1_16(pod: Json) -> Json:
    """No sidecars, so no probes of init containers; no rules of restarts."""
    spec = {**pod["spec"], "containers": [_without(c, _LATER) for c in pod["spec"]["containers"]]}
    if "initContainers" in spec:
        spec["initContainers"] = [_without(c, (*_LATER, *_PROBES)) for c in spec["initContainers"]]
    made = {**pod, "spec": spec}
    if "status" in pod:
        made["status"] = status_of_1_16(pod["status"])
    return made


def status_of_1_16(status: Any) -> Any:
    """No observedGeneration, neither of the status nor of a condition."""
    made = _without(status, ("observedGeneration",))
    if "conditions" in made:
        made["conditions"] = [_without(c, ("observedGeneration",)) for c in made["conditions"]]
    return made


def _without(of: Json, keys: tuple[str, ...]) -> Json:
    return {key: value for key, value in of.items() if key not in keys}
