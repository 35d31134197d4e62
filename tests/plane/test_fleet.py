"""`python -m tools.fleet`: virtual nodes register, run pods and stay Ready. After any end nothing is left."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from tools.kit.pid import end_all, find_processes
from tools.kit.whole import run_whole

ROOT = Path(__file__).resolve().parents[2]
FEW = [sys.executable, "-m", "tools.fleet", "--full", "3", "--light", "20", "--minutes", "0.2", "--ramp", "1"]


def test_virtual_nodes_register_run_pods_and_stay_ready(artefacts, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    save = tmp_path / "fleet.json"
    done = run_whole([*FEW, "-o", "json", "--save", str(save)], cwd=ROOT, timeout_s=560)
    (artefacts / "fleet.txt").write_text(done.stderr)
    assert done.returncode == 0, done.stderr[-3000:]
    figures = {one["name"]: one["value"] for one in json.loads(done.stdout)}
    assert figures["fleet_left_ready"] == 0
    assert figures["fleet_lease_p99_ms"] > 0
    assert figures["fleet_requests_s"] > 0
    assert figures["fleet_full_mib"] > figures["fleet_light_mib"]
    assert figures["fleet_processes"] == 2
    assert {one["name"] for one in json.loads(save.read_text())} == set(figures)


def test_sigterm_ends_all_of_it(tmp_path):
    environ = {**os.environ, "TMPDIR": str(tmp_path)}
    fleet = subprocess.Popen(FEW, cwd=ROOT, env=environ, stderr=subprocess.PIPE, text=True)
    said = ""
    try:
        for line in fleet.stderr:
            said += line
            if "register within" in line:
                break
        fleet.send_signal(signal.SIGTERM)
        rest = fleet.stderr.read()
        assert fleet.wait(180) == 130, said + rest
    finally:
        left = find_processes(lambda _, environ: any(os.fsencode(tmp_path) in each for each in environ))
        end_all(left)
    assert left == []
