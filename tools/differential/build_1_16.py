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
SHARED = ("batches.go", "podcache/shim.go", "prober/steps.go", "prober/turning.go")
_FLAGS = ("-trimpath", "-ldflags", f"-checklinkname=0 -s -w -X main.release={VERSION}")

PACKAGES: Mapping[str, Copied] = {
    "config": Copied("pkg/kubelet/config"),
    "kubelet": Copied(
        "pkg/kubelet",
        only="kubelet_pods.go",
        functions=("getPhase", "generateAPIPodStatus", "convertStatusToAPIStatus", "convertToAPIContainerStatuses"),
    ),
    "node": Copied(
        "pkg/kubelet",
        only="kubelet_node_status.go",
        functions=(
            "tryRegisterWithAPIServer",
            "reconcileExtendedResource",
            "updateDefaultLabels",
            "reconcileCMADAnnotationWithExistingNode",
            "initialNode",
            "updateNodeStatus",
            "tryUpdateNodeStatus",
            "setNodeStatus",
            "setLastObservedNodeAddresses",
            "nodeStatusHasChanged",
            "nodeConditionsHaveChanged",
        ),
    ),
    "pleg": Copied(
        "pkg/kubelet/pleg",
        {
            r"for pid, events := range eventsByPodID \{": (
                "for _, pid := range inOrder(eventsByPodID) {\n\t\tevents := eventsByPodID[pid]"
            ),
            r"metrics\.PLEGDiscardEvents\.WithLabelValues\(\)\.Inc\(\)": "discarded++",
        },
    ),
    # Of this package the cache alone: its statuses are the types of the package itself.
    "podcache": Copied("pkg/kubelet/container", only="cache.go"),
    "prober": Copied(
        "pkg/kubelet/prober",
        {
            r"time\.Since\(": "wallSince(",
            r"go w\.run\(\)": "started(w)",
            r"rand\.Float64\(\)": "w.drawn(rand.Float64)",
            r"^(\t\t// Wait for next probe tick\.\n)": r"\1\t\tw.prefers(probeTicker)\n",
        },
    ),
    "status": Copied("pkg/kubelet/status", {r"metav1\.Now\(\)": "metav1.NewTime(wallNow())"}),
}


def driver_1_16(progress: Progress = print) -> Path:
    """The executable; builds it when it is not cached. Raises as `build.driver` does."""
    shared = {name: DRIVER / name for name in SHARED}
    program = Program("differential-1.16", FOLDER, {**sources_of(FOLDER), **shared}, PACKAGES, _FLAGS)
    return built(program, progress)


if __name__ == "__main__":
    print(driver_1_16())
