"""What a handler says of one attempt (pkg/probe): a result and its output, or an error that makes it worthless."""

from dataclasses import dataclass
from enum import StrEnum


class HandlerResult(StrEnum):
    SUCCESS = "success"
    WARNING = "warning"
    FAILURE = "failure"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Outcome:
    result: HandlerResult
    output: str = ""


class HandlerError(Exception):
    """The attempt could not be made, or its answer not be read. `result` is what kubelet's event calls the state."""

    def __init__(self, message: str, result: HandlerResult = HandlerResult.FAILURE) -> None:
        super().__init__(message)
        self.result = result


class ProbeErrored(Exception):  # noqa: N818 - the word of kubelet
    """The probe could not be made; its result, whatever it was, is thrown away."""
