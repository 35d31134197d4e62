"""Ansible is killed while it changes three schedulers: each answers, hosts it had not come to are as they were, pods
land all the while, and the next run ends the change.

The tasks are listed from a run, not from here. By READYGATE_EVERY_TASK=1 it is killed after each from the first on that
does more than look, else after the change of each host, and after one by chance.
"""

import os
import random
import signal

import pytest

from kube import contract
from tests.hosts.controls.schedulers import MANIFEST, THREE
from tests.hosts.deployment.landing import Landings
from tests.hosts.deployment.test_survival import CHANGE, EVERY_TASK, TIMEOUT, callback
from tests.kit.waiting import wait_for

SCHEDULER = "readygate_scheduler_config"
BEGIN = "Begin"
LIMIT_S = 60.0
CANARY = "readygate-canary"
PODS = f"/api/v1/namespaces/{contract.NAMESPACE}/pods"
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
OPEN = "ls -d /etc/kubernetes/readygate/pending; ls /etc/systemd/system | grep readygate-scheduler"


@pytest.fixture
def play(plays, three):  # noqa: ARG001
    """A function: the scheduler's part of site.yml, with one setting that makes each scheduler start again."""
    return lambda timeout, **more: plays.run("site.yml", hosts=THREE, tags=SCHEDULER, **more, **{TIMEOUT: timeout})


def timeouts(schedulers):
    """Of the one extender that each scheduler asks; None where it does not answer, or asks more or none."""
    said = {host: schedulers.extenders(host, "httpTimeout") for host in THREE}
    return {host: found[0] if found and len(found) == 1 else None for host, found in said.items()}


def written(hosts):
    """When each host's manifest was put in place."""
    return {host: hosts.ssh(host, f"stat --format=%i:%z {MANIFEST}").stdout for host in THREE}


def all_settled(hosts, schedulers):
    """Every scheduler answers, and no change is open."""
    return all(timeouts(schedulers).values()) and not any(hosts.ssh(h, OPEN, check=False).stdout for h in THREE)


def moments(names, seed):
    """After how many tasks to kill. Before BEGIN the play only looks; a task that is the same on several hosts at once
    counts when the last of them has done it."""
    begun = names.index(BEGIN) + 1
    each = [number for number in range(begun, len(names)) if names[number - 1] != names[number]]
    if os.environ.get(EVERY_TASK):
        return each
    changes = [number for number in each if names[number - 1].endswith(CHANGE)]
    others = [number for number in each if number not in changes]
    return sorted([*changes, random.Random(seed).choice(others)])


def changed(names, moment):
    """How many hosts Ansible has changed by then."""
    return sum(name.endswith(CHANGE) for name in names[:moment])


@pytest.mark.timeout(6 * 3600)
def test_ansible_killed_after_each_task_leaves_three_schedulers_and_the_next_run_ends_the_change(
    controls, admin, schedulers, play, tmp_path, seed
):
    tasks = tmp_path / "tasks"
    whole = play("10s", environ=callback(tasks, 0))
    assert whole.code == 0, whole.told()
    names = tasks.read_text().splitlines()
    assert 3 == changed(names, len(names)), names
    for number, moment in enumerate(moments(names, seed)):
        # Another one each time, and as /configz writes it: below a minute.
        wanted, before, led = f"{11 + number % 40}s", written(controls), schedulers.leader()
        with Landings(admin) as landings:
            run = play(wanted, environ=callback(tasks, moment))
            assert run.code == -signal.SIGKILL, (names[moment - 1], run.told())
            assert wait_for(lambda: all_settled(controls, schedulers), timeout_s=LIMIT_S, every_s=1), names[moment - 1]
            assert landings.settle() < LIMIT_S, names[moment - 1]
        after, has = written(controls), timeouts(schedulers)
        touched = {host for host in THREE if before[host] != after[host]}
        assert changed(names, moment) == len(touched), (names[moment - 1], touched)
        assert touched == {host for host in THREE if has[host] == wanted}, (names[moment - 1], has)
        assert led not in touched or len(touched) == len(THREE), "the leader is last"
        assert [[], [], []] == [schedulers.missing_files(host) for host in THREE], names[moment - 1]
        again = play(wanted)
        assert again.code == 0, (names[moment - 1], again.told())
        assert dict.fromkeys(THREE, wanted) == timeouts(schedulers), names[moment - 1]
        assert [[], [], []] == [schedulers.missing_files(host) for host in THREE], names[moment - 1]


def canaries(admin):
    found = [*admin.items(PODS), *admin.items(CLASSES)]
    return [one["metadata"]["name"] for one in found if one["metadata"]["name"].startswith(CANARY)]


@pytest.mark.usefixtures("three")
def test_ansible_killed_over_its_canary_leaves_one_that_the_next_run_clears_away(admin, plays, play, schedulers):
    with plays.begin("site.yml", hosts=THREE, tags=SCHEDULER, **{TIMEOUT: "9s"}) as running:
        assert wait_for(lambda: canaries(admin), timeout_s=400), "the canary is there"
        running.kill()
    assert all(timeouts(schedulers).values())
    again = play("9s")
    assert again.code == 0, again.told()
    assert [] == canaries(admin)
