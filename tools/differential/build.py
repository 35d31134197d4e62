"""The driver: a Go program with the kubelet's own packages in it, built once and kept in the user's cache folder.

What the kubelet does not export is reached by a file of ours beside copies of its files, made when it is built: in the
copies the clock is ours and goroutines wait for the history. The module is the testbed's, so both are one release.
"""

import json
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tools.kit.cache import cache_folder, cached, key_of
from tools.kit.commands import Progress, run
from tools.testbed.shared import binaries

DRIVER = Path(__file__).resolve().parent / "driver"
_MODULE_FILES = ("go.mod", "go.sum")
_FLAGS = (
    "-trimpath",
    "-ldflags",
    f"-checklinkname=0 -s -w -X k8s.io/component-base/version.gitVersion={binaries.KUBERNETES_VERSION}",
)
# What of the driver counts which of its statements are run: the kubelet's, copied or not, and what it stands on.
_COVERED = ("./...", "pkg/kubelet/...", "pkg/probe/...", "pkg/api/v1/pod", "pkg/util/pod", "pkg/fieldpath")
_NOT_OURS = re.compile(r"_test\.go$")


@dataclass(frozen=True)
class Copied:
    """A package of Kubernetes, by its folder, whose copy gets the shim of the same name. `changes`: what is replaced in
    the copy, by regular expression; each must be found. `only`: the files that are copied. `module`: whose folder it
    is. `functions`: of these files, only the functions of these names."""

    folder: str
    changes: Mapping[str, str] = field(default_factory=dict)
    only: str = "*.go"
    module: str = "k8s.io/kubernetes"
    functions: tuple[str, ...] = ()


@dataclass(frozen=True)
class Program:
    """A driver. `folder`: its name in the cache. `module`: the folder of go.mod and go.sum. `sources`: by their places
    in the program. `compiler_flags`: for `go build`."""

    folder: str
    module: Path
    sources: Mapping[str, Path]
    packages: Mapping[str, Copied]
    compiler_flags: Sequence[str]


# Copies that stand on copies.
_KUBE = "readygate.dev/testbed/kube"
_UTIL_MAP, _OUR_MAP = r'"k8s\.io/kubernetes/pkg/util/goroutinemap"', f'"{_KUBE}/goroutinemap"'
_UTIL_BACKOFF = r'"k8s\.io/kubernetes/pkg/util/goroutinemap/exponentialbackoff"'
_OUR_BACKOFF = f'"{_KUBE}/exponentialbackoff"'

