"""Clusters that start from one snapshot are new; a snapshot whose making was killed is never used.

Runs beside the session's hosts, as test_hosts_crash.py does. The cache folder is one of its own, in which all is linked
that takes long to make, but no snapshot.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.hosts.test_hosts_crash import nothing_is_left, read
from tools.kit.cache import cache_folder
from tools.kit.pid import ProcessId
from tools.kit.waiting import wait_until

SNAPSHOT, HALF = "cluster-hosts-????????????????", "cluster-hosts-*.part"
LIMIT_S = 400.0


class Testbed:
    """`python -m tools.testbed --ring hosts` on a machine of its own."""

    __test__ = False

    def __init__(self, prefix: list[str], folder: Path) -> None:
        self.prefix, self.folder, self.cache = prefix, folder, folder / "cache" / "readygate"
        self.environ = {
            **os.environ,
            "READYGATE_TESTBED_DIR": str(folder),
            "XDG_CACHE_HOME": str(folder / "cache"),
            "READYGATE_HOSTS_SET": "hosts",
        }

    def start(self, *words: str) -> "subprocess.Popen[str]":
        argv = [*self.prefix, sys.executable, "-m", "tools.testbed", "--ring", "hosts", *words]
        return subprocess.Popen(
            argv,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, *words: str, code: int = 0) -> str:
        child = self.start(*words)
        try:
            output, _ = child.communicate(timeout=LIMIT_S)
        finally:
            child.kill()
        assert code == child.returncode, output
        return output


@pytest.fixture
def testbed(elsewhere):
    # Not tmp_path: pytest keeps those, and a host's file system is no keepsake.
    made = Testbed(elsewhere, Path("/var/tmp") / f"readygate-snapshot-{os.getpid()}")
    made.cache.mkdir(parents=True)
    for path in cache_folder().iterdir():
        if path.is_dir() and not path.name.startswith("cluster-"):
            (made.cache / path.name).symlink_to(path)
    yield made
    made.run("down")
    shutil.rmtree(made.folder)


def whole(testbed) -> list[Path]:
    return [*testbed.cache.glob(SNAPSHOT)]


def test_two_clusters_from_one_snapshot_share_nothing_that_was_made_in_the_first(testbed):
    assert "making a snapshot" in testbed.run("up")
    (snapshot,) = whole(testbed)
    before = {path: path.lstat().st_mtime_ns for path in snapshot.rglob("*")}
    testbed.run("kubectl", "create", "namespace", "first")
    testbed.run("kubectl", "label", "node", "worker-1", "of=first")
    testbed.run("ssh", "control-1", "touch /etc/kubernetes/of-first /var/lib/kubelet/of-first")
    testbed.run("ssh", "worker-1", "ctr --namespace k8s.io images tag registry.k8s.io/pause:3.10.2 localhost/first:1")
    first = json.loads(testbed.run("kubectl", "get", "pods,events,leases", "--all-namespaces", "--output=json"))
    testbed.run("down")

    started_s = time.time()
    assert "making a snapshot" not in testbed.run("up")
    second = json.loads(testbed.run("kubectl", "get", "pods,events,leases", "--all-namespaces", "--output=json"))
    uids = [{item["metadata"]["uid"] for item in items["items"]} for items in (first, second)]
    assert (True, set()) == (bool(uids[1]), uids[0] & uids[1])
    assert [] == [item["reason"] for item in second["items"] if item.get("reason") == "Rebooted"]
    assert "first" not in testbed.run("kubectl", "get", "namespaces,nodes", "--show-labels")
    assert "bootstrap-token" not in testbed.run("kubectl", "get", "secrets", "--all-namespaces")
    assert "of-first" not in testbed.run("ssh", "control-1", "ls /etc/kubernetes /var/lib/kubelet")
    assert "localhost/first" not in testbed.run("ssh", "worker-1", "ctr --namespace k8s.io images list --quiet")
    journal = testbed.run("ssh", "worker-1", "journalctl --output=short-unix --no-pager --quiet")
    assert started_s - 1 < float(journal.split()[0])
    nodes = json.loads(testbed.run("kubectl", "get", "nodes", "--output=json"))["items"]
    assert [] == [node["metadata"]["name"] for node in nodes if "unreachable" in json.dumps(node["spec"])]
    assert before == {path: path.lstat().st_mtime_ns for path in snapshot.rglob("*")}


def test_a_snapshot_whose_making_was_killed_is_removed_and_never_used(testbed):
    up = testbed.start("up")
    wait_until(lambda: [*testbed.cache.glob(f"{HALF}/control-1")], "files are copied", timeout_s=LIMIT_S)
    os.kill(up.pid, signal.SIGKILL)
    up.wait()
    state = read(testbed.folder)
    assert 3 == len(state["processes"])
    assert ([], 1) == (whole(testbed), len([*testbed.cache.glob(HALF)]))
    testbed.run("down")
    assert ([], []) == (whole(testbed), [*testbed.cache.glob(HALF)])
    nothing_is_left(testbed.prefix, testbed.folder, state)


IMPORT = """
import sys
from pathlib import Path
from tools.testbed.hosts import layers
layers._import(Path(sys.argv[1]), Path(sys.argv[2]), [], print)
"""


@pytest.mark.usefixtures("able")
def test_an_import_of_images_that_was_killed_leaves_nothing_mounted_and_nothing_running():
    folder = Path("/var/tmp") / f"readygate-import-{os.getpid()}"  # an overlay cannot stand on every /tmp
    (folder / "base").mkdir(parents=True)
    stub = folder / "systemd-nspawn"
    stub.write_text(
        f"#!/bin/sh\ncp /proc/self/mountinfo {folder}/mounts.new; echo $$ > {folder}/pid\n"
        f"mv {folder}/mounts.new {folder}/mounts; exec sleep 600\n"
    )
    stub.chmod(0o755)
    environ = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
    argv = [sys.executable, "-c", IMPORT, str(folder / "base"), str(folder)]
    importing = subprocess.Popen(argv, cwd=Path(__file__).parents[2], env=environ, stdout=subprocess.DEVNULL)
    try:
        wait_until((folder / "mounts").exists, "it imports")
        inside = ProcessId.of(int((folder / "pid").read_text()))
        assert inside is not None
        assert str(folder / "root") in (folder / "mounts").read_text()
        os.kill(importing.pid, signal.SIGKILL)
        wait_until(lambda: not inside.alive(), "nothing runs")
        assert str(folder) not in Path("/proc/self/mountinfo").read_text()
    finally:
        importing.kill()
        importing.wait()
        shutil.rmtree(folder)
