"""python -m tests.bench.agent: measures the agent, prints a table, saves build/bench-agent.json. Loopback only."""

from tests.bench.agent import checks, differential, kubelet
from tests.bench.arms import ROOT
from tests.bench.command import run

SUITES = {
    "checks": checks.measure,
    "rate": checks.measure_rate,
    "kubelet": kubelet.measure,
    "grpc": kubelet.measure_grpc,
    "cri": kubelet.measure_cri,
    "differential": differential.measure,
}

if __name__ == "__main__":
    run("tests.bench.agent", SUITES, ROOT / "build" / "bench-agent.json", __doc__)