PACKAGES = {
    "config": Copied(
        "pkg/kubelet/config",
        {
            r"s\.fileKeyMapping\[filename\] = objKey": "s.keep(filename, objKey, pod)",
            # Mends: see the shim.
            r'logger\.Error\(err, "Could not process manifest file", .*$': "pods = append(pods, lastGood(path)...)",
            r'^.*\n(\t\treturn fmt\.Errorf\("path does not exist, ignoring"\))': r"\t\ts.gone()\n\1",
            r"pods, err := s\.extractFromDir": r"there()\n\t\t\g<0>",
            r"s\.updates <- sourceUpdate\{Pods: pods\}\n\t\t\treturn nil": "return s.replaceStore()",
        },
    ),
    "cm": Copied("pkg/kubelet/cm"),
    "eviction": Copied("pkg/kubelet/eviction"),
    "exponentialbackoff": Copied(
        "pkg/util/goroutinemap/exponentialbackoff",
        {r"time\.Now\(\)": "wallNow()", r"time\.Since\(": "wallSince("},
    ),
    "goroutinemap": Copied(
        "pkg/util/goroutinemap",
        {
            r"go func\(\) \(err error\) \{": "later(operationName, func() (err error) {",
            r"^\t\}\(\)$": "\t})",
            _UTIL_BACKOFF: _OUR_BACKOFF,
        },
    ),
    "httpprobe": Copied(
        "pkg/probe/http",
        {r"^package http$": "package httpprobe", r"probe\.ProbeDialer\(\)\.DialContext": "memoryDial"},
    ),
    "kubelet": Copied(
        "pkg/kubelet",
        {
            r"kl\.getHostIPsAnyWay\(ctx\)": "kl.hostOf(ctx)",
            r"rand\.Float64\(\)": "drawn(rand.Float64)",
            r"kl\.updateRuntimeUp\(ctx\)": "kl.runtimeIsKnown()",
            r"\.After\(time\.Now\(\)\) \{$": ".After(runtimeNow()) {",
            # What is on the disk of a machine.
            r"kl\.usernsManager\.CleanupOrphanedPodUsernsAllocations\(.*\); err": "error(nil); err",
            r"kl\.cleanupOrphanedPodDirs\(logger, allPods, runningRuntimePods\)$": "error(nil)",
        },
    ),
    "kuberuntime": Copied(
        "pkg/kubelet/kuberuntime",
        {
            r"metav1\.Now\(\)": "metav1.NewTime(wallNow())",
            r"time\.After\(": "afterHook(",
            r"len\(podStatus\.ContainerStatuses\) != 0": "countOfKnown(podStatus) != 0",
            r"m\.generateLinuxContainerResources\(ctx, pod, container, (enforceMemoryQoS)\),$": r"noResources(\1),",
            r"= m\.calculateSandboxResources\(ctx, pod\)$": "= noResources(false)",
        },
    ),
    "lease": Copied("apimachinery/lease", {r"time\.After\(": "after("}, module="k8s.io/component-helpers"),
    "pleg": Copied(
        "pkg/kubelet/pleg",
        {
            r"time\.Now\(\)": "wallNow()",
            r"for pid := range g\.podRecords": "for _, pid := range inOrder(g.podRecords)",
            # Counts for /metrics, which end the kubelet where a pod could not be inspected before.
            r"e\.updateRunning\w+Metric\(status\)": "",
            r"metrics\.PLEGDiscardEvents\.Inc\(\)": "discarded++",
            r"^\t\t\tshouldSendPLEGEvent = true\n\t\t\} else \{": r"\t\t\te.removed(event, podID, status)\n\g<0>",
        },
    ),
    # Of this package the cache alone: its statuses are the types of the package itself.
    "podcache": Copied("pkg/kubelet/container", only="cache.go"),
    "podconfig": Copied("pkg/kubelet/config"),
    "prober": Copied(
        "pkg/kubelet/prober",
        {
            # Mends: see package mended.
            r"\t\t\t\treturn\n\t\t\t\}\n(\t\t\tw := newWorker\(.*\n.*\n\t\t\tgo w\.run\(ctx\)\n)": (
                r"\t\t\t\tif !goesOn() {\n\t\t\t\t\treturn\n\t\t\t\t}\n\t\t\t} else {\n\1\t\t\t}\n"
            ),
            r"time\.Since\(c\.State\.Running\.StartedAt\.Time\)": "w.age(c.State.Running.StartedAt.Time)",
            r"w\.containerID = kubecontainer\.ParseContainerID\(c\.ContainerID\)": r"\g<0>; w.forgets()",
            r"kubeletRestartGracePeriod\(w\.probeManager\.start\)": (
                "kubeletRestartGracePeriod(w.probeManager.start.Add(aheadMended()))"
            ),
            r"containerStartTime\.Before\(kubeletRestartGracePeriod\(m\.start\)\)": (
                "m.older(pod, containerStatus.Name, containerStartTime)"
            ),
            # The clock, and goroutines that wait for the history.
            r"time\.Now\(\)": "wallNow()",
            r"time\.Since\(": "wallSince(",
            r"go w\.run\(ctx\)": "started(ctx, w)",
            r"rand\.Float64\(\)": "w.drawn(rand.Float64)",
            r"^(\t\t// Wait for next probe tick\.\n)": r"\1\t\tw.prefers(probeTicker)\n",
        },
    ),
    "operationexecutor": Copied(
        "pkg/kubelet/pluginmanager/operationexecutor",
        {r" dial\(ctx, socketPath": " dialled(ctx, socketPath", _UTIL_MAP: _OUR_MAP},
    ),
    "reconciler": Copied(
        "pkg/kubelet/pluginmanager/reconciler",
        {
            _UTIL_MAP: _OUR_MAP,
            _UTIL_BACKOFF: _OUR_BACKOFF,
            r"k8s\.io/kubernetes/pkg/kubelet/pluginmanager/operationexecutor": f"{_KUBE}/operationexecutor",
        },
    ),
    "record": Copied(
        "tools/record",
        {
            r"record\.localKeys\.Insert\(localKey\)": "inserted(aggregateKey, record.localKeys, localKey)",
            r"record\.localKeys\.PopAny\(\)": "popFirst(aggregateKey, record.localKeys)",
        },
        only="events_cache.go",
        module="k8s.io/client-go",
    ),
    "status": Copied(
        "pkg/kubelet/status",
        {
            r"metav1\.Now\(\)": "metav1.NewTime(wallNow())",
            r"time\.Now\(\)": "wallNow()",
            r"time\.Since\(": "wallSince(",
            r"podutil\.UpdatePodCondition\(": "updatePodCondition(",
            r"pod\.Status\.ContainerStatuses, pod\.Status\.Phase\)$": "compared(pod), pod.Status.Phase)",
            # The kubelet takes this manager for its own: their interfaces have to be of the same types.
            r"^type PodUpdateNotifier interface \{[^}]*\}": "type PodUpdateNotifier = podUpdateNotifier",
        },
    ),
}


