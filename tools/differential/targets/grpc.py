"""The grpc handler, against a server that speaks as much HTTP/2 as a history has bytes for."""

import json
import re
from functools import cache
from random import Random
from struct import pack
from urllib.parse import quote

from agent.wire.semantics import Semantics
from tools.differential.scripted import Script, Scripted
from tools.differential.target import Answers, History
from tools.differential.targets.handlers import LATE_S, HandlersTarget
from tools.differential.worlds import Json, maybe

PORT = 70004
DATA, HEADERS, RST_STREAM, SETTINGS = 0, 1, 3, 4
END_STREAM, END_HEADERS = 1, 4
GREETING = pack(">HBBBI", 0, 0, SETTINGS, 0, 0)
TYPES = (*["application/grpc"] * 3, "application/grpc+proto", "application/grpc;x=y")
CODES = (*["0"] * 12, *(str(code) for code in range(17)))
SERVING = (*[1] * 8, 0, 2, 3, 4, 200)
SERVICES = (None, "", "a", "readiness", "a.b/C", "\u00fc", "x" * 300)
WHY = re.compile(r"(?<=desc = ).*|(?<=grpc\.health\.v1\.Health\)).*", re.DOTALL)
WORDS = ("", "no", "a b", "50%", "\u00fc")


class GrpcTarget(HandlersTarget):
    name = "grpc"

    def draw(self, random: Random) -> History:
        action: Json = {"port": PORT}
        if (service := random.choice(SERVICES)) is not None:
            action["service"] = service
        probe = {"timeoutSeconds": LATE_S, "periodSeconds": 1}
        probe |= {"successThreshold": 1, "failureThreshold": 1}
        if maybe(random, 0.001):  # nobody listens, which takes the whole of its time
            action["port"], probe["timeoutSeconds"] = 1, 1
        container: Json = {"name": "a", "livenessProbe": {**probe, "grpc": action}}
        pod = {"metadata": {"uid": "u", "name": "pod", "namespace": "default"}, "spec": {"containers": [container]}}
        pod["status"] = {"podIP": "127.0.0.1"}
        script = {"greeting": _text(GREETING), "reply": [_text(frame) for frame in _reply(random)]}
        return {"pod": pod, "type": "Liveness", "runs": [], "script": script}

    def answer(self, history: History, semantics: Semantics) -> Answers:
        server, given = _server(), history["script"]
        server.script = script = script_of(given)
        answer = super().answer(json.loads(json.dumps(history).replace(str(PORT), str(server.port))), semantics)
        return {**answer, "asked": script.asked}

    def told(self, answer: Answers) -> Answers:
        """Not the words behind a code, which are a library's own but where the server has sent them."""
        answer = super().told(answer)
        if "events" not in answer:
            return answer
        return {**answer, "events": [WHY.sub("", event) for event in answer["events"]]}


@cache
def _server() -> Scripted:
    return Scripted()


def script_of(drawn: Json) -> Script:
    return Script(drawn["greeting"].encode("latin-1"), "".join(drawn["reply"]).encode("latin-1"))


def _reply(random: Random) -> list[bytes]:
    """Frame by frame, of stream 1: headers, messages, trailers; now and then something is missing, odd, or cut."""
    head, code = [(":status", "200"), ("content-type", random.choice(TYPES))], random.choice(CODES)
    tail = [("grpc-status", code)] if maybe(random, 0.95) else []
    if maybe(random, 0.4):
        tail.append(("grpc-message", quote(random.choice(WORDS))))
    if maybe(random, 0.15):
        return [_frame(HEADERS, END_HEADERS | END_STREAM, _fields(head + tail))]
    parts = [_frame(HEADERS, END_HEADERS, _fields(head))]
    parts += [_frame(DATA, 0, _message(random)) for _ in range(random.choice((0, 1, 1, 1, 1, 1, 1)))]
    parts.append(_frame(HEADERS, END_HEADERS | END_STREAM, _fields(tail)))
    if maybe(random, 0.1):
        parts[-1] = _frame(RST_STREAM, 0, pack(">I", random.choice((2, 8, 11, 13))))
    return parts


def _message(random: Random) -> bytes:
    body = b"" if maybe(random, 0.05) else b"\x08" + _varint(random.choice(SERVING))
    if maybe(random, 0.03):
        body += random.choice((b"\x10\x01", b"\x12\x01a", b"\x08\x02", b"\xff", b"\x0a"))
    return pack(">BI", 0, len(body)) + body


def _varint(number: int) -> bytes:
    return bytes((number,)) if number < 128 else bytes((number & 127 | 128, number >> 7))


def _frame(kind: int, flags: int, payload: bytes) -> bytes:
    return pack(">BHBBI", len(payload) >> 16, len(payload) & 0xFFFF, kind, flags, 1) + payload


def _fields(pairs: list[tuple[str, str]]) -> bytes:
    """Literals that are not to be remembered, without Huffman's code."""
    return b"".join(b"\0" + _literal(name) + _literal(value) for name, value in pairs)


def _literal(text: str) -> bytes:
    return bytes((len(text),)) + text.encode()


def _text(data: bytes) -> str:
    """One character a byte."""
    return data.decode("latin-1")
