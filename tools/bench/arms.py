"""What is measured: readygate's extender and its Go counterparts, started the same way."""

import hashlib
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from pathlib import Path

from tools.bench.processes import Measured, MeasurementError
from tools.kit import brakes
from tools.kit.child import ProcessError
from tools.kit.ports import free_port
from tools.kit.programs import Program, fetch, python_environ
from tools.testbed.shared import binaries

ROOT = Path(__file__).resolve().parents[2]
SOURCE = Path(__file__).resolve().parent / "goextender"
WORK = ROOT / "build" / "bench"
SYNC_LIMIT_S = 60.0


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
    """A running extender. url: of its filter. decides: whether its answers are verdicts, worth comparing.

    config, pages_url: its configuration file, and where readygate-status-api listens if it is started with that.
    """

    name: str
    child: Measured
    url: str
    decides: bool = True
    config: Path | None = None
    pages_url: str = ""

    @property
    def address(self) -> str:
        """`host:port`."""
        return self.url.removeprefix("http://").removesuffix("/filter")


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


def start_go(
    binary: Path,
    api: Api,
    *,
    lease_limit_s: int = 0,
    name: str = "go",
    exempt: Sequence[str] = ("kube-system",),
    environ: Mapping[str, str] | None = None,
) -> Arm:
    """The Go extender; not yet synced when this returns."""
    argv = [binary, "serve", "-server", api.server, "-lease-limit", f"{lease_limit_s}s", *_credentials(api)]
    return _start_binary(name, [*argv, "-exempt-namespaces", ",".join(exempt)], environ)


def start_go400(binary: Path, api: Api, *, lease_limit_s: int = 0) -> Arm:
    """The same with four times the heap between two collections: Go as somebody tunes it for its p99."""
    return start_go(binary, api, lease_limit_s=lease_limit_s, name="go400", environ={"GOGC": "400"})


def start_null(binary: Path) -> Arm:
    """net/http and encoding/json that send the names back: what no extender in Go can go below."""
    return replace(_start_binary("null", [binary, "null"], None), decides=False)


def _start_binary(name: str, argv: Sequence[str | Path], environ: Mapping[str, str] | None) -> Arm:
    child = Measured(name, argv, cwd=WORK, environ=environ)
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


def start_readygate(
    api: Api, *, lease_limit_s: int = 0, name: str = "readygate", kick: bool = False, **sections: object
) -> Arm:
    """readygate's extender as users run it, but for Leases, the kick and the brakes: half of all nodes are closed.

    sections: others of its configuration, by their keys.
    """
    in_pod = api.service_account is not None
    status_api_port = free_port()
    settings = {
        "listen": {"address": "127.0.0.1", "port": free_port()},
        "statusApi": {"address": "127.0.0.1", "port": status_api_port},
        "feed": {"socket": str(WORK / "feed" / f"{name}.sock")},
        "kubernetes": {"kubeconfig": None if in_pod else str(api.kubeconfig)},
        "heartbeat": {"limitSeconds": lease_limit_s},
        "kick": {"enabled": kick},
        **brakes.OFF,
        **sections,
    }
    words = ["tools.bench.as_pod", str(api.service_account)] if in_pod else ["extender"]
    program = Program(words, settings, WORK, name=name, environ=in_pod_environ(api), launch=Measured)
    program.start()
    pages_url = f"http://127.0.0.1:{status_api_port}"
    return Arm(name, program.process, f"{program.url}/filter", config=program.config, pages_url=pages_url)


def start_status_api(arm: Arm) -> Measured:
    """The process of the status API of this extender, ready; its memory and time are its own."""
    argv = [sys.executable, "-m", "extender.web", "--config", str(arm.config)]
    child = Measured("status-api", argv, cwd=WORK, environ=python_environ())
    child.start()
    try:
        child.wait_ready(lambda: fetch(f"{arm.pages_url}/readyz")[0] == HTTPStatus.OK, timeout_s=SYNC_LIMIT_S)
    except ProcessError:
        child.stop()
        raise
    return child


def in_pod_environ(api: Api) -> dict[str, str]:
    """What the kubelet puts into a container's environment."""
    host, _, port = api.server.removeprefix("https://").partition(":")
    return {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}


def ready(arm: Arm) -> bool:
    """Whether its /readyz says 200."""
    return fetch(arm.url.removesuffix("/filter") + "/readyz")[0] == HTTPStatus.OK


def wait_synced(arm: Arm, *, limit_s: float = SYNC_LIMIT_S) -> float:
    """Seconds from the start of the process until it is ready."""
    return arm.child.wait_ready(lambda: ready(arm), timeout_s=limit_s, every_s=0.02)
