"""Three schedulers that systemd runs, each by a unit of its own: readygate is told to them by a drop-in, proven as with
kubeadm, put back where it does not work, whoever dies in the middle, and taken out to the byte.

The units start what kubeadm's manifests started, with the binary of the image.
"""

import signal

import pytest

from tests.hosts.controls.schedulers import MANIFEST, THREE
from tests.hosts.deployment.landing import POD_URL, Landings
from tests.hosts.deployment.test_survival import FOLDER, SCHEDULER_OFF, TIMEOUT
from tests.hosts.deployment.test_undo import WRONG
from tests.hosts.waiting import wait_for

METHOD = {"readygate_scheduler_config_method": "systemd"}
SCHEDULER = "readygate_scheduler_config"
ASKED = [POD_URL]
KEPT = "/root/kube-scheduler.yaml"
DROP_IN = "/etc/systemd/system/kube-scheduler.service.d/readygate.conf"
# kubeadm's command has an argument a line.
TO_A_UNIT = f"""
set -e
cp /proc/$(pgrep --exact kube-scheduler | head -1)/exe /usr/local/bin/kube-scheduler
arguments=$(sed -n 's/^    - \\(--.*\\)$/\\1/p' {MANIFEST} | tr '\\n' ' ')
cat > /etc/systemd/system/kube-scheduler.service <<END
[Service]
ExecStart=/usr/local/bin/kube-scheduler $arguments
Restart=always
RestartSec=2
[Install]
WantedBy=multi-user.target
END
mv {MANIFEST} {KEPT}
while pgrep --exact kube-scheduler; do sleep 0.2; done
systemctl daemon-reload
systemctl enable --now kube-scheduler.service
"""
FROM_A_UNIT = f"""
systemctl disable --now kube-scheduler.service
rm -f /etc/systemd/system/kube-scheduler.service /usr/local/bin/kube-scheduler
systemctl daemon-reload
test ! -e {KEPT} || mv {KEPT} {MANIFEST}
"""
# Several plays before the first of these tests, host after host.
pytestmark = pytest.mark.timeout(1800)
# All that systemd knows of it, and all that has our name.
AS_IT_IS = (
    "systemctl cat kube-scheduler.service; ls -A /etc/systemd/system /etc/kubernetes;"
    " ls -AR /etc/systemd/system/kube-scheduler.service.d 2>&1"
)


def state(hosts):
    return {host: hosts.ssh(host, AS_IT_IS, check=False).stdout for host in THREE}


@pytest.fixture(scope="module")
def units(controls, schedulers, unasked):  # noqa: ARG001
    """Schedulers that ask nobody, run by units; the extender is beside them. What the hosts are like."""
    for host in THREE:
        controls.ssh(host, TO_A_UNIT)
    assert schedulers.all_ask([])
    yield state(controls)
    for host in THREE:
        controls.ssh(host, FROM_A_UNIT, check=False)
    assert schedulers.all_ask([])


@pytest.fixture(scope="module")
def registered(admin, schedulers, plays, units):  # noqa: ARG001
    """The run that has told them, kubeadm's ClusterConfiguration before it, and the longest wait of a pod meanwhile."""
    before = schedulers.cluster()
    with Landings(admin) as landings:
        run = plays.run("site.yml", hosts=THREE, tags=SCHEDULER, **METHOD)
        assert run.code == 0, run.told()
        return run, before, landings.settle()


@pytest.fixture
def play(plays, registered):  # noqa: ARG001
    return lambda **more: plays.run("site.yml", hosts=THREE, tags=SCHEDULER, **METHOD, **more)


def test_each_scheduler_asks_by_a_drop_in_and_kubeadm_is_told_nothing(controls, schedulers, registered):
    run, cluster, longest_s = registered
    assert schedulers.all_ask(ASKED)
    assert "Check that kube-scheduler refuses a pod that readygate refuses on every node" in run.output
    assert cluster == schedulers.cluster()
    assert longest_s < float("inf")
    for host in THREE:
        assert "--config=/etc/kubernetes/readygate/kube-scheduler-" in controls.ssh(host, f"cat {DROP_IN}").stdout


def test_a_second_play_changes_nothing_and_check_finds_each_registered(plays, play):
    again = play()
    assert (0, 0) == (again.code, again.changed), again.told()
    checked = plays.run("check.yml", hosts=THREE, **METHOD)
    assert (0, 0) == (checked.code, checked.changed), checked.told()


def test_a_configuration_that_the_schedulers_own_binary_refuses_is_never_put_in_place(controls, play):
    before = state(controls)
    run = play(readygate_scheduler_config_base=WRONG)
    assert run.code != 0
    assert all(text in run.told() for text in ("NoSuchPlugin", "nothing was changed")), run.told()
    assert before == state(controls)


def test_a_scheduler_that_does_not_come_up_gets_its_drop_in_back_and_the_others_are_not_touched(
    controls, schedulers, play
):
    before = state(controls)
    more = {"readygate_scheduler_config_validate": False, "readygate_scheduler_config_health_timeout_seconds": 20}
    run = play(readygate_scheduler_config_base=WRONG, **more)
    assert run.code != 0
    assert "the earlier manifest is back in place and works" in run.told(), run.told()
    assert "NoSuchPlugin" in run.told(), "its last words are in the journal"
    assert before == state(controls)
    assert schedulers.all_ask(ASKED)


def test_everybody_killed_in_the_middle_a_timer_ends_the_change(controls, plays, play, schedulers):
    def open_on():
        look = f"test -e {FOLDER}/pending/proven -a ! -e {FOLDER}/pending/wanted"
        return next((host for host in THREE if controls.ssh(host, look, check=False).returncode == 0), "")

    with plays.begin("site.yml", hosts=THREE, tags=SCHEDULER, **METHOD, **{TIMEOUT: "3s"}) as running:
        host = wait_for(open_on)
        running.send_signal(signal.SIGKILL)
    assert host, "the drop-in is in place, and not yet proven"
    controls.ssh(host, "systemctl kill --kill-whom=all --signal=KILL readygate-scheduler.service", check=False)
    closed = f"test ! -e {FOLDER}/pending && cmp {FOLDER}/proven/target {DROP_IN}"
    assert wait_for(lambda: controls.ssh(host, closed, check=False).returncode == 0)
    assert schedulers.all_ask(ASKED)
    again = play(**{TIMEOUT: "3s"})
    assert again.code == 0, again.told()
    assert dict.fromkeys(THREE, "3s") == schedulers.timeouts()


def test_a_registration_that_was_detached_is_found_missing_and_comes_back(controls, plays, play, schedulers):
    out = plays.run("detach.yml", hosts=THREE, **METHOD)
    assert (0, 3) == (out.code, out.changed), out.told()
    assert schedulers.all_ask([])
    lost = plays.run("check.yml", hosts=THREE, **METHOD)
    assert (True, 0) == (lost.code != 0, lost.changed)
    assert f"kube-scheduler does not ask {POD_URL}" in lost.output
    again = play()
    assert again.code == 0, again.told()
    assert schedulers.all_ask(ASKED)
    controls.ssh("control-2", "python3 /etc/kubernetes/readygate/bin/readygate_scheduler detach")
    expected = [ASKED, [], ASKED]
    assert wait_for(lambda: expected == [schedulers.extenders(host) for host in THREE])


@pytest.mark.usefixtures("registered")
def test_taken_out_the_units_are_as_they_were_to_the_byte(controls, plays, schedulers, units):
    off = plays.run(SCHEDULER_OFF, hosts=THREE, **METHOD)
    assert off.code == 0, off.told()
    assert schedulers.all_ask([])
    assert units == state(controls)
