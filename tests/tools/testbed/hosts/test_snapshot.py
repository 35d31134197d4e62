"""What the key of a snapshot covers, and what a snapshot contains."""

import dataclasses
import os
import subprocess
from pathlib import Path

import pytest

from tools.testbed.hosts import snapshot
from tools.testbed.hosts.layers import Layers
from tools.testbed.hosts.layout import IPV6, LAYOUTS, ONE_CONTROL, SECOND, THREE_CONTROLS
from tools.testbed.hosts.network import HOSTS


@pytest.fixture
def layers(tmp_path) -> Layers:
    made = Layers(
        *(tmp_path / name / part for name, part in (("base-1", "root"), ("kube-1", "root"), ("img-1", "store")))
    )
    status = made.base / "var/lib/dpkg/status"
    status.parent.mkdir(parents=True)
    status.write_text("Package: containerd\nVersion: 1\n")
    return made


def other_folder(path: Path) -> Path:
    return path.parent.with_name(f"{path.parent.name}-other") / path.name


def upgraded(layers: Layers) -> Layers:
    (layers.base / "var/lib/dpkg/status").write_text("Package: containerd\nVersion: 2\n")
    return layers


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda o, ls: (o, upgraded(ls)), id="packages of the base"),
        pytest.param(lambda o, ls: (o, dataclasses.replace(ls, kubernetes=other_folder(ls.kubernetes))), id="binaries"),
        pytest.param(lambda o, ls: (o, dataclasses.replace(ls, store=other_folder(ls.store))), id="images"),
        pytest.param(lambda _, ls: (SECOND, ls), id="addresses"),
        pytest.param(lambda o, ls: (dataclasses.replace(o, workers=o.workers[:1]), ls), id="hosts"),
        pytest.param(
            lambda o, ls: (dataclasses.replace(o, controls=(dataclasses.replace(o.first, number=12),)), ls),
            id="the address of one host",
        ),
    ],
)
def test_the_key_changes_with_all_that_a_snapshot_is_made_from(layers, change):
    before = snapshot.key(ONE_CONTROL, layers)
    assert before == snapshot.key(ONE_CONTROL, layers)
    assert before != snapshot.key(*change(ONE_CONTROL, layers))


def test_the_key_changes_with_the_version_of_kubernetes(layers, monkeypatch):
    before = snapshot.key(ONE_CONTROL, layers)
    monkeypatch.setenv("READYGATE_KUBERNETES", "1.37")
    assert before != snapshot.key(ONE_CONTROL, layers)


def test_the_key_changes_with_the_configuration_of_kubeadm(layers, monkeypatch):
    before = snapshot.key(ONE_CONTROL, layers)
    monkeypatch.setattr(snapshot.kubeadm, "init_configuration", lambda *_: "failSwapOn: true")
    assert before != snapshot.key(ONE_CONTROL, layers)


def test_the_key_changes_with_the_code_that_makes_a_snapshot(layers, tmp_path, monkeypatch):
    source = tmp_path / "source"
    source.mkdir()
    (source / "kubeadm.py").write_text("one = 1\n")
    monkeypatch.setattr(snapshot, "_SOURCE", source)
    before = snapshot.key(ONE_CONTROL, layers)
    (source / "kubeadm.py").write_text("one = 2\n")
    assert before != snapshot.key(ONE_CONTROL, layers)


def test_each_set_of_hosts_has_its_own_key(layers):
    assert len(LAYOUTS) == len({snapshot.key(layout, layers) for layout in LAYOUTS})


def test_layouts_for_tests_of_kubeadm_never_start_from_a_snapshot():
    assert {"hosts": True, "second": True, "ha": False, "ipv6": False} == {
        layout.network.name: layout.from_snapshot for layout in (ONE_CONTROL, SECOND, THREE_CONTROLS, IPV6)
    }
    assert ONE_CONTROL.network == HOSTS


def written(path: Path, text: str = "", size: int = 0) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    if size:
        os.posix_fallocate(os.open(path, os.O_RDWR), 0, size)


def test_a_snapshot_has_what_kubeadm_left_and_nothing_of_the_boot(tmp_path):
    """Of containers, pods, devices, logs and addresses of pods a later boot would believe what was."""
    kept = ["etc/kubernetes/admin.conf", "etc/kubernetes/pki/ca.crt", "var/lib/kubelet/config.yaml"]
    kept += ["var/lib/kubelet/kubeadm-flags.env", "var/lib/kubelet/pki/kubelet.key"]
    past = ["etc/hostname", "etc/machine-id", "root/kubeadm.yaml", "root/.ssh/authorized_keys", "run/anything"]
    past += ["var/lib/kubelet/cpu_manager_state", "var/lib/kubelet/memory_manager_state"]
    past += ["var/lib/kubelet/device-plugins/kubelet_internal_checkpoint", "var/lib/kubelet/pods/uid/etc-hosts"]
    past += ["var/lib/cni/networks/pods/10.244.21.2", "var/log/pods/a/0.log", "var/log/journal/id/system.journal"]
    past += ["var/lib/containerd/io.containerd.metadata.v1.bolt/meta.db"]
    root = tmp_path / "root"
    for path in (*kept, *past):
        written(root / path, path)
    written(root / "var/lib/etcd/member/wal/0.wal", "entry", size=8 << 20)
    ran = []

    def shell(peer, command, _):
        ran.append((peer.name, "etcd" in command))

    snapshot.seal(ONE_CONTROL, lambda _: root, shell, tmp_path)
    made = tmp_path / "control-1"
    assert sorted([*kept, "var/lib/etcd/member/wal/0.wal"]) == sorted(
        str(path.relative_to(made)) for path in made.rglob("*") if path.is_file()
    )
    assert 1 << 20 > (made / "var/lib/etcd/member/wal/0.wal").stat().st_blocks * 512
    # Each kubelet is stopped before the control plane is, or it would start it again.
    assert [("control-1", False), ("worker-1", False), ("worker-2", False)] == sorted(ran[:3])
    assert [("control-1", True)] == ran[3:]


def test_the_scripts_that_stop_a_cluster_are_shell():
    for script in (snapshot._STOP_NODE, snapshot._STOP_CONTROL):
        done = subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True, check=False)
        assert (0, "") == (done.returncode, done.stderr)
