"""The tcpSocket handler, as pkg/probe/tcp: a connection that can be opened is a success."""

from agent.probe.dial import Deadline, DialError, connect
from agent.probe.outcome import HandlerResult, Outcome
from agent.probe.targets import join_host_port


def tcp_connect(host: str, port: int, timeout_s: float) -> Outcome:
    """One probe. Every error is a failure."""
    try:
        connect(host, port, Deadline(timeout_s)).close()
    except TimeoutError:
        return Outcome(HandlerResult.FAILURE, f"dial tcp {join_host_port(host, port)}: i/o timeout")
    except (DialError, OSError) as e:
        return Outcome(HandlerResult.FAILURE, str(e))
    return Outcome(HandlerResult.SUCCESS)
