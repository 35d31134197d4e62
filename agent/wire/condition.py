"""Our one condition on a health pod: the patch that writes it, and what its reply says of the pod. Pure."""

from collections.abc import Mapping

import msgspec

from kube import contract

# Reason words of our condition: one word per cause.
REASON_CHECKS_PASSED = "ChecksPassed"
REASON_CHECK_FAILED = "CheckFailed"
REASON_CHECK_UNKNOWN = "CheckUnknown"
REASON_STARTING = "Starting"
# Of an agent on the node, which looks at the health pod and the kubelet beside it. PROBES_FAILED: the readiness probes
# that we make ourselves fail, of a pod that was ready. KUBELET_DISAGREES: they do so for long, and the kubelet, which
# lives, still says that it is ready.
REASON_PROBES_FAILED = "ProbesFailed"
REASON_KUBELET_DISAGREES = "KubeletDisagrees"
REASON_KUBELET_SILENT = "KubeletSilent"
REASON_PLEG_UNHEALTHY = "PlegUnhealthy"
REASON_TERMINATING = "Terminating"


# On a health pod: which agent writes that condition. `node`: the one on the node; anything else, or no such annotation:
# the one in the pod. Both read it from the pod, so they do not write against each other (agent.report.condition, 7).
ANNOTATION_SPEAKER = "readygate.dev/speaker"
SPEAKER_POD = "pod"
SPEAKER_NODE = "node"


class _Condition(msgspec.Struct, rename="camel"):
    type: str
    status: str
    last_transition_time: str | None = None


class _Status(msgspec.Struct):
    conditions: list[_Condition] | None = None


class _Meta(msgspec.Struct):
    uid: str = ""
    annotations: dict[str, str] | None = None


class OwnPod(msgspec.Struct):
    """The reply to a patch, as far as it matters here."""

    metadata: _Meta
    status: _Status = msgspec.field(default_factory=_Status)

    @property
    def uid(self) -> str:
        return self.metadata.uid

    @property
    def speaker(self) -> str:
        """Whose word its condition is: SPEAKER_POD or SPEAKER_NODE."""
        return speaker_of(self.metadata.annotations or {})

    @property
    def transition(self) -> tuple[str, str] | None:
        """Status and lastTransitionTime (RFC 3339) of our condition; None where the pod has none."""
        for condition in self.status.conditions or ():
            if condition.type == contract.CONDITION_NODE_HEALTHY and condition.last_transition_time:
                return condition.status, condition.last_transition_time
        return None


def speaker_of(annotations: Mapping[str, str]) -> str:
    """Who speaks for a pod with these annotations. Only the one word gives it to the agent on the node."""
    asked = annotations.get(ANNOTATION_SPEAKER)
    return SPEAKER_NODE if asked == SPEAKER_NODE else SPEAKER_POD


parse_own_pod = msgspec.json.Decoder(OwnPod).decode
"""An OwnPod from its JSON. Raises msgspec.DecodeError (or its ValidationError) if it is not one."""


def no_patch(uid: str) -> bytes:
    """A patch that changes nothing."""
    return msgspec.json.encode({"metadata": {"uid": uid}})


def condition_patch(uid: str, *, status: str, reason: str, message: str, since: str) -> bytes:
    """The strategic merge patch of our one condition. `since` is RFC 3339."""
    condition = {
        "type": contract.CONDITION_NODE_HEALTHY,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": since,
    }
    return msgspec.json.encode({"metadata": {"uid": uid}, "status": {"conditions": [condition]}})
