"""What is measured: readygate's extender and its Go counterpart, started the same way, and the API stub both follow."""

import hashlib
import json
import socket
import ssl
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kube import contract
from tests.bench.processes import Measured, MeasurementError
from tests.kit import kubeconfig
from tests.kit.child import ProcessError
from tests.kit.ports import free_port
from tests.kit.programs import Program
from tests.testbed.shared import binaries

ROOT = Path(__file__).resolve().parents[2]
SOURCE = Path(__file__).resolve().parent / "goextender"
WORK = ROOT / "build" / "bench"
PODS_PATH = f"/api/v1/namespaces/{contract.NAMESPACE}/pods"


@dataclass(frozen=True)
class Api:
    """How an arm reaches its API server: as a pod does by the files of its service account, or by a kubeconfig.

    service_account: a folder with `token` and `ca.crt`, or None where there are only the files of a kubeconfig.
    """

    server: str
    kubeconfig: Path
    service_account: Path | None = None
    ca_file: Path | None = None
    token_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None


@dataclass(frozen=True)
class Arm:
    """A running extender. url: of its filter."""

    name: str
    child: Measured
    url: str


def go_binary(progress: Callable[[str], None]) -> Path:
    """The built Go module, built anew when its source has changed."""
    digest = hashlib.sha256()
    for path in sorted(SOURCE.glob("*")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    binary = WORK / f"goextender-{digest.hexdigest()[:16]}"
    if not binary.exists():
        progress("building the Go extender, load client and API stub")
        WORK.mkdir(parents=True, exist_ok=True)
        part = binary.with_suffix(".part")
        built = subprocess.run(
            [binaries.go(progress), "build", "-trimpath", "-ldflags", "-s -w", "-o", part, "."],
            cwd=SOURCE,
            env=binaries.go_environ(),
            capture_output=True,
            text=True,
            check=False,
        )
        if built.returncode != 0:
            raise MeasurementError(
                f"go build of {SOURCE.name} failed: {' / '.join(built.stderr.strip().splitlines()[-3:])}"
            )
        part.rename(binary)
    return binary


def accepts(host: str, port: int) -> bool:
    """Whether somebody listens there."""
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex((host, port)) == 0


class Stub:
    """The API server with pre-rendered answers: nodes, one health pod and one Lease each, over TLS."""

    def __init__(self, binary: Path, *, nodes: int) -> None:
        account = WORK / "serviceaccount"
        account.mkdir(parents=True, exist_ok=True)
        ca_file, token_file = account / "ca.crt", account / "token"
        token_file.write_text("benchmark")
        argv = [binary, "apistub", "-nodes", str(nodes), "-ca-file", ca_file]
        self.child = Measured("apistub", argv, cwd=WORK)
        self.child.start()
        self._server = f"https://{self.child.listening_on()}"
        cluster, user = {"certificate-authority": str(ca_file)}, {"tokenFile": str(token_file)}
        file = kubeconfig.write(WORK / "apistub.kubeconfig", server=self._server, cluster=cluster, user=user)
        self.api = Api(self._server, file, account, ca_file=ca_file, token_file=token_file)
        self._context = ssl.create_default_context(cafile=str(ca_file))

    def stream(self, *, pods_per_s: int = 0, leases_per_s: int = 0) -> None:
        """From now on so many updates a second go to every watcher."""
        self._call("POST", f"/bench/rate?pods={pods_per_s}&leases={leases_per_s}")

    def sent(self) -> int:
        """Updates streamed so far."""
        return int(json.loads(self._call("GET", "/bench/events"))["sent"])

    def _call(self, method: str, path: str) -> bytes:
        request = urllib.request.Request(self._server + path, method=method)
        with urllib.request.urlopen(request, timeout=10, context=self._context) as reply:
            body: bytes = reply.read()
        return body


def start_go(
    binary: Path, api: Api, *, lease_limit_s: int = 0, name: str = "go", exempt: Sequence[str] = ("kube-system",)
) -> Arm:
    """The Go extender; not yet synced when this returns."""
    argv = [binary, "serve", "-server", api.server, "-lease-limit", f"{lease_limit_s}s", *_credentials(api)]
    argv += ["-exempt-namespaces", ",".join(exempt)]
    child = Measured(name, argv, cwd=WORK)
    child.start()
    try:
        return Arm(name, child, f"http://{child.listening_on()}/filter")
    except ProcessError:
        child.stop()
        raise


def _credentials(api: Api) -> list[str | Path]:
    files = {
        "-ca-file": api.ca_file,
        "-token-file": api.token_file,
        "-cert-file": api.cert_file,
        "-key-file": api.key_file,
    }
    return [word for flag, path in files.items() if path is not None for word in (flag, path)]


def start_readygate(api: Api, *, lease_limit_s: int = 0, name: str = "readygate") -> Arm:
    """readygate's extender as users run it: the kick is off, the other keys have their defaults."""
    in_pod = api.service_account is not None
    settings = {
        "listen": {"address": "127.0.0.1", "port": free_port()},
        "kubernetes": {"kubeconfig": None if in_pod else str(api.kubeconfig)},
        "gates": [{"heartbeat": {"limitSeconds": lease_limit_s}}],
        "kick": {"enabled": False},
    }
    words = ["tests.bench.as_pod", str(api.service_account)] if in_pod else ["extender"]
    program = Program(words, settings, WORK, name=name, environ=in_pod_environ(api), launch=Measured)
    program.start()
    return Arm(name, program.process, f"{program.url}/filter")


def in_pod_environ(api: Api) -> dict[str, str]:
    """What the kubelet puts into a container's environment."""
    host, _, port = api.server.removeprefix("https://").partition(":")
    return {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}


def wait_synced(arm: Arm, *, limit_s: float = 60.0) -> float:
    """Seconds from the start of the process until its /readyz says 200."""
    url = arm.url.removesuffix("/filter") + "/readyz"

    def ready() -> bool:
        try:
            with urllib.request.urlopen(url, timeout=10) as reply:
                return bool(reply.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    return arm.child.wait_ready(ready, timeout_s=limit_s, every_s=0.02)
