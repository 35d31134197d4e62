"""The token of a static pod's extender on a host, and what is reported of it."""

import base64
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from kube import contract
from tools.testbed.hosts.hosts import Hosts
from tools.testbed.shared.api import Api

UNIT = "readygate-extender-token"
FILE = "/etc/kubernetes/readygate-extender/credentials/token"
ADMIN = "/etc/kubernetes/admin.conf"
HOUR_S = 3600
ISSUER = "https://kubernetes.default.svc.cluster.local"
ACCOUNT = f"/api/v1/namespaces/{contract.NAMESPACE}/serviceaccounts/{contract.NAME_EXTENDER}"
SIGN = "openssl dgst -sha256 -sign /etc/kubernetes/pki/sa.key | base64 --wrap=0"


def on_the_host(hosts: Hosts) -> str:
    return hosts.ssh("control-1", f"cat {FILE}").stdout.strip()


def lifetime(token: str) -> tuple[int, int]:
    """When it was issued, and when it ends."""
    part = token.split(".")[1]
    claims = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    return claims["iat"], claims["exp"]


def ending(hosts: Hosts, api: Api, left_s: int) -> str:
    """A token of the extender's account that ends soon, of an hour: the API server itself gives none below ten minutes.
    Signed with its key."""
    ends = int(time.time()) + left_s
    account = {"name": contract.NAME_EXTENDER, "uid": api.get(ACCOUNT)["metadata"]["uid"]}
    claims = {
        "iss": ISSUER,
        "aud": [ISSUER],
        "iat": ends - HOUR_S,
        "nbf": ends - HOUR_S,
        "exp": ends,
        "sub": f"system:serviceaccount:{contract.NAMESPACE}:{contract.NAME_EXTENDER}",
        "kubernetes.io": {"namespace": contract.NAMESPACE, "serviceaccount": account},
    }
    parts = ".".join(url_safe(json.dumps(part).encode()) for part in ({"alg": "RS256", "typ": "JWT"}, claims))
    signature = base64.b64decode(hosts.ssh("control-1", SIGN, stdin=parts).stdout)
    return f"{parts}.{url_safe(signature)}"


def url_safe(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def place(hosts: Hosts, token: str) -> None:
    new = f"{FILE}.test"
    own = f"chown root:69376 {new} && chmod 640 {new}"
    hosts.ssh("control-1", f"cat > {new} && {own} && mv {new} {FILE}", stdin=token + "\n")


def is_accepted(api: Api, token: str) -> bool:
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
    answer = api.create("/apis/authentication.k8s.io/v1/tokenreviews", review)
    return bool(answer["status"].get("authenticated"))


def metric(hosts: Hosts, name: str) -> float:
    """Of the extender of control-1: when its token was `issued`, and its `expiry`."""
    page = hosts.ssh("control-1", "curl --silent --fail http://127.0.0.1:9377/metrics").stdout
    (value,) = re.findall(rf"^readygate_credentials_{name}_timestamp_seconds (\S+)$", page, re.MULTILINE)
    return float(value)


def findings(hosts: Hosts) -> list[dict[str, Any]]:
    """What doctor reports."""
    command = [sys.executable, "-m", "cli", "doctor", f"--kubeconfig={hosts.kubeconfig}", "--output=json"]
    environ = os.environ | {"PATH": f"{Path(hosts.kubectl_path()).parent}:{os.environ['PATH']}"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=environ)
    found: list[dict[str, Any]] = json.loads(done.stdout)["findings"]
    return found


def units(hosts: Hosts, host: str = "control-1") -> set[str]:
    """The units of the renewal that systemd knows, also those whose file is gone; and their files."""
    listed = hosts.ssh(host, f"systemctl list-units --all --plain --no-legend '{UNIT}*'").stdout
    files = hosts.ssh(host, f"cd /etc/systemd/system && ls -d {UNIT}* */{UNIT}* 2>/dev/null || true").stdout
    return {line.split()[0] for line in listed.splitlines()} | {Path(name).name for name in files.split()}
