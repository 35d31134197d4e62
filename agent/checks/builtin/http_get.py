"""The check `httpGet`: a GET as the kubelet's probe makes it, from the agent's own network."""

from typing import Annotated, Literal

from msgspec import Meta

from agent.checks.rights import NO_RIGHTS
from agent.checks.state import CheckState, Finding, finding_of
from agent.probe.http import http_get
from agent.probe.result import HandlerError
from agent.probe.targets import HttpRequest, TargetError, http_request
from agent.wire.model import Container, HttpGetAction
from agent.wire.setting_types import NonEmpty, Port
from component.settings import Section

DOC = "a response of 200 to 399 comes with its whole body; asked without a proxy and without TLS verification"
RIGHTS = NO_RIGHTS
_NO_CONTAINER = Container(name="")  # a check has no named ports


class HttpHeader(Section, frozen=True):
    name: Annotated[str, Meta(pattern=r"^[-A-Za-z0-9]+\Z", description="letters, digits and -")]
    value: str = ""


class Settings(Section, frozen=True):
    port: Port
    host: NonEmpty = "127.0.0.1"
    path: str = "/"
    scheme: Literal["HTTP", "HTTPS"] = "HTTP"
    http_headers: tuple[HttpHeader, ...] = ()


class Check:
    def __init__(self, settings: Settings, timeout_s: float) -> None:
        action = HttpGetAction(
            port=settings.port,
            path=settings.path or "/",
            host=settings.host,
            scheme=settings.scheme,
            headers=tuple((header.name, header.value) for header in settings.http_headers),
        )
        try:  # once: it is a third of what we compute for a run
            self._request: HttpRequest | Finding = http_request(action, _NO_CONTAINER, "")
        except TargetError as e:
            self._request = Finding(CheckState.UNKNOWN, str(e))
        self._timeout_s = timeout_s

    def __call__(self) -> Finding:
        """PASSED, FAILED, or UNKNOWN for a host that no request can be sent to."""
        if isinstance(self._request, Finding):
            return self._request
        try:
            return finding_of(http_get(self._request, self._timeout_s))
        except HandlerError as e:
            # kubelet throws this result away and never notices a server that stalls in its body; a check does notice.
            return Finding(CheckState.FAILED, str(e))
