"""Manifests for tests."""

import json
from typing import Any

from agent.wire.manifest import StaticPod, static_pod

NODE = "node-1"
PATH = "/manifests/web.yaml"


def manifest(name: str = "web", **more: Any) -> dict[str, Any]:
    """`more`: fields of the spec."""
    spec = {"containers": [{"name": "c", "image": "i"}], **more}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def as_bytes(value: object) -> bytes:
    return json.dumps(value).encode()


def made(value: object, path: str = PATH, node: str = NODE) -> StaticPod:
    return static_pod(value if isinstance(value, bytes) else as_bytes(value), path, node, "2026-01-02T03:04:05Z")
