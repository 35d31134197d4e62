"""One probe, with its retries and events: commands that the history answers, connections to servers of ours on
loopback, ports by number and by name. What is made of an HTTP answer is target `http`."""

import json
import re
import socket
from collections.abc import Sequence
from random import Random
from typing import Any

import msgspec

from agent.kubelet.prober.prober import Prober
from agent.probe import names
from agent.probe.names import look_up
from agent.probe.result import ProbeErrored
from agent.processes.command import Completed, ExecTimeout, RuntimeUnavailable
from agent.wire.model import Container, Pod, ProbeType
from agent.wire.pod import parse_pod
from agent.wire.semantics import Semantics
from tools.differential import loopback
from tools.differential.target import Answers, History
from tools.differential.targets.prober import WORDS
from tools.differential.worlds import Json, maybe

BOTH, FOUR, SIX = "70001", "70002", "70003"
"""Ports of the servers, as histories have them: numbers that no port has."""
LATE_S = 60
"""For what meets a network, where whatever a history has answers at once: on no machine, however busy, does it take so
long. Commands meet none, so their timeouts are drawn."""
SOON_S = 2
"""For the same where many are tried and some servers say nothing: it is looked whether what differs still does."""
TYPES = {"Liveness": ProbeType.LIVENESS, "Readiness": ProbeType.READINESS, "Startup": ProbeType.STARTUP}
PORTS: tuple[int | str, ...] = (
    *[int(BOTH)] * 4,
    *(int(FOUR), int(SIX), 1, 0, -1, 65536, 2**31 - 1),
    *["web"] * 4,
    *(
        "other",
        "none",
        "",
        BOTH,
        f"+{BOTH}",
        f"0{BOTH}",
        f" {BOTH}",
        "0",
        "-1",
        "65536",
        "1e3",
        "0x50",
        "1_0",
        "9" * 30,
    ),
)
HOSTS = (
    *[""] * 4,
    *("127.0.0.1", "::1", "localhost", "127.0.0.2", "[::1]", "::1%lo", "::1%1", "127.1", "0", "0x7f.1", "2130706433"),
    *(
        "0177.0.0.1",
        "127.0.0.01",
        "::ffff:127.0.0.1",
        "a b",
        "127.0.0.1:80",
        "nobody.invalid",
        "[127.0.0.1]",
        "[a",
        ".",
        "a]",
    ),
    *("[[::1]", "]", "[127.0.0.1]]", "127.0.0.1]:", "[::1]:", "[a]b", "[a]:b:", ":", "::", "0::1", "0::0", "0.0.0.0"),
)
PARTS_OF_HOSTS = (
    *("127", "0", "1", ".", ".", ":", "::", "::1", "[", "]", "%", "%lo", "lo", "a", "ffff", "0x7f", "x", "-", "_", " "),
    *("127.0.0.1", "127.0.0.1", "/8", "\u00fc", "1e1", "256", "localhost", "00", "\x00", "::ffff:"),
)
PARTS_OF_PORTS = ("0", "1", "9", "+", "-", "_", " ", "e", "x", ".", "\u0663", "\n", "web", BOTH, "65535", "a")
NAMES = ("A", "B", "C", "")
WORDS_OF_COMMANDS = (
    *("true", "", "$(A)", "$(B)$(C)", "$$(A)", "$(A", "$()", "$(none)", "$$$(B)", "ü", "a b", "$A", "$(A))"),
)
OUTPUTS = (
    "",
    "",
    "so",
    "two\nlines",
    "\xc3\xbc",
    "\xff",
    "a\xc3",
    "x" * 10239,
    "y" * 10240,
    "z" * 10241,
    "\xc3\xbc" * 5121,
)
FAULTS = (*[""] * 8, "timeout", "gone")
EXIT_CODES = (0, 0, 1, 2, 126, 137, 255, -1)
LOOKED_UP = re.compile(r"(dial tcp: lookup \S*?)(?: on [^ ]+: .*|: no such host\Z)", re.DOTALL)


