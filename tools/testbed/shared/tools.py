"""helm, promtool, kustomize, and on request kube-router and CoreDNS: each built from source once and kept in the user's
cache folder, as Kubernetes is.

Each has a folder with a Go module that pins all it is made of and names it as its tool, or has a main.go of its own.
helm and CoreDNS share the libraries of Kubernetes with the testbed's binaries, so less is compiled for them where those
were built.
"""

import argparse
import platform
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from tools.kit.cache import cache_folder, cached, key_of
from tools.kit.commands import BuildError, Progress, command, run
from tools.testbed.shared.binaries import KUBERNETES_VERSION, BinariesMissing, go, go_environ

HERE = Path(__file__).resolve().parent
_HELM = "helm.sh/helm/v3"
_MAJOR, _MINOR = KUBERNETES_VERSION.removeprefix("v").split(".")[:2]


@dataclass(frozen=True)
class Tool:
    """package: its command's, "." for the main.go in its folder. module: which pins its version. variables: set by the
    linker. tags: of the build."""

    name: str
    module: str
    package: str
    variables: tuple[tuple[str, str], ...] = ()
    tags: str = ""

    @property
    def source(self) -> Path:
        return HERE / self.name

    @property
    def version(self) -> str:
        pinned = re.search(
            rf"^(?:require)?\s+{re.escape(self.module)} (v\S+)", (self.source / "go.mod").read_text(), re.MULTILINE
        )
        assert pinned is not None
        return pinned[1]

    @property
    def flags(self) -> list[str]:
        said = {"VERSION": self.version, "MAJOR": _MAJOR, "MINOR": _MINOR}
        variables = [f"-X {name}={said[value]}" for name, value in self.variables]
        return ["-trimpath", "-tags", self.tags, "-ldflags", " ".join(["-s -w", *variables])]


# What helm takes for the cluster's version where it is asked for no cluster's.
HELM = Tool(
    "helm",
    _HELM,
    f"{_HELM}/cmd/helm",
    variables=(
        (f"{_HELM}/internal/version.version", "VERSION"),
        (f"{_HELM}/pkg/chartutil.k8sVersionMajor", "MAJOR"),
        (f"{_HELM}/pkg/chartutil.k8sVersionMinor", "MINOR"),
        (f"{_HELM}/pkg/lint/rules.k8sVersionMajor", "MAJOR"),
        (f"{_HELM}/pkg/lint/rules.k8sVersionMinor", "MINOR"),
    ),
)
# Rules are all that is asked of it: without the clients of all clouds it is a fraction of the work.
PROMTOOL = Tool(
    "promtool",
    "github.com/prometheus/prometheus",
    "github.com/prometheus/prometheus/cmd/promtool",
    tags="remove_all_sd",
)
# That of kubectl 1.27 and no later one: what the roles ask of it, every kubectl of a cluster of theirs can do.
KUSTOMIZE = Tool("kustomize", "sigs.k8s.io/kustomize/kustomize/v5", "sigs.k8s.io/kustomize/kustomize/v5")
TOOLS = (HELM, PROMTOOL, KUSTOMIZE)
# Enforces NetworkPolicies by iptables and ipset. Nothing but its own ring asks for it.
KUBE_ROUTER = Tool(
    "kube-router",
    "github.com/cloudnativelabs/kube-router/v2",
    "github.com/cloudnativelabs/kube-router/v2/cmd/kube-router",
)
# With few plugins. Only the ring that breaks the pod network asks for it.
COREDNS = Tool("coredns", "github.com/coredns/coredns", ".")
ON_REQUEST = (KUBE_ROUTER, COREDNS)


def cache_key(tool: Tool) -> str:
    """16 hexadecimal digits over everything the built program depends on."""
    sources = [tool.source / "go.mod", tool.source / "go.sum", *sorted(tool.source.glob("*.go"))]
    files = [source.read_bytes() for source in sources]
    return key_of([platform.system(), platform.machine(), tool.package, *tool.flags, *files])


def built(tool: Tool, progress: Progress = print) -> Path:
    """The program; built when it is not cached. Raises BinariesMissing."""
    try:
        folder = cached(tool.name, cache_key(tool), lambda folder: _build(tool, folder, progress), progress)
    except BuildError as e:
        raise BinariesMissing(str(e)) from e
    return folder / tool.name


def _build(tool: Tool, folder: Path, progress: Progress) -> None:
    compiler = go(progress)
    temporary = folder / "tmp"
    temporary.mkdir()
    progress(f"building {tool.name} {tool.version} from source, once: two minutes on two cores")
    run(
        [str(compiler), "build", *tool.flags, "-o", str(folder / tool.name), tool.package],
        cwd=tool.source,
        environ={**go_environ(), "GOTMPDIR": str(temporary)},
        log=cache_folder() / f"{tool.name}-build.log",
        what=f"building {tool.name}",
        progress=progress,
    )
    shutil.rmtree(temporary)


def main() -> int:
    known = {tool.name: tool for tool in (*TOOLS, *ON_REQUEST)}
    parser = argparse.ArgumentParser(prog="python -m tools.testbed.shared.tools", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"of {', '.join(known)}; default: {', '.join(t.name for t in TOOLS)}"
    )
    names = parser.parse_args().names or [tool.name for tool in TOOLS]
    if unknown := [name for name in names if name not in known]:
        parser.error(f"{unknown[0]} is not known, allowed: {', '.join(known)}")
    try:
        for tool in (known[name] for name in names):
            _say(str(built(tool, _say)))
    except BinariesMissing as e:
        _say(str(e))
        return 1
    return 0


def _say(text: str) -> None:
    print(f"tools: {text}", flush=True)


if __name__ == "__main__":
    command(main)
