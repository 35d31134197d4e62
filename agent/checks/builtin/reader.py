"""The check `reader`: what does another agent say, which sees more of this node?

An agent in a pod sees its own network, no devices, and of processes its own. The chart can put a second agent beside
it, in a privileged container without the pod's credentials (`agent.reader` of its values): that one runs the checks
that take more, and this check asks it for them, over loopback at `/checks`. Its word is taken as it is, for its own
thresholds have been counted: a check of it that closes fails this one, with its name and its words; one that warns
makes this one warn.

A reader that does not answer, or has not looked yet, says nothing about the node: that is unknown. With `periodSeconds`
1 what it finds is known a second later.
"""

import contextlib
import socket
import time
from collections.abc import Sequence
from http import HTTPStatus

import msgspec

from agent.checks.rights import NO_RIGHTS
from agent.checks.state import CheckState, Finding, Severity
from agent.probe.reply import Reader, ReplyError, read_at_most, read_head
from agent.wire.condition import REASON_STARTING
from agent.wire.setting_types import NonEmpty, Port
from component.settings import Section

DOC = "the agent with more rights beside this one says that its checks pass"
RIGHTS = NO_RIGHTS
LIMIT_BYTES = 2**18
BLOCK_BYTES = 2**16
_BAD = (CheckState.FAILED, CheckState.HUNG, CheckState.UNKNOWN)


class Settings(Section, frozen=True):
    port: Port = 9378
    host: NonEmpty = "127.0.0.1"


class _Told(msgspec.Struct):
    name: str
    severity: str
    state: str
    output: str = ""
    kept: bool = False


class _Page(msgspec.Struct):
    healthy: bool
    reason: str
    checks: list[_Told]


class Check:
    def __init__(self, settings: Settings, timeout_s: float) -> None:
        self._place = (settings.host, settings.port)
        self._timeout_s = timeout_s

    def __call__(self) -> Finding:
        """PASSED, WARNED, FAILED or NOT_APPLICABLE as the reader says, UNKNOWN without its word."""
        try:
            page = msgspec.json.decode(_asked(self._place, time.monotonic() + self._timeout_s), type=_Page)
        except TimeoutError:
            return Finding(CheckState.UNKNOWN, f"the reader at port {self._place[1]} has not answered in time")
        except OSError as e:
            return Finding(
                CheckState.UNKNOWN, f"the reader at port {self._place[1]} does not answer: {e.strerror or e}"
            )
        except (ReplyError, ValueError, msgspec.DecodeError):
            return Finding(CheckState.UNKNOWN, f"at port {self._place[1]} answers somebody who is no agent")
        return judge(page.healthy, page.reason, page.checks)


def judge(healthy: bool, reason: str, checks: Sequence[_Told]) -> Finding:
    """What the reader's word is for this node."""
    bad = [one for one in checks if one.state in _BAD and not one.kept]
    gating = [one for one in bad if one.severity == Severity.GATE]
    if not healthy and reason == REASON_STARTING:
        return Finding(CheckState.UNKNOWN, "the reader has not looked yet")
    if not healthy:
        return Finding(CheckState.FAILED, _lines(gating or bad) or f"the reader says {reason}")
    if bad or any(one.state == CheckState.WARNED for one in checks):
        return Finding(
            CheckState.WARNED, _lines([one for one in checks if one in bad or one.state == CheckState.WARNED])
        )
    applicable = sum(one.state != CheckState.NOT_APPLICABLE for one in checks)
    if checks and not applicable:
        return Finding(CheckState.NOT_APPLICABLE, f"none of its checks is applicable ({len(checks)})")
    return Finding(CheckState.PASSED, f"its checks passed ({applicable})")


def _lines(checks: Sequence[_Told]) -> str:
    return "; ".join(f"{one.name} {one.state}: {one.output}" for one in checks)


def _asked(place: tuple[str, int], until: float) -> bytes:
    """The body. Raises OSError, TimeoutError, ReplyError or ValueError where it is no answer of an agent."""
    with contextlib.closing(socket.create_connection(place, _left_s(until))) as connection:

        def receive() -> bytes:
            connection.settimeout(_left_s(until))
            return connection.recv(BLOCK_BYTES)

        connection.settimeout(_left_s(until))
        connection.sendall(b"GET /checks HTTP/1.1\r\nHost: reader\r\nConnection: close\r\n\r\n")
        reader = Reader(receive)
        head = read_head(reader)
        if head.status != HTTPStatus.OK:
            raise ValueError(f"{head.status} instead of its checks")
        return read_at_most(reader, head, LIMIT_BYTES)


def _left_s(until: float) -> float:
    """Raises TimeoutError."""
    left_s = until - time.monotonic()
    if left_s <= 0:
        raise TimeoutError
    return left_s
