"""Ansible is killed anywhere in the whole of site.yml, while it changes agents, extender and scheduler: a scheduler
answers and pods land, hosts that it does not change are as they were, and the next run ends what was begun.

The tasks are listed from a run, not from here. By READYGATE_EVERY_TASK=1 it is killed after each that changes
something and after the first of those that may, else after two by chance.
"""

import os
import random
import signal

import pytest

from tests.hosts.deployment.conftest import ARMED, agents
from tests.hosts.deployment.landing import POD_URL, Landings
from tests.hosts.deployment.moments import between, telling, written
from tests.hosts.deployment.test_survival import CHANGE, EVERY_TASK, TIMEOUT, callback, settled, timeouts
from tests.hosts.waiting import wait_for

BEGIN = "Begin"
OTHERS = "find /etc/kubernetes /etc/systemd -printf '%p %T@\n'"
READY = f"curl --silent --fail {POD_URL}/readyz"
LEVELS = ("warning", "error")


def wanted(number):
    """Settings that start everything anew; other ones each time, as /configz writes them: below a minute."""
    extender = {**ARMED["readygate_extender_configuration"], "log": {"level": LEVELS[number % 2]}}
    return {
        **ARMED,
        "readygate_agent_log_level": LEVELS[number % 2],
        "readygate_extender_configuration": extender,
        TIMEOUT: f"{11 + number % 40}s",
    }


def moments(tasks, seed):
    """After how many tasks to kill. Before BEGIN the play only looks."""
    each = between(tasks, [task.name.rpartition(" : ")[2] for task in tasks].index(BEGIN) + 1)
    told = telling(tasks, each)
    return told if os.environ.get(EVERY_TASK) else sorted(random.Random(seed).sample(told, 2))


@pytest.fixture(scope="module")
def as_armed(ansible, armed):  # noqa: ARG001
    """As other tests expect it, also after these."""
    yield
    run = ansible.run("site.yml", **ARMED)
    assert run.code == 0, run.told()


@pytest.mark.timeout(3 * 3600)
@pytest.mark.usefixtures("as_armed")
def test_ansible_killed_anywhere_in_site_yml_harms_nobody_and_the_next_run_ends_it(hosts, api, ansible, tmp_path, seed):
    file = tmp_path / "tasks"
    whole = ansible.run("site.yml", environ=callback(file, 0), **wanted(0))
    assert whole.code == 0, whole.told()
    others = hosts.ssh("worker-1", OTHERS).stdout
    tasks = written(file.read_text())
    assert any(task.name.endswith(CHANGE) for task in tasks), "the scheduler is changed too"
    for number, moment in enumerate(moments(tasks, seed), 1):
        name = f"after task {moment}, {tasks[moment - 1].name}"
        with Landings(api) as landings:
            run = ansible.run("site.yml", environ=callback(file, moment), **wanted(number))
            assert run.code == -signal.SIGKILL, (name, run.told())
            assert wait_for(lambda: settled(hosts)), name
            assert landings.settle() < float("inf"), name
        assert wait_for(lambda: hosts.ssh("control-1", READY, check=False).returncode == 0), name
        assert len(hosts.names) == len(agents(api)), name
        again = ansible.run("site.yml", **wanted(number))
        assert again.code == 0, (name, again.told())
        assert [wanted(number)[TIMEOUT]] == timeouts(hosts), name
        assert others == hosts.ssh("worker-1", OTHERS).stdout, name
    once_more = ansible.run("site.yml", **wanted(number))
    assert (once_more.code, once_more.changed) == (0, 0), once_more.told()
