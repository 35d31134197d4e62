"""One lifecycle hook: a command that the history answers, a request to servers in memory, a sleep, or nothing known.

Each connection is used once here; a kubelet keeps those of hooks for others. Servers that say nothing are left out: a
kubelet waits for them for ever.
"""

import json
from collections.abc import Sequence
from random import Random
from typing import Any
from unittest.mock import patch

import msgspec

from agent.kubelet.pods.hooks import Hook, HookFailed, Hooks
from agent.probe import http as handler
from agent.processes.command import Completed, RuntimeUnavailable
from agent.wire.model import LifecycleHook
from agent.wire.pod import parse_pod
from agent.wire.semantics import Semantics
from tools.differential.servers import Network
from tools.differential.target import Answers, History
from tools.differential.targets.handlers import OUTPUTS, WORDS_OF_COMMANDS
from tools.differential.targets.http import SOUND, VALUES, HttpTarget, at_once, with_tls
from tools.differential.worlds import Json, maybe

SECONDS = (0, 1, 5, 30)
FOREVER_S = 1e9


class HooksTarget(HttpTarget):
    name = "hooks"

    def draw(self, random: Random) -> History:
        served: Json = {"get": {}, "podIP": random.choice(("10.0.0.1", "::1", "")), "replies": []}
        kind = random.choice((*["httpGet"] * 6, "exec", "exec", "sleep", "tcpSocket", "none"))
        hook: Json = {"tcpSocket": {"port": 80}} if kind == "tcpSocket" else {}
        match kind:
            case "httpGet":
                served = super().draw(random)
                if maybe(random, 0.1):  # whether it is asked again without TLS hangs on how an answer begins
                    with_tls(random, served)
                    served["replies"].append(random.choice(SOUND))
                    if maybe(random, 0.3):
                        served["get"]["httpHeaders"] = [{"name": "Authorization", "value": random.choice(VALUES)}]
                hook = {"httpGet": served["get"]}
            case "exec":
                hook = {"exec": {"command": [random.choice(WORDS_OF_COMMANDS) for _ in range(random.randint(1, 3))]}}
            case "sleep":
                hook = {"sleep": {"seconds": random.choice(SECONDS)}}
        container = {"name": "c", "lifecycle": {"postStart": hook}}
        meta = {"uid": "u", "name": "pod", "namespace": "default"}
        return {
            "pod": {"metadata": meta, "spec": {"containers": [container]}},
            "ip": served["podIP"],
            "replies": [_ending(reply) for reply in served["replies"]],
            "run": {
                "code": random.choice((0, 0, 1, 137)),
                "stdout": random.choice(OUTPUTS[:7]),
                "stderr": random.choice(OUTPUTS[:7]),
                "gone": maybe(random, 0.1),
            },
            "cancelled": random.choice((0.5, 2.5)) if kind == "sleep" and maybe(random, 0.5) else None,
        }

    def answer(self, history: History, semantics: Semantics) -> Answers:  # noqa: ARG002 - no gate is asked
        network = Network(history["replies"])
        runtime = _Runtime(history["run"])
        hooks = Hooks(
            runtime.execute, lambda _uid: None, lambda e: runtime.events.append(f"{e.type} {e.reason} {e.message}")
        )
        pod = parse_pod(msgspec.json.encode(history["pod"]))
        container, message = pod.containers[0], ""
        hook = container.post_start or LifecycleHook(None)
        with (
            patch.object(handler, "connect", network.connect),
            patch.object(handler, "Deadline", network.deadline),
        ):
            try:
                started: Any = _Started(history["cancelled"])
                hooks._run(pod, container, "test://1", hook, started, history["ip"], FOREVER_S)
            except HookFailed as e:
                message = str(e).encode("utf-8", "surrogateescape").decode("latin-1")
        return {
            "fails": bool(message),
            "message": message,
            "events": runtime.events,
            "asked": runtime.asked,
            "dialled": network.dialled,
            "sent": [made.sent for made in network.made],
        }

    def told(self, answer: Answers) -> Answers:
        """The words of a client's error are Go's own, and so is how it prints a hook that it does not know."""
        if "message" not in answer:
            return answer
        message = answer["message"].encode("latin-1").decode(errors="replace")
        if message.startswith("HTTP lifecycle hook"):
            message = message.partition(" - error: ")[0]
        if message.startswith("Cannot run handler"):
            message = message.partition(":")[0]
        return {**answer, "message": message}


def _ending(reply: Any) -> Any:
    """At once, and then closed."""
    if isinstance(reply, str):
        return reply
    return at_once("".join(part["text"] for part in reply["parts"]), reply["tls"])


class _Started(Hook):
    """`cancelled` after so many seconds."""

    def __init__(self, after: float | None) -> None:
        super().__init__()
        self.cancelled: Any = self
        self._after = after

    def wait(self, seconds: float) -> bool:
        return self._after is not None and self._after < seconds


class _Runtime:
    def __init__(self, run: Json) -> None:
        self._run = run
        self.asked: list[str] = []
        self.events: list[str] = []

    def execute(self, _container_id: str, command: Sequence[str], _timeout_s: float) -> Completed:
        self.asked.append(json.dumps([*command], separators=(",", ":"), ensure_ascii=False))
        if self._run["gone"]:
            raise RuntimeUnavailable("the runtime is gone")
        stdout, stderr = (self._run[name].encode("latin-1") for name in ("stdout", "stderr"))
        return Completed(self._run["code"], stdout, stderr)
