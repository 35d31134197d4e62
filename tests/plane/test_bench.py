"""The benchmark runs, ends, and saves figures that have a name, a value, a unit and a note."""

import json
import sys
from pathlib import Path

import pytest

from tools.kit.whole import run_whole

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.timeout(300)
def test_a_quick_look_at_the_filter_is_printed_and_saved(tmp_path):
    saved = tmp_path / "bench.json"
    argv = [sys.executable, "-m", "tools.bench", "--quick", "--only", "filter", "--save", str(saved)]
    done = run_whole(argv, cwd=ROOT, timeout_s=280)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    figures = json.loads(saved.read_text())
    assert {frozenset(figure) for figure in figures} == {frozenset({"name", "value", "unit", "note"})}
    names = {figure["name"] for figure in figures}
    assert {"filter_812_p50_ms", "filter_812_busy_p99_ms", "filter_5000_p50_ratio_to_go"} <= names
    assert {"filter_812_cpu_ratio_to_null", "filter_812_p99_ratio_to_go400"} <= names
    assert all(figure["value"] > 0 for figure in figures)
    assert "filter_812_p99_ms" in done.stdout
