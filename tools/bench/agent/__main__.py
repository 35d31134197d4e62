"""python -m tools.bench.agent: measures the agent, prints a table, saves build/bench-agent.json. Loopback only."""

from tools.bench.agent import checks, differential, kubelet
from tools.bench.arms import ROOT
from tools.bench.command import run

SUITES = {
    "checks": checks.measure,
    "rate": checks.measure_rate,
    "kubelet": kubelet.measure,
    "grpc": kubelet.measure_grpc,
    "cri": kubelet.measure_cri,
    "differential": differential.measure,
}

if __name__ == "__main__":
    run("tools.bench.agent", SUITES, ROOT / "build" / "bench-agent.json", __doc__)
