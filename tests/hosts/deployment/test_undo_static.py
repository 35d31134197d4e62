"""A first install in enforce, so with the extender as a static pod, and uninstall.yml right after it."""

import yaml

from kube import contract
from tests.hosts.deployment import renewal
from tests.hosts.deployment.conftest import ARMED, namespaces, scheduler_files
from tests.hosts.deployment.probing import clear
from tests.hosts.deployment.test_undo import CLASSES, schedules


def test_uninstall_straight_from_the_static_form_leaves_the_control_plane_as_it_was(hosts, api, ansible, untouched):
    """Also what a run that was killed over its proof has left."""
    if contract.NAMESPACE in namespaces(api):  # of the tests before this one
        cleared = ansible.run("uninstall.yml")
        assert cleared.code == 0, cleared.told()
    run = ansible.run("site.yml", **ARMED, readygate_scheduler_config_mode="enforce")
    assert run.code == 0, run.told()
    assert "readygate-extender.yaml" in scheduler_files(hosts, api).listing
    left = {"name": "readygate-canary", "labels": {contract.LABEL_NAME: "readygate-canary"}}
    api.create(CLASSES, {"metadata": left, "value": 0, "preemptionPolicy": "Never"})
    # A run of the timer that failed: systemd would list its unit without its file.
    hosts.ssh("control-1", "rm /etc/kubernetes/readygate-extender/credentials.py")
    assert hosts.ssh("control-1", f"systemctl start {renewal.UNIT}.service", check=False).returncode != 0
    removed = ansible.run("uninstall.yml")
    assert removed.code == 0, removed.told()
    after = scheduler_files(hosts, api)
    assert (untouched.manifest, untouched.listing) == (after.manifest, after.listing), "byte for byte"
    assert yaml.safe_load(untouched.cluster) == yaml.safe_load(after.cluster)
    assert hosts.ssh("control-1", "ls -A /etc/kubernetes | grep readygate || true").stdout == ""
    assert set() == renewal.units(hosts)
    assert contract.NAMESPACE not in namespaces(api)
    assert [] == [one["metadata"]["name"] for one in api.items(CLASSES) if "readygate" in one["metadata"]["name"]]
    assert schedules(api)
    clear(api)
