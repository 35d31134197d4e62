"""Ansible is killed while it changes three schedulers: each answers, hosts it had not come to are as they were, pods
land all the while, and the next run ends the change.

The tasks are listed from a run, not from here. By READYGATE_EVERY_TASK=1 it is killed after each that changes
something and after the first of those that may, else after the change of each host; and after one of the others by
chance.
"""

import os
import random
import signal

import pytest

from kube import contract
from tests.hosts.controls.schedulers import MANIFEST, THREE
from tests.hosts.deployment.landing import Landings
from tests.hosts.deployment.moments import between, drawn, telling, written
from tests.hosts.deployment.test_survival import CHANGE, EVERY_TASK, TIMEOUT, callback
from tests.hosts.waiting import wait_for

SCHEDULER = "readygate_scheduler_config"
BEGIN = "Begin"
CANARY = "readygate-canary"
PODS = f"/api/v1/namespaces/{contract.NAMESPACE}/pods"
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
OPEN = "ls -d /etc/kubernetes/readygate/pending; ls /etc/systemd/system | grep readygate-scheduler"


@pytest.fixture
def play(plays, three):  # noqa: ARG001
    """A function: the scheduler's part of site.yml, with one setting that makes each scheduler start again."""
    return lambda timeout, **more: plays.run("site.yml", hosts=THREE, tags=SCHEDULER, **more, **{TIMEOUT: timeout})


def in_place(hosts):
    """When each host's manifest was put in place."""
    return {host: hosts.ssh(host, f"stat --format=%i:%z {MANIFEST}").stdout for host in THREE}


def all_settled(hosts, schedulers):
    """Every scheduler answers, and no change is open."""
    return all(schedulers.timeouts().values()) and not any(hosts.ssh(h, OPEN, check=False).stdout for h in THREE)


def moments(tasks, seed):
    """After how many tasks to kill. Before BEGIN the play only looks."""
    each = between(tasks, [task.name for task in tasks].index(BEGIN) + 1)
    changes = [number for number in each if tasks[number - 1].name.endswith(CHANGE)]
    always = telling(tasks, each) if os.environ.get(EVERY_TASK) else changes
    return drawn(each, always, random.Random(seed).choice)


def changed(tasks, moment):
    """How many hosts Ansible has changed by then."""
    return sum(task.name.endswith(CHANGE) for task in tasks[:moment])


@pytest.mark.timeout(6 * 3600)
def test_ansible_killed_after_each_task_leaves_three_schedulers_and_the_next_run_ends_the_change(
    controls, admin, schedulers, play, tmp_path, seed
):
    file = tmp_path / "tasks"
    whole = play("10s", environ=callback(file, 0))
    assert whole.code == 0, whole.told()
    tasks = written(file.read_text())
    assert 3 == changed(tasks, len(tasks)), tasks
    for number, moment in enumerate(moments(tasks, seed)):
        name, wanted = tasks[moment - 1].name, f"{11 + number % 40}s"  # another, as /configz writes it: below a minute
        before, led = in_place(controls), schedulers.leader()
        with Landings(admin) as landings:
            run = play(wanted, environ=callback(file, moment))
            assert run.code == -signal.SIGKILL, (name, run.told())
            assert wait_for(lambda: all_settled(controls, schedulers)), name
            assert landings.settle() < float("inf"), name
        after, has = in_place(controls), schedulers.timeouts()
        touched = {host for host in THREE if before[host] != after[host]}
        assert changed(tasks, moment) == len(touched), (name, touched)
        assert touched == {host for host in THREE if has[host] == wanted}, (name, has)
        assert led not in touched or len(touched) == len(THREE), "the leader is last"
        assert [[], [], []] == [schedulers.missing_files(host) for host in THREE], name
        again = play(wanted)
        assert again.code == 0, (name, again.told())
        assert dict.fromkeys(THREE, wanted) == schedulers.timeouts(), name
        assert [[], [], []] == [schedulers.missing_files(host) for host in THREE], name


def canaries(admin):
    found = [*admin.items(PODS), *admin.items(CLASSES)]
    return [one["metadata"]["name"] for one in found if one["metadata"]["name"].startswith(CANARY)]


@pytest.mark.usefixtures("three")
def test_ansible_killed_over_its_canary_leaves_one_that_the_next_run_clears_away(admin, plays, play, schedulers):
    with plays.begin("site.yml", hosts=THREE, tags=SCHEDULER, **{TIMEOUT: "9s"}) as running:
        assert wait_for(lambda: canaries(admin), timeout_s=400), "the canary is there"
        running.kill()
    assert all(schedulers.timeouts().values())
    again = play("9s")
    assert again.code == 0, again.told()
    assert [] == canaries(admin)
