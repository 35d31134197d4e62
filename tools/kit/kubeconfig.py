"""Kubeconfig files for one cluster, one user, one context."""

import json
from collections.abc import Mapping
from pathlib import Path

_NAME = "testbed"


def token_user(token: str) -> dict[str, str]:
    return {"token": token}


def certificate_user(certificate: Path, key: Path) -> dict[str, str]:
    return {"client-certificate": str(certificate), "client-key": str(key)}


def authority_file(certificate: Path) -> dict[str, str]:
    """The cluster's authority, by name.

    The package `kubernetes` writes one that is inside the file to /tmp, where it stays when its reader is killed.
    """
    return {"certificate-authority": str(certificate.absolute())}


def write(
    path: Path,
    *,
    server: str,
    user: Mapping[str, object] | None = None,
    cluster: Mapping[str, object] | None = None,
) -> Path:
    """JSON is YAML. user, cluster: more of the entries' content. Mode 0600: it may hold a credential."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": _NAME, "cluster": {"server": server, **(cluster or {})}}],
        "users": [{"name": _NAME, "user": dict(user or {})}],
        "contexts": [{"name": _NAME, "context": {"cluster": _NAME, "user": _NAME}}],
        "current-context": _NAME,
    }
    path.touch(mode=0o600)
    path.write_text(json.dumps(document, indent=1))
    return path
