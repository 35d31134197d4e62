"""One story: two control planes get readygate, changes go wrong on the way, a third joins, kubeadm upgrades them."""

import re

import pytest

from kube import contract
from tests.hosts.controls.conftest import THEIRS, TWO
from tests.hosts.controls.schedulers import MANIFEST
from tests.hosts.deployment.landing import POD_URL
from tests.hosts.waiting import wait_for

THREE = (*TWO, "control-3")
DAEMON_SETS = f"/apis/apps/v1/namespaces/{contract.NAMESPACE}/daemonsets"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
RUN = "readygate-playbooks"
# The first test waits for the boot, and for a whole play.
pytestmark = pytest.mark.timeout(1800)
UPGRADE = "--yes --skip-phases=addon --ignore-preflight-errors=all 2>&1"


def all_ask(schedulers, hosts) -> bool:
    """Every scheduler of these hosts has loaded one extender: ours."""
    return bool(wait_for(lambda: all(len(schedulers.extenders(host) or []) == 1 for host in hosts)))


@pytest.mark.usefixtures("registered")
def test_each_scheduler_asks(schedulers):
    assert all_ask(schedulers, TWO)
    assert [[], []] == [schedulers.missing_files(host) for host in TWO]


def test_the_one_that_leads_is_changed_last(registered, led_before):
    play = registered.output.partition("PLAY [Scheduler configuration")[2].partition("PLAY [What kubeadm")[0]
    order = list(dict.fromkeys(re.findall(r"^\w+: \[(control-\d)\]", play, re.MULTILINE)))
    assert [*(host for host in TWO if host != led_before), led_before] == order


@pytest.mark.usefixtures("registered")
def test_a_second_run_changes_nothing(plays):
    run = plays.run("site.yml")
    assert (0, 0) == (run.code, run.changed), run.told()


@pytest.mark.usefixtures("registered")
def test_a_group_that_lacks_a_control_plane_is_refused_before_anything_changes(plays, schedulers):
    before = schedulers.cluster()
    run = plays.run("site.yml", hosts=["control-1"], readygate_scheduler_config_http_timeout="2s")
    assert (True, 0) == (run.code != 0, run.changed)
    assert "control-2" in run.told()
    assert before == schedulers.cluster()


@pytest.mark.usefixtures("registered")
def test_a_run_limited_to_one_host_leaves_kubeadms_configuration_and_the_files_it_names(plays, schedulers):
    before = schedulers.cluster()
    run = plays.run("site.yml", limit="control-1", readygate_scheduler_config_http_timeout="2s")
    assert 0 == run.code, run.told()
    assert before == schedulers.cluster()
    assert [[], []] == [schedulers.missing_files(host) for host in TWO]
    assert all_ask(schedulers, TWO)


@pytest.mark.usefixtures("registered")
def test_a_change_that_stops_half_way_leaves_every_scheduler_with_its_files(controls, plays, schedulers):
    last = schedulers.leader()  # so the others are changed before the play finds what kubeadm would lose
    kept = schedulers.manifest(last)
    edited = kept.replace("  labels:\n", "  labels:\n    edited: by-hand\n", 1)
    assert kept != edited
    controls.ssh(last, f"cat > {MANIFEST}", stdin=edited)
    run = plays.run("site.yml", readygate_scheduler_config_http_timeout="3s")
    assert 0 != run.code
    assert [[], []] == [schedulers.missing_files(host) for host in TWO]
    assert all_ask(schedulers, TWO)
    controls.ssh(last, f"cat > {MANIFEST}", stdin=kept)


@pytest.mark.usefixtures("registered")
def test_the_next_whole_run_ends_what_was_begun(plays, schedulers):
    run = plays.run("site.yml", readygate_scheduler_config_http_timeout="3s")
    assert 0 == run.code, run.told()
    assert [[], []] == [schedulers.missing_files(host) for host in TWO]
    assert all_ask(schedulers, TWO)


@pytest.mark.usefixtures("registered")
def test_a_control_plane_that_was_prepared_joins_and_asks(controls, plays, schedulers):
    run = plays.run("prepare-control-plane.yml", hosts=THREE, limit="control-3")
    assert 0 == run.code, run.told()
    said = controls.join("control-3")
    assert "joined the cluster" in said
    assert all_ask(schedulers, THREE)


@pytest.mark.usefixtures("registered")
def test_the_next_run_keeps_on_it_what_the_operator_has_configured_and_the_file_that_kubeadm_names(plays, schedulers):
    cluster = schedulers.cluster()
    run = plays.run("site.yml", hosts=THREE, readygate_scheduler_config_http_timeout="3s")
    assert 0 == run.code, run.told()
    assert [7, 7, 7] == [(schedulers.loaded(host) or {}).get("parallelism") for host in THREE]
    assert cluster == schedulers.cluster()
    assert [[], [], []] == [schedulers.missing_files(host) for host in THREE]
    assert all_ask(schedulers, THREE)


@pytest.mark.usefixtures("registered")
def test_uninstalled_from_one_host_alone_the_others_still_have_an_extender_to_ask(admin, plays, schedulers):
    run = plays.run("uninstall.yml", hosts=THREE, limit="control-2")
    assert 0 == run.code, run.told()
    asked = {host: schedulers.extenders(host) for host in THREE}
    assert {"control-1": [POD_URL], "control-2": [], "control-3": [POD_URL]} == asked
    assert "readygate-extender" in {one["metadata"]["name"] for one in admin.items(DAEMON_SETS)}
    assert [] == [one["metadata"]["name"] for one in admin.items(LEASES) if one["metadata"]["name"] == RUN]
    again = plays.run("site.yml", hosts=THREE, readygate_scheduler_config_http_timeout="3s")
    assert 0 == again.code, again.told()
    assert all_ask(schedulers, THREE)


@pytest.mark.usefixtures("registered")
def test_kubeadm_upgrades_each_and_all_ask_afterwards(controls, schedulers):
    schedulers.change_cluster(**{"kube-api-burst": "150"})
    version = controls.kubectl("version", "--output=json").stdout
    wanted = re.search(r'"serverVersion".*?"gitVersion": "([^"]+)"', version, re.DOTALL)[1]
    controls.ssh("control-1", f"kubeadm upgrade apply {wanted} --force {UPGRADE}", timeout_s=400)
    for host in THREE[1:]:
        controls.ssh(host, f"kubeadm upgrade node {UPGRADE.replace('--yes ', '')}", timeout_s=400)
    assert ["--kube-api-burst=150"] * 3 == [
        re.findall(r"--kube-api-burst=\d+", schedulers.manifest(h))[0] for h in THREE
    ]
    assert all_ask(schedulers, THREE)
    assert [[], [], []] == [schedulers.missing_files(host) for host in THREE]


@pytest.mark.usefixtures("registered")
def test_uninstall_leaves_each_as_kubeadm_would_make_it(controls, plays, schedulers, untouched):
    run = plays.run("uninstall.yml", hosts=THREE)
    assert 0 == run.code, run.told()
    assert wait_for(lambda: all(schedulers.extenders(host) == [] for host in THREE))
    for host in TWO:
        assert untouched[host] == schedulers.manifest(host).replace("    - --kube-api-burst=150\n", "")
    assert f"--config={THEIRS}" in schedulers.manifest("control-3")
    assert [""] * 3 == [controls.ssh(h, "ls -A /etc/kubernetes | grep readygate || true").stdout for h in THREE]
    schedulers.give({})
    assert wait_for(lambda: all(schedulers.extenders(host) == [] for host in THREE))
