"""The control plane of ring 2 itself: identities, several at once, and nothing left behind."""

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kube import contract
from tools.kit.pid import ProcessId
from tools.kit.programs import CHECKOUT
from tools.kit.waiting import wait_for
from tools.testbed.plane import identities
from tools.testbed.plane.plane import CONTROL_PLANE, Plane
from tools.testbed.shared import bare, binaries
from tools.testbed.shared.api import Api, ApiError
from tools.testbed.shared.runs import end_crashed_runs

# Its orphan is the process of a short-lived child: nobody has its pid but /proc. Its guardian, who would end all of it,
# goes first.
CRASHING = """
import json, os, signal
from dataclasses import asdict
from tools.kit.pid import find_processes
from tools.kit.waiting import wait_for
from tools.testbed.plane.plane import Plane
plane = Plane("crashing").up()
plane.run.process("orphan-maker", ["sh", "-c", "setsid sleep 600 & exit 0"]).start()
of_this_run = lambda words: any(str(plane.folder).encode() in word for word in words)
orphans = lambda: find_processes(lambda command, environ: command[:2] == [b"sleep", b"600"] and of_this_run(environ))
found = wait_for(orphans, timeout_s=60)
processes = [asdict(process) for process in [*plane.run.ledger.processes.values(), *found]]
print(json.dumps({"folder": str(plane.folder), "orphans": len(found), "processes": processes}), flush=True)
is_guardian = lambda words, _: b"tools.kit.guardian" in words and str(os.getpid()).encode() in words
[guardian] = find_processes(is_guardian)
guardian.signal(signal.SIGKILL)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_start_is_recorded(plane: Plane, artefacts: Path):
    (artefacts / "plane.json").write_text(json.dumps({"start_s": round(plane.start_s, 1)}))
    assert plane.stands()


def _api_of(plane: Plane, user: str) -> Api:
    document = json.loads(plane.kubeconfig_for(user).read_text())
    return Api(plane.server, ca=plane.folder / "pki" / "ca.crt", token=document["users"][0]["user"]["token"])


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        pytest.param(f"/api/v1/namespaces/{contract.NAMESPACE}/pods", True, id="health pods"),
        pytest.param("/api/v1/nodes", True, id="nodes"),
        pytest.param("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases", True, id="kubelet Leases"),
        pytest.param("/api/v1/pods", False, id="not the pods of all"),
        pytest.param("/api/v1/namespaces/default/pods", False, id="not the pods of another namespace"),
        pytest.param("/api/v1/secrets", False, id="not secrets"),
        pytest.param("/apis/coordination.k8s.io/v1/leases", False, id="not other Leases"),
    ],
)
def test_what_the_extender_may_list(plane: Plane, path: str, allowed: bool):
    api = _api_of(plane, identities.EXTENDER)
    try:
        api.get(path)
        seen = True
    except ApiError as e:
        seen = e.reason != "Forbidden"
    assert allowed == seen


def test_a_node_identity_writes_its_own_node_only(plane: Plane):
    bare.add_node(plane.api, "node-1")
    bare.add_node(plane.api, "node-2")
    try:
        api = _api_of(plane, "system:node:node-1")
        note = {"metadata": {"annotations": {"readygate.dev/test": "x"}}}
        api.patch("/api/v1/nodes/node-1", note)
        with pytest.raises(ApiError, match="Forbidden"):
            api.patch("/api/v1/nodes/node-2", note)
    finally:
        for name in ("node-1", "node-2"):
            plane.api.delete(f"/api/v1/nodes/{name}")


def test_an_identity_unknown_at_the_start_gets_a_certificate(plane: Plane):
    kubeconfig = plane.kubeconfig_for("somebody", ["some-group"])
    said = subprocess.run(
        [plane.kubectl, f"--kubeconfig={kubeconfig}", "auth", "whoami", "-o", "json"],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    user = json.loads(said.stdout)["status"]["userInfo"]
    assert user["username"] == "somebody"
    assert "some-group" in user["groups"]


@pytest.mark.timeout(600)
def test_a_crashed_run_is_ended_by_the_next_and_its_neighbour_is_not(plane: Plane):
    """The next may be another one of this machine, which began in this moment."""
    crashed = subprocess.run(
        [sys.executable, "-c", CRASHING], cwd=CHECKOUT, capture_output=True, text=True, check=False, timeout=500
    )
    assert crashed.returncode == -signal.SIGKILL, crashed.stderr
    told = json.loads(crashed.stdout)
    left = [ProcessId(**process) for process in told["processes"]]
    assert (1, True) == (told["orphans"], len(left) > len(CONTROL_PLANE))

    end_crashed_runs()

    assert wait_for(lambda: not [one for one in left if one.alive()], timeout_s=90), left
    assert wait_for(lambda: not Path(told["folder"]).exists(), timeout_s=90)
    assert plane.stands()
    assert plane.api.ready()


def test_ready_made_binaries_are_taken_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name in binaries.EXECUTABLES:
        (tmp_path / name).touch(mode=0o755)
    monkeypatch.setenv("READYGATE_KUBE_BIN_DIR", str(tmp_path))
    assert binaries.kube_binaries() == tmp_path


def test_missing_ready_made_binaries_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name in binaries.EXECUTABLES:
        (tmp_path / name).touch(mode=0o755)
    (tmp_path / "etcd").unlink()
    (tmp_path / "kubelet").chmod(0o644)
    monkeypatch.setenv("READYGATE_KUBE_BIN_DIR", str(tmp_path))
    with pytest.raises(binaries.BinariesMissing, match=f"{tmp_path} lacks etcd, kubelet: "):
        binaries.kube_binaries()


@pytest.mark.parametrize("minor", binaries.VERSIONS)
def test_a_change_of_the_module_is_another_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, minor: str):
    monkeypatch.setenv("READYGATE_KUBERNETES", minor)
    before = binaries.cache_key()
    shutil.copytree(binaries.SOURCE, tmp_path, dirs_exist_ok=True)
    monkeypatch.setattr(binaries, "SOURCE", tmp_path)
    assert before == binaries.cache_key()
    (tmp_path / "main.go").open("a").write("\n")
    assert before != binaries.cache_key()
