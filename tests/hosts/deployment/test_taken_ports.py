"""The port of the DaemonSet's extender: no other user of its host takes it, and a cluster where it was another moves.

The static pod's is in test_static.py.
"""

import pytest

from kube import contract
from tests.hosts.deployment.conftest import ARMED
from tests.hosts.deployment.landing import POD_URL
from tests.hosts.deployment.ports import is_without_rights, statuses, taken_while_it_starts_again
from tests.hosts.deployment.test_survival import configz

BEFORE = {"readygate_extender_port": contract.PORT_UNPRIVILEGED}
BEFORE_URL = f"http://127.0.0.1:{contract.PORT_UNPRIVILEGED}"
EXTENDER = "readygate_extender"


def asked(hosts) -> list[str]:
    """By the scheduler, as it says itself."""
    return [one["urlPrefix"] for one in configz(hosts).get("extenders") or []]


@pytest.fixture(scope="module")
def before(hosts, ansible, deployed):  # noqa: ARG001
    """The cluster as an earlier release left it."""
    run = ansible.run("site.yml", **ARMED, **BEFORE)
    assert run.code == 0, run.told()
    assert ([BEFORE_URL], [True, True]) == (
        asked(hosts),
        [is_without_rights(one) for one in statuses(hosts, contract.PORT_UNPRIVILEGED)],
    )


@pytest.mark.usefixtures("before")
def test_the_port_does_not_move_where_the_schedulers_would_not_follow(hosts, ansible):
    run = ansible.run("site.yml", tags=EXTENDER, **ARMED)
    assert (run.code != 0, run.changed) == (True, 0), run.told()
    assert "this run leaves kube-schedulers out" in run.told()
    assert len(statuses(hosts, contract.PORT_UNPRIVILEGED)) == 2


@pytest.mark.usefixtures("before")
def test_one_run_moves_the_extender_and_the_scheduler_asks_nobody_else(hosts, ansible):
    run = ansible.run("site.yml", **ARMED)
    assert run.code == 0, run.told()
    assert ([POD_URL], []) == (asked(hosts), statuses(hosts, contract.PORT_UNPRIVILEGED))
    for playbook in ("site.yml", "check.yml"):
        again = ansible.run(playbook, **ARMED)
        assert (again.code, again.changed) == (0, 0), again.told()


@pytest.mark.usefixtures("deployed")
def test_neither_process_is_root_or_could_be_and_no_other_user_takes_the_port_meanwhile(hosts):
    assert [True, True] == [is_without_rights(one) for one in statuses(hosts, contract.PORT_DAEMON_SET)]
    assert 0 == taken_while_it_starts_again(hosts, contract.PORT_DAEMON_SET)
