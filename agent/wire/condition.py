"""Our one condition on our own pod: the patch that writes it, and what its reply says of the pod. Pure."""

import msgspec

from kube import contract

# Reason words of our condition: one word per cause.
REASON_CHECKS_PASSED = "ChecksPassed"
REASON_CHECK_FAILED = "CheckFailed"
REASON_CHECK_UNKNOWN = "CheckUnknown"
REASON_STARTING = "Starting"
REASON_TERMINATING = "Terminating"


class _Condition(msgspec.Struct, rename="camel"):
    type: str
    status: str
    last_transition_time: str | None = None


class _Status(msgspec.Struct):
    conditions: list[_Condition] | None = None


class _Meta(msgspec.Struct):
    uid: str = ""


class OwnPod(msgspec.Struct):
    """The reply to a patch, as far as it matters here."""

    metadata: _Meta
    status: _Status = msgspec.field(default_factory=_Status)

    @property
    def uid(self) -> str:
        return self.metadata.uid

    @property
    def transition(self) -> tuple[str, str] | None:
        """Status and lastTransitionTime (RFC 3339) of our condition; None where the pod has none."""
        for condition in self.status.conditions or ():
            if condition.type == contract.CONDITION_NODE_HEALTHY and condition.last_transition_time:
                return condition.status, condition.last_transition_time
        return None


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
