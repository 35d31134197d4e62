"""kube-scheduler's change on a real host whose connection to Ansible is lost in the middle: the host ends it alone."""

from contextlib import contextmanager

import pytest

from tests.hosts.deployment.test_survival import (
    FOLDER,
    SCHEDULER_ONLY,
    STATE,
    TIMEOUT,
    in_the_middle,
    settled,
    timeouts,
)
from tests.hosts.waiting import wait_for

# The process of sshd behind whose connection Ansible's module waits, the only Python there; ours is another connection.
SESSION = (
    "for p in $(pgrep --exact python3); do"
    " while [ $p -gt 1 ] && [ $(cat /proc/$p/comm) != sshd ]; do p=$(cut -d ' ' -f 4 /proc/$p/stat); done; echo $p;"
    " done | grep --invert-match --line-regexp 1 | sort --unique"
)
PORT = "ss --no-header --tcp --numeric --processes state established | grep pid=%s, | head -n 1 | awk '{print $4}'"
DROP = "INPUT --protocol tcp --source-port %s --destination-port 22 --jump DROP"
ENDS_S = 120.0
PROGRAM = "systemctl kill --kill-whom=all --signal=%s readygate-scheduler.service"
# By the host itself: the manifest is in place and nothing is proven for a second or two.
HOLD = (
    f"until test -e {FOLDER}/pending/proven -a ! -e {FOLDER}/pending/wanted; do sleep 0.05; done;"
    f" {PROGRAM % 'STOP'} && touch /root/held"
)


def is_held(hosts):
    return hosts.ssh("control-1", "test -e /root/held", check=False).returncode == 0


@pytest.fixture(scope="module")
def registered(ansible, deployed):  # noqa: ARG001
    """As the deployment has left it, also after these tests."""
    yield
    run = ansible.run(SCHEDULER_ONLY)
    assert run.code == 0, run.told()


@contextmanager
def session_killed(hosts, session):
    """The way of a host whose sshd is restarted, or that is out of memory: Ansible is told at once."""
    hosts.ssh("control-1", f"kill -9 {session}")
    yield


@contextmanager
def packets_dropped(hosts, session):
    """The way of a network that is gone: Ansible is told nothing, and somebody ends it after a while."""
    peer = hosts.ssh("control-1", PORT % session).stdout.strip()
    drop = DROP % peer.rpartition(":")[2]
    hosts.ssh("control-1", f"iptables --insert {drop}")
    try:
        yield
    finally:
        hosts.ssh("control-1", f"iptables --delete {drop}")


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize(("cut", "told", "wanted"), [(session_killed, True, "21s"), (packets_dropped, False, "22s")])
def test_a_connection_that_is_lost_in_the_middle_leaves_a_scheduler_and_the_next_run_ends_it(
    hosts, ansible, cut, told, wanted
):
    """The program on the host is held while the connection is cut: the middle is short."""
    before = timeouts(hosts)
    hosts.ssh("control-1", "rm -f /root/held")
    hosts.ssh("control-1", f"systemd-run --unit=holding --collect --quiet sh -c '{HOLD}'")
    with ansible.begin(SCHEDULER_ONLY, **{TIMEOUT: wanted}) as running:
        try:
            assert wait_for(lambda: is_held(hosts)), "the manifest is in place"
            assert in_the_middle(hosts)
            (session,) = hosts.ssh("control-1", SESSION).stdout.split()
            with cut(hosts, session):
                hosts.ssh("control-1", PROGRAM % "CONT")
                assert wait_for(lambda: settled(hosts)), hosts.ssh("control-1", STATE).stdout
                if told:
                    assert running.wait(timeout=ENDS_S) != 0
                assert told == (running.poll() is not None)
        finally:
            hosts.ssh("control-1", f"systemctl stop holding; {PROGRAM % 'CONT'}", check=False)
    assert timeouts(hosts) in ([wanted], before)
    again = ansible.run(SCHEDULER_ONLY, **{TIMEOUT: wanted})
    assert again.code == 0, again.told()
    assert [wanted] == timeouts(hosts)
    assert hosts.ssh("control-1", f"ls {FOLDER}").stdout.count("pending") == 0
