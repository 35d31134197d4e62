"""The tcpSocket handler, as pkg/probe/tcp: a connection that can be opened is a success."""

from agent.probe.dial import Deadline, DialError, connect
from agent.probe.result import HandlerResult, Outcome
from agent.probe.targets import join_host_port


def tcp_connect(host: str, port: int, timeout_s: float) -> Outcome:
    """One probe. Every error is a failure."""
    where = join_host_port(host, port)
    try:
        connect(_split(where, host), port, Deadline(timeout_s)).close()
    except TimeoutError:
        return Outcome(HandlerResult.FAILURE, f"dial tcp {where}: i/o timeout")
    except (DialError, OSError) as e:
        return Outcome(HandlerResult.FAILURE, str(e))
    return Outcome(HandlerResult.SUCCESS)


def _split(where: str, host: str) -> str:
    """The host again, once the dialer has taken the port off: net.SplitHostPort, which minds brackets. Raises
    DialError."""
    if "[" not in host and "]" not in host:
        return host
    if where[0] != "[":
        inside, rest, why = host, "", ""
    elif (end := where.find("]")) < 0:
        inside, rest, why = "", "", "missing ']' in address"
    else:
        inside, rest = where[1:end], where[end + 1 :]
        whole = rest.rfind(":") == 0
        why = "" if whole else "too many colons in address" if rest.startswith(":") else "missing port in address"
    if not why and "[" in inside + rest:
        why = "unexpected '[' in address"
    if not why and "]" in (inside if where[0] != "[" else rest):
        why = "unexpected ']' in address"
    if why:
        raise DialError(f"dial tcp: address {where}: {why}")
    return inside
