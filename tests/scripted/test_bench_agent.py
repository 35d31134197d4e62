"""The agent's benchmark runs, ends, and saves figures that have a name, a value, a unit and a note."""

import json
import sys

import pytest

from tools.kit.programs import CHECKOUT
from tools.kit.whole import run_whole


@pytest.mark.timeout(300)
def test_a_quick_look_at_the_agent_is_printed_and_saved(tmp_path):
    saved = tmp_path / "bench-agent.json"
    argv = [sys.executable, "-m", "tools.bench.agent", "--quick", "--only", "checks", "--only", "grpc"]
    done = run_whole([*argv, "--save", str(saved)], cwd=CHECKOUT, timeout_s=280)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    figures = json.loads(saved.read_text())
    assert {frozenset(figure) for figure in figures} == {frozenset({"name", "value", "unit", "note"})}
    assert ["agent_20_rss_mib", "agent_20_cpu_m", "agent_grpc_rss_mib"] == [figure["name"] for figure in figures]
    assert all(figure["value"] > 0 for figure in figures)
    assert "agent_20_cpu_m" in done.stdout
    shown = run_whole([sys.executable, "-m", "tools.bench.tables", str(saved)], cwd=CHECKOUT, timeout_s=60)
    row = f"| {figures[0]['value']:#.3g} | <= 32"
    assert (0, True) == (shown.returncode, row in shown.stdout), shown.stdout[-2000:]
