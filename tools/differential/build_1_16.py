"""The driver of Kubernetes 1.16, which `kubelet.compat: v1.16` is compared with.

It is a second program, as its packages have the same paths as those of the current release. What is the same in both is
taken from the folder of the current one.
"""

from collections.abc import Mapping
from pathlib import Path

from tools.differential.build import DRIVER, Copied, Program, built, sources_of
from tools.kit.commands import Progress

VERSION = "v1.16.15"
FOLDER = Path(__file__).resolve().parent / "driver116"
SHARED = ("batches.go", "prober/steps.go")
_FLAGS = ("-trimpath", "-ldflags", f"-s -w -X main.release={VERSION}")

PACKAGES: Mapping[str, Copied] = {
    "kubelet": Copied("pkg/kubelet", only="kubelet_pods.go", functions=("getPhase",)),
    "prober": Copied("pkg/kubelet/prober", {r"time\.Since\(": "wallSince(", r"go w\.run\(\)": "started(w)"}),
    "status": Copied("pkg/kubelet/status", {r"metav1\.Now\(\)": "metav1.NewTime(wallNow())"}),
}


def driver_1_16(progress: Progress = print) -> Path:
    """The executable; builds it when it is not cached. Raises as `build.driver` does."""
    shared = {name: DRIVER / name for name in SHARED}
    program = Program("differential-1.16", FOLDER, {**sources_of(FOLDER), **shared}, PACKAGES, _FLAGS)
    return built(program, progress)


if __name__ == "__main__":
    print(driver_1_16())