class HandlersTarget:
    name = "handlers"

    def draw(self, random: Random) -> History:
        kind = random.choice(tuple(TYPES))
        action = _action(random)
        timeout_s = random.choice((1, 2, 61)) if "exec" in action else LATE_S
        probe: Json = {"timeoutSeconds": timeout_s, "periodSeconds": 1}
        probe |= {"successThreshold": 1, "failureThreshold": 1}
        container: Json = {"name": "a", f"{kind.lower()}Probe": {**probe, **action}}
        if maybe(random, 0.8):
            container["ports"] = [
                {"name": name, "containerPort": random.choice((int(BOTH), int(BOTH), int(FOUR), int(SIX), 1, 0))}
                for name in random.choices(("web", "web", "other", ""), k=random.choice((1, 1, 2)))
            ]
        container["env"] = [_variable(random) for _ in range(random.choice((0, 1, 2, 3)))]
        # Without a host the dialer takes IPv4 alone; on a machine without that our own checks would have nowhere to go.
        ip = random.choice(("127.0.0.1", "127.0.0.1", "::1", "" if SIX not in json.dumps(container) else "::1"))
        pod = {"metadata": {"uid": "u", "name": "pod", "namespace": "default"}, "spec": {"containers": [container]}}
        return {"pod": {**pod, "status": {"podIP": ip}}, "type": kind, "runs": [_run(random) for _ in range(3)]}

    def answer(self, history: History, semantics: Semantics) -> Answers:  # noqa: ARG002 - no gate is asked
        numbers = dict(zip((BOTH, FOUR, SIX), loopback.ports(), strict=True))
        history = json.loads(_replaced(json.dumps(history), numbers))
        pod = parse_pod(msgspec.json.encode(history["pod"]))
        runtime, container = _Runtime(history["runs"]), pod.containers[0]
        prober = Prober(runtime.execute, runtime.record)
        result, errored = "Failure", True
        names.look_up = _looked_up
        try:
            result = WORDS[prober.probe(TYPES[history["type"]], pod, pod.status, container, "test://1")]
            errored = False
        except ProbeErrored:
            pass
        finally:
            names.look_up = look_up
        symbols = {number: symbol for symbol, number in numbers.items()}
        events = [_replaced(event, symbols).encode().decode("latin-1") for event in runtime.events]
        return {"result": result, "errored": errored, "events": events, "asked": runtime.asked}

    def told(self, answer: Answers) -> Answers:
        """Why a name is not found is said by who looked it up. Outputs are text for people."""
        if "events" not in answer:
            return answer
        events = (event.encode("latin-1").decode(errors="replace") for event in answer["events"])
        return {**answer, "events": [LOOKED_UP.sub(r"\1", event) for event in events]}


def hurried(history: History) -> History:
    """The same with less time for what meets a network."""
    match history:
        case dict():
            return {k: SOON_S if (k, v) == ("timeoutSeconds", LATE_S) else hurried(v) for k, v in history.items()}
        case list():
            return [hurried(part) for part in history]
    return history


def _looked_up(host: str) -> list[names.Address]:
    """Nobody outside is asked for a name; what the C library takes for an address, as 127.1, it answers by itself."""
    return look_up(host, 0 if host == "localhost" else socket.AI_NUMERICHOST)


def _action(random: Random) -> Json:
    port = _apart(_made(random, PARTS_OF_PORTS)) if maybe(random, 0.1) else random.choice(PORTS)
    match random.choice(("exec", "exec", "tcp", "tcp", "tcp", "http", "none")):
        case "exec":
            return {"exec": {"command": [random.choice(WORDS_OF_COMMANDS) for _ in range(random.randint(1, 3))]}}
        case "tcp":
            host = _made(random, PARTS_OF_HOSTS) if maybe(random, 0.3) else random.choice(HOSTS)
            return {"tcpSocket": {"port": port, "host": host}}
        case "http":
            return {"httpGet": {"port": port, "host": "127.0.0.1", "path": "/", "scheme": "HTTP"}}
    return {}


def _made(random: Random, of: Sequence[str]) -> str:
    return "".join(random.choice(of) for _ in range(random.randint(1, 6)))


def _apart(port: str) -> str:
    """With no digit before the number of a server: in an answer, digits before the true port may look like it, too."""
    return re.sub(f"(?<=[0-9])(?={BOTH})", "+", port)


def _variable(random: Random) -> Json:
    variable: Json = {"name": random.choice(NAMES)}
    if maybe(random, 0.2):
        reference = {"name": "none", "key": "k", "optional": True}
        return {**variable, "valueFrom": {"configMapKeyRef": reference}}
    return {**variable, "value": random.choice(("", "v", "$(A)", "$$"))}


def _run(random: Random) -> Json:
    said = {"stdout": random.choice(OUTPUTS), "stderr": random.choice(OUTPUTS[:7])}
    return {**said, "code": random.choice(EXIT_CODES), "fault": random.choice(FAULTS)}


def _replaced(text: str, by: dict[str, str]) -> str:
    for one, other in by.items():
        text = text.replace(one, other)
    return text


class _Runtime:
    """Answers commands as the history has it, the last run again and again."""

    def __init__(self, runs: list[Json]) -> None:
        self._runs = runs
        self.asked: list[str] = []
        self.events: list[str] = []

    def execute(self, _container_id: str, command: Sequence[str], timeout_s: float) -> Completed:
        run: Any = self._runs.pop(0) if len(self._runs) > 1 else self._runs[0]
        self.asked.append(json.dumps([f"{timeout_s:g}", *command], separators=(",", ":"), ensure_ascii=False))
        match run["fault"]:
            case "timeout":
                raise ExecTimeout(command, timeout_s)
            case "gone":
                raise RuntimeUnavailable("the runtime is gone")
        return Completed(run["code"], run["stdout"].encode("latin-1"), run["stderr"].encode("latin-1"))

    def record(self, _pod: Pod, _container: Container, kind: str, reason: str, message: str) -> None:
        self.events.append(f"{kind} {reason} {message}")
