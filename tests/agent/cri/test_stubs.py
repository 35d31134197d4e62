"""The messages are those of api.proto, which is upstream's, byte for byte."""

import hashlib
import re
from pathlib import Path

from agent.cri.api_pb2 import DESCRIPTOR

PROTO = Path(__file__).resolve().parents[3] / "agent/cri/api.proto"
# sha256 of pkg/apis/runtime/v1/api.proto in k8s.io/cri-api v0.36.3: who takes a newer one changes it here.
UPSTREAM = "6d130c2651d335bfc755d25efc63072a1cd1eba3591ead6422dc0a27f20167f3"


def words() -> list[str]:
    """Of the source, without comments; a brace or semicolon ends a sentence."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", PROTO.read_text(), flags=re.DOTALL)
    return [" ".join(part.split()) for part in re.findall(r"[^{};]*[{};]", text)]


def in_the_source() -> set[str]:
    """Each field, value and call, as "Outer.Message.field = 1"."""
    found: set[str] = set()
    inside: list[str] = []
    for sentence in words():
        if match := re.fullmatch(r"(message|enum|service) (\w+) ?\{", sentence):
            inside.append(match[2])
        elif match := re.fullmatch(r"oneof \w+ \{", sentence):
            inside.append("")
        elif match := re.match(r"rpc (\w+) ?\((\w+)\) returns \((stream )?(\w+)\)", sentence):
            found.add(f"{inside[-1]}.{match[1]}({match[2]}) {match[3] or ''}{match[4]}")
            inside.append("")
        elif sentence == "}":
            inside.pop()
        elif inside and (match := re.search(r"(\w+) = (\d+) ?(\[.*\])? ?;$", sentence)):
            found.add(f"{'.'.join(name for name in inside if name)}.{match[1]} = {match[2]}")
    return found


def in_the_messages() -> set[str]:
    found = {f"{e.name}.{v.name} = {v.number}" for e in DESCRIPTOR.enum_types_by_name.values() for v in e.values}
    for service in DESCRIPTOR.services_by_name.values():
        for m in service.methods:
            stream = "stream " if m.server_streaming else ""
            found.add(f"{service.name}.{m.name}({m.input_type.name}) {stream}{m.output_type.name}")
    messages = list(DESCRIPTOR.message_types_by_name.values())
    while messages:
        message = messages.pop()
        if message.GetOptions().map_entry:
            continue
        messages += message.nested_types
        name = message.full_name.removeprefix("runtime.v1.")
        found |= {f"{name}.{field.name} = {field.number}" for field in message.fields}
        found |= {f"{name}.{e.name}.{v.name} = {v.number}" for e in message.enum_types for v in e.values}
    return found


def test_the_source_is_upstreams() -> None:
    assert UPSTREAM == hashlib.sha256(PROTO.read_bytes()).hexdigest()


def test_the_messages_are_made_of_the_source() -> None:
    """Else run `make stubs`."""
    assert len(in_the_source()) > 590
    assert in_the_source() == in_the_messages()
