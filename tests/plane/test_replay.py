"""`readygate record` at the real API server, and what `readygate replay` makes of it."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from cli.replay.player import APART_S
from tests.plane.cluster import Cluster
from tools.kit.waiting import wait_for

UNBRAKED = "cap: off\nstorm: off\nheartbeat: {limitSeconds: 0}\n"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "recorded.yaml").write_text(UNBRAKED)
    (tmp_path / "capped.yaml").write_text(f"{UNBRAKED.replace('cap: off', 'cap: {cluster: 1}')}")
    return tmp_path


def readygate(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "cli", *arguments]


def lines_of(file: Path) -> list[dict[str, Any]]:
    """Of the tape, less its head; a line that is half written is not there yet."""
    whole = file.read_text().rpartition("\n")[0] if file.exists() else ""
    return [json.loads(line) for line in whole.splitlines()[1:]]


def recorded(file: Path, do: str) -> list[str]:
    """What was done to which list, a line each."""
    return [line["of"].split()[0] for line in lines_of(file) if line["do"] == do]


def is_decided_on(file: Path) -> bool:
    """Whether what was listed is old enough to have been decided on before the next event: a node as young as these
    that no decision has seen healthy is closed beside all caps.
    """
    listed = [line for line in lines_of(file) if line["do"] == "replace"]
    wanted = {"pods", "nodes", "orders", "daemonsets"}
    return wanted <= set(recorded(file, "replace")) and time.time() > listed[-1]["at"] + 10 * APART_S


def test_what_was_recorded_is_decided_on_anew_by_another_configuration(cluster: Cluster, files: Path):
    nodes = cluster.add_nodes(3)
    cluster.add_health_pods(nodes, ready=True)
    kubeconfig = cluster.plane.kubeconfig_for_extender()
    file = files / "tape"
    command = readygate("record", str(file), "--config", str(files / "recorded.yaml"), f"--kubeconfig={kubeconfig}")
    recording = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert wait_for(lambda: is_decided_on(file), timeout_s=90)
        for node in nodes[:2]:
            cluster.health_pods[node].say(ready=False)
        assert wait_for(lambda: recorded(file, "upsert").count("pods") >= 2, timeout_s=90)
    finally:
        recording.send_signal(signal.SIGTERM)
        out, err = recording.communicate(timeout=90)
    assert 0 == recording.returncode, err
    assert "pods" not in err
    assert out.endswith(f"in {file}\n")
    assert 0o600 == file.stat().st_mode & 0o777

    done = subprocess.run(
        readygate("replay", str(file), "--config", str(files / "capped.yaml"), "--output=json"),
        capture_output=True,
        text=True,
        check=False,
        timeout=90,
    )
    told = json.loads(done.stdout)
    assert (1, "", 2, 1) == (done.returncode, done.stderr, told["before"]["closures"], told["after"]["closures"])
    assert {"cap": 1} == told["after"]["held"]
