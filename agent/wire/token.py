"""TokenRequest: a token of a service account that is bound to one pod, and what the reply says of it. Pure."""

import json
from typing import NamedTuple

import msgspec

from agent.wire.status import Int64


class Issued(NamedTuple):
    """A token, and for how long it holds from when it was asked for."""

    token: str
    lifetime_s: float


class _Spec(msgspec.Struct, rename="camel"):
    expiration_seconds: Int64 = 0


class _Status(msgspec.Struct):
    token: str


class _TokenRequest(msgspec.Struct):
    status: _Status
    spec: _Spec = msgspec.field(default_factory=_Spec)


_decoder = msgspec.json.Decoder(_TokenRequest)


def token_request(*, pod_name: str, pod_uid: str, lifetime_s: int) -> bytes:
    """Asks for a token that dies with the pod. Without audiences, for it is the API server's own that is meant, and a
    node may name none but those its pods mount."""
    bound = {"kind": "Pod", "apiVersion": "v1", "name": pod_name, "uid": pod_uid}
    spec = {"expirationSeconds": lifetime_s, "boundObjectRef": bound}
    return json.dumps({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}).encode()


def parse_issued(raw: bytes) -> Issued:
    """Raises msgspec.DecodeError (or its ValidationError) for a reply without a token."""
    reply = _decoder.decode(raw)
    return Issued(reply.status.token, float(reply.spec.expiration_seconds))