def driver(progress: Progress = print, *, covered: bool = False) -> Path:
    """The executable; builds it when it is not cached. `covered`: one that tells what of the kubelet it has run, see
    `coverage`. Raises binaries.BinariesMissing, commands.BuildError."""
    flags = (*_FLAGS, "-cover", f"-coverpkg={','.join(_packages_covered())}") if covered else _FLAGS
    return built(Program("differential", binaries.SOURCE, sources_of(DRIVER), PACKAGES, flags), progress)


def sources_of(folder: Path) -> dict[str, Path]:
    """The Go files of a folder, by their places in it."""
    return {str(path.relative_to(folder)): path for path in sorted(folder.rglob("*.go"))}


def built(program: Program, progress: Progress) -> Path:
    """The executable of a program; builds it when it is not cached. Raises as `driver` does."""
    known = {name: repr(package) for name, package in program.packages.items()}
    parts: list[str | bytes] = [json.dumps([program.compiler_flags, known])]
    parts += [(program.module / name).read_bytes() for name in _MODULE_FILES]
    parts += [path.read_bytes() for path in program.sources.values()]
    return cached(program.folder, key_of(parts), lambda folder: _build(folder, program, progress), progress) / "driver"


def _packages_covered() -> list[str]:
    return [name if name.startswith(".") else f"k8s.io/kubernetes/{name}" for name in _COVERED]


def _build(folder: Path, program: Program, progress: Progress) -> None:
    go = str(binaries.go(progress))
    source = folder / "source"
    for place, path in program.sources.items():
        (source / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, source / place)
    for name in _MODULE_FILES:
        shutil.copy(program.module / name, source)
    for name, package in program.packages.items():
        copy_package(_upstream(go, program.module, package.module) / package.folder, source / name, package)
    temporary = folder / "tmp"
    temporary.mkdir()
    progress("building the driver of the differential test from the kubelet's source, once")
    run(
        [go, "build", *program.compiler_flags, "-o", str(folder / "driver"), "."],
        cwd=source,
        environ={**binaries.go_environ(), "GOTMPDIR": str(temporary)},
        log=cache_folder() / f"{program.folder}-build.log",
        what="building the driver",
        progress=progress,
    )
    shutil.rmtree(temporary)


def _upstream(go: str, pins: Path, module: str) -> Path:
    """The folder of a module in Go's module cache; downloads it when it is not there. `pins`: the folder of go.mod."""
    said = subprocess.run(
        [go, "mod", "download", "-json", module],
        cwd=pins,
        env=binaries.go_environ(),
        capture_output=True,
        text=True,
        check=True,
    )
    return Path(json.loads(said.stdout)["Dir"])


def copy_package(upstream: Path, to: Path, package: Copied) -> None:
    """Copies the files of one package with its changes. Raises ValueError where a change finds nothing to change."""
    to.mkdir(exist_ok=True)
    missing = set(package.changes)
    for path in sorted(upstream.glob(package.only)):
        if _NOT_OURS.search(path.name):
            continue
        text = path.read_text()
        if package.functions:
            text = cut(text, package.functions)
        for pattern, instead in package.changes.items():
            text, count = re.subn(pattern, instead, text, flags=re.MULTILINE)
            if count:
                missing.discard(pattern)
        text += _still_used(text)
        (to / path.name).write_text(text)
    if missing:
        raise ValueError(f"{upstream}: nothing there looks like {', '.join(sorted(missing))}")


def cut(text: str, functions: Sequence[str]) -> str:
    """A Go file with these functions alone, and the imports that they need. Raises ValueError where one is missing."""
    bodies = []
    for name in functions:
        found = re.search(rf"^func (?:\([^)]*\) )?{name}\(.*?^\}}$", text, re.MULTILINE | re.DOTALL)
        if found is None:
            raise ValueError(f"there is no function {name}")
        bodies.append(found[0])
    body = "\n\n".join(bodies)
    imports = re.findall(r'^\t(?:(\w+) )?"(\S+)"$', text[: text.index("\n)\n")], re.MULTILINE)
    code = re.sub(r"//.*$", "", body, flags=re.MULTILINE)
    used = [(alias, path) for alias, path in imports if re.search(rf"\b{alias or path.rpartition('/')[2]}\.", code)]
    needed = "\n".join(f'\t{alias} "{path}"' for alias, path in used)
    package = re.search(r"^package \w+$", text, re.MULTILINE)
    assert package is not None
    return f"{package[0]}\n\nimport (\n{needed}\n)\n\n{body}\n"


def _still_used(text: str) -> str:
    """An import that a change has made useless would not compile."""
    return "\nvar _ = time.Second\n" if re.search(r'^\t"time"$', text, re.MULTILINE) else ""


if __name__ == "__main__":
    print(driver())
