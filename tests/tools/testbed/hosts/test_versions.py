"""The version that is asked for reaches what kubeadm reads, and the names by which it asks for its images."""

import pytest

from tools.testbed.hosts.images import ETCD, kubeadm_images
from tools.testbed.hosts.kubeadm import init_configuration
from tools.testbed.hosts.layout import ONE_CONTROL
from tools.testbed.shared.binaries import VERSIONS


@pytest.mark.parametrize("minor", VERSIONS)
def test_the_cluster_and_its_images_are_of_the_version_that_is_asked_for(minor, tmp_path, monkeypatch):
    monkeypatch.setenv("READYGATE_KUBERNETES", minor)
    monkeypatch.setattr("tools.testbed.hosts.images._BUSYBOX", tmp_path)
    version = VERSIONS[minor]
    components = ("kube-apiserver", "kube-controller-manager", "kube-proxy", "kube-scheduler")
    control_plane, _ = kubeadm_images(tmp_path)
    assert [*(f"registry.k8s.io/{name}:{version}" for name in components), f"registry.k8s.io/etcd:{ETCD[version]}"] == [
        *control_plane.tags
    ]
    assert f"\nkubernetesVersion: {version}\n" in init_configuration(ONE_CONTROL.first, "token")
