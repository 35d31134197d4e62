"""The messages are those of api.proto. That its numbers are upstream's, tests/plane/test_upstream.py says."""

import re
from pathlib import Path

from agent.podsapi.api_pb2 import DESCRIPTOR

PROTO = Path(__file__).resolve().parents[3] / "agent/podsapi/api.proto"


def test_the_messages_are_made_of_the_source() -> None:
    """Else run `make stubs`."""
    text = re.sub(r"//[^\n]*", "", PROTO.read_text())
    fields = {
        f"{message}.{name} = {number}"
        for message, body in re.findall(r"message (\w+) \{(.*?)\}", text, re.DOTALL)
        for name, number in re.findall(r"(\w+)\s+=\s+(\d+);", body)
    }
    made = {
        f"{m.name}.{field.name} = {field.number}"
        for m in DESCRIPTOR.message_types_by_name.values()
        for field in m.fields
    }
    assert fields == made
    assert 111 == len(fields)
