"""The messages are those of api.proto, which is upstream's, byte for byte."""

import hashlib
import re
from pathlib import Path

from agent.kubelet.plugins.api_pb2 import DESCRIPTOR

PROTO = Path(__file__).resolve().parents[4] / "agent/kubelet/plugins/api.proto"
# sha256 of pkg/apis/pluginregistration/v1/api.proto in k8s.io/kubelet v0.36.3: who takes a newer one changes it here.
UPSTREAM = "7a67a0000a1a167c155286834bc9ccb489f8bcdb394e006daba270189c272afa"


def test_the_source_is_upstreams() -> None:
    assert UPSTREAM == hashlib.sha256(PROTO.read_bytes()).hexdigest()


def test_the_messages_are_made_of_the_source() -> None:
    """Else run `make stubs`."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", PROTO.read_text(), flags=re.DOTALL)
    fields = {
        f"{message}.{name} = {number}"
        for message, body in re.findall(r"message (\w+) \{(.*?)\}", text, re.DOTALL)
        for name, number in re.findall(r"(\w+)\s+=\s+(\d+);", body)
    }
    calls = {(name, asked, said) for name, asked, said in re.findall(r"rpc (\w+)\((\w+)\) returns \((\w+)\)", text)}
    made = {
        f"{m.name}.{field.name} = {field.number}"
        for m in DESCRIPTOR.message_types_by_name.values()
        for field in m.fields
    }
    (service,) = DESCRIPTOR.services_by_name.values()
    assert (fields, calls) == (made, {(m.name, m.input_type.name, m.output_type.name) for m in service.methods})
    assert 6 == len(fields)
