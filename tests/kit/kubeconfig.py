"""Kubeconfig files for one cluster, one user, one context."""

import base64
import json
from pathlib import Path


def token_user(token: str) -> dict[str, str]:
    return {"token": token}


def certificate_user(certificate: Path, key: Path) -> dict[str, str]:
    return {"client-certificate": str(certificate), "client-key": str(key)}


def write(path: Path, *, server: str, ca: Path, user: dict[str, str]) -> Path:
    """JSON is YAML. Mode 0600: it holds a credential."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": "testbed",
                "cluster": {
                    "server": server,
                    "certificate-authority-data": base64.b64encode(ca.read_bytes()).decode(),
                },
            }
        ],
        "users": [{"name": "testbed", "user": user}],
        "contexts": [{"name": "testbed", "context": {"cluster": "testbed", "user": "testbed"}}],
        "current-context": "testbed",
    }
    path.touch(mode=0o600)
    path.write_text(json.dumps(document, indent=1))
    return path
