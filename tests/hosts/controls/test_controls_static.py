"""The extender as a static pod beside three schedulers, in enforce: host by host on the way there, through changes and
faults, and on the way back; the other two answer, or it is soon there again.
"""

from contextlib import ExitStack
from itertools import pairwise

import pytest

from tests.hosts.controls.schedulers import THREE
from tests.hosts.deployment import renewal
from tests.hosts.deployment.conftest import ARMED, MANIFESTS
from tests.hosts.deployment.landing import POD_URL, STATIC_URL, Asking, Landings
from tests.hosts.deployment.test_static import (
    CONTROL_PLANE,
    DAEMON_SET,
    ENFORCE,
    EXTENDER,
    FOLDER,
    NAME,
    NS,
    SCHEDULERS,
    UNREACHABLE,
    is_there,
)
from tests.hosts.waiting import wait_for

READY = f"curl --silent --fail --max-time 2 {STATIC_URL}/readyz"
RESOURCES = {"requests": {"cpu": "90m"}, "limits": {"memory": "500Mi"}}
PODS_EVERY_S = 5.0
ANSWER_S = 60.0  # three hosts on one machine
# Two whole plays before the first of these tests, host after host.
pytestmark = pytest.mark.timeout(3600)


class AskingAll:
    """A context: `Asking` on each of the three."""

    def __init__(self, hosts):
        self._each = {host: Asking(hosts, host, ANSWER_S) for host in THREE}

    def __enter__(self):
        self._stack = ExitStack()
        for one in self._each.values():
            self._stack.enter_context(one)
        return self

    def __exit__(self, *_):
        self._stack.close()

    def told(self):
        return {host: one.told() for host, one in self._each.items()}

    def longest_gaps_s(self):
        """By host."""
        return {host: one.longest_gap_s() for host, one in self._each.items()}

    def longest_without_any_s(self):
        """Of all hosts together."""
        times = sorted(when for one in self._each.values() for when in one.answered())
        return max(later - earlier for earlier, later in pairwise(times))


def answer(hosts):
    return all(hosts.ssh(host, READY, check=False).returncode == 0 for host in THREE)


def inode(hosts, host):
    return hosts.ssh(host, f"stat --format=%i:%z {MANIFESTS}/{NAME}.yaml").stdout


@pytest.fixture(scope="module")
def static(controls, admin, plays, three):  # noqa: ARG001
    """By the way from a DaemonSet in protect: whom each scheduler asked, what was not answered, and the longest
    wait of a pod."""
    with Landings(admin, PODS_EVERY_S) as landings, AskingAll(controls) as asking:
        run = plays.run("site.yml", hosts=THREE, **ENFORCE)
        assert run.code == 0, run.told()
        return asking.told(), landings.settle()


def test_on_the_way_there_no_scheduler_of_the_three_was_without_an_extender(controls, admin, static):
    told, longest_s = static
    assert dict.fromkeys(THREE, ({POD_URL, STATIC_URL}, [])) == told
    assert longest_s < float("inf")
    assert (True, False) == (answer(controls), is_there(admin, DAEMON_SET))
    for host in THREE:
        listing = controls.ssh(host, f"ls -A {MANIFESTS}").stdout.split()
        assert sorted([f"{NAME}.yaml", *(f"{name}.yaml" for name in CONTROL_PLANE)]) == sorted(listing)


@pytest.mark.usefixtures("static")
def test_a_second_play_changes_nothing_and_check_finds_each_registered(plays):
    again = plays.run("site.yml", hosts=THREE, **ENFORCE)
    assert (0, 0) == (again.code, again.changed), again.told()
    checked = plays.run("check.yml", hosts=THREE, **ENFORCE)
    assert (0, 0) == (checked.code, checked.changed), checked.told()


@pytest.mark.usefixtures("static")
def test_changed_on_each_host_after_the_other_two_answer_all_the_while(controls, admin, plays):
    with Landings(admin, PODS_EVERY_S) as landings, AskingAll(controls) as asking:
        run = plays.run("site.yml", hosts=THREE, tags=EXTENDER, **ENFORCE, readygate_extender_resources=RESOURCES)
        assert run.code == 0, run.told()
        assert landings.settle() < float("inf")
    print(f"longest times without an answer: {asking.longest_gaps_s()} s")
    print(f"longest time without any answer: {asking.longest_without_any_s():.1f} s")
    assert max(asking.longest_gaps_s().values()) < float("inf"), "each answers again"


@pytest.mark.usefixtures("static")
def test_killed_beside_the_scheduler_that_leads_scheduling_goes_on(controls, admin, schedulers):
    with Landings(admin, PODS_EVERY_S) as landings, AskingAll(controls) as asking:
        controls.ssh(schedulers.leader(), "pkill -9 --full 'bin/readygate-extender'")
        assert wait_for(lambda: answer(controls))
        longest_s = landings.settle()
    assert max(asking.longest_gaps_s().values()) < float("inf"), "each answers again"
    assert longest_s < float("inf")


@pytest.mark.usefixtures("static")
def test_a_form_that_does_not_start_is_tried_on_one_host_and_no_other_is_touched(controls, plays):
    before = {host: inode(controls, host) for host in THREE}
    run = plays.run("site.yml", hosts=THREE, tags=EXTENDER, **ENFORCE, readygate_extender_kubernetes_server=UNREACHABLE)
    assert (True, True) == (run.code != 0, "nothing was changed" in run.told()), run.told()
    wrong = {"readygate_extender_port": 10259}
    run = plays.run("site.yml", hosts=THREE, tags=f"{EXTENDER},{SCHEDULERS}", **ENFORCE, **wrong)
    assert (True, True) == (run.code != 0, "the earlier one is back in place and answers" in run.told()), run.told()
    assert {host: before[host] for host in THREE[1:]} == {host: inode(controls, host) for host in THREE[1:]}
    assert wait_for(lambda: answer(controls))


@pytest.mark.usefixtures("static")
def test_on_the_way_back_no_scheduler_was_without_an_extender_and_no_file_stays(controls, admin, plays):
    with Landings(admin, PODS_EVERY_S) as landings, AskingAll(controls) as asking:
        run = plays.run("site.yml", hosts=THREE, **ARMED)
        assert run.code == 0, run.told()
        assert landings.settle() < float("inf")
        assert dict.fromkeys(THREE, ({POD_URL, STATIC_URL}, [])) == asking.told()
    for host in THREE:
        listing = controls.ssh(host, f"ls -A {MANIFESTS}").stdout.split()
        assert sorted(f"{name}.yaml" for name in CONTROL_PLANE) == sorted(listing)
        assert controls.ssh(host, f"ls -d {FOLDER}", check=False).returncode != 0
        assert set() == renewal.units(controls, host)
        assert not is_there(admin, f"/api/v1/namespaces/{NS}/pods/{NAME}-{host}")
    assert is_there(admin, DAEMON_SET)
