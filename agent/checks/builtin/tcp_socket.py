"""The check `tcpSocket`: a connection can be opened, from the agent's own network."""

from agent.checks.rights import NO_RIGHTS
from agent.checks.state import Finding, finding_of
from agent.probe.tcp import tcp_connect
from agent.wire.setting_types import NonEmpty, Port
from component.settings import Section

DOC = "a TCP connection can be opened"
RIGHTS = NO_RIGHTS


class Settings(Section, frozen=True):
    port: Port
    host: NonEmpty = "127.0.0.1"


class Check:
    def __init__(self, settings: Settings, timeout_s: float) -> None:
        self._settings = settings
        self._timeout_s = timeout_s

    def __call__(self) -> Finding:
        """PASSED or FAILED."""
        return finding_of(tcp_connect(self._settings.host, self._settings.port, self._timeout_s))
