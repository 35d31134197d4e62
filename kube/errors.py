"""The errors of requests to the API server: one type per cause, each chained to what raised it.

`str(error)` is always one line: the request, the answer, and a remedy if there is one.
"""

# ruff: noqa: N818 - the names are those of the API's own reasons

from collections.abc import Mapping

from component.text import one_line


class CredentialsInvalid(Exception):
    """A kubeconfig, token or certificate file is missing or unusable. The text names the cause and the remedy."""


class KubeError(Exception):
    """A request to the API server has failed.

    path: of the request, without the query. status: of the answer, None if there was none. reason: one word, the
    server's (`Status.reason`) or this package's. message: one line of at most 256 characters.
    """

    def __init__(self, *, path: str, status: int | None = None, reason: str = "", message: str = "") -> None:
        self.path = path
        self.status = status
        self.reason = reason or type(self).__name__
        self.message = one_line(message)
        super().__init__(path, status, self.reason, self.message)

    def __str__(self) -> str:
        status = "" if self.status is None else f" ({self.status})"
        message = f": {self.message}" if self.message else ""
        return f"{self.path}: {self.reason}{status}{message}"


class NotFound(KubeError):
    """404."""


class Conflict(KubeError):
    """409: another client wrote in between, or a required uid or resourceVersion is outdated."""


class AlreadyExists(Conflict):
    """409 in answer to a create."""


class Gone(KubeError):
    """410: the server has dropped the resourceVersion or the continue token."""


class Forbidden(KubeError):
    """403: the identity is known and lacks the right."""


class Unauthorized(KubeError):
    """401, also after the credentials were read again."""


class Invalid(KubeError):
    """400, 422 and the other 4xx: the server refuses this request; sending it again is useless."""


class _Busy(KubeError):
    """retry_after_s: what the server requested in `Retry-After`, or None."""

    def __init__(
        self,
        *,
        path: str,
        status: int | None = None,
        reason: str = "",
        message: str = "",
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(path=path, status=status, reason=reason, message=message)
        self.retry_after_s = retry_after_s


class TooManyRequests(_Busy):
    """429: nothing was done, and the same request may be sent again later."""


class ServerError(_Busy):
    """5xx."""


class Unreachable(KubeError):
    """No answer: the connection was reset, the name did not resolve, TLS failed.

    sent: False if there was no connection, so that the server has certainly not seen the request.
    """

    def __init__(
        self, *, path: str, status: int | None = None, reason: str = "", message: str = "", sent: bool = True
    ) -> None:
        super().__init__(path=path, status=status, reason=reason, message=message)
        self.sent = sent


class ConnectionRefused(Unreachable):
    """No process listens at the address."""

    def __init__(self, *, path: str, reason: str = "", message: str = "") -> None:
        super().__init__(path=path, reason=reason, message=message, sent=False)


def was_sent(error: Exception) -> bool:
    """Returns whether the server may have received the request."""
    return error.sent if isinstance(error, Unreachable) else True


class DeadlineExceeded(Unreachable):
    """No complete answer within the deadline of the call, or no line within the silence limit of a watch."""


class MalformedReply(KubeError):
    """An answer that violates the API."""


class TooLarge(MalformedReply):
    """An answer of more bytes than the caller accepts."""


_BY_STATUS: Mapping[int, type[KubeError]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
}


def from_status(
    *, path: str, status: int, reason: str = "", message: str = "", retry_after_s: float | None = None
) -> KubeError:
    """Returns the error for an answer with HTTP status (or `Status.code`) `status`, which is not 2xx."""
    if status == 429:
        return TooManyRequests(path=path, status=status, reason=reason, message=message, retry_after_s=retry_after_s)
    if status >= 500:
        return ServerError(path=path, status=status, reason=reason, message=message, retry_after_s=retry_after_s)
    if status == 409 and reason == "AlreadyExists":
        return AlreadyExists(path=path, status=status, reason=reason, message=message)
    if status < 400:
        remedy = message or "no redirect is followed: give the final address of the server"
        return MalformedReply(path=path, status=status, reason=reason, message=remedy)
    return _BY_STATUS.get(status, Invalid)(path=path, status=status, reason=reason, message=message)
