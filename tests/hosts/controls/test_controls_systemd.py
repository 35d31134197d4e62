"""Three schedulers that systemd runs, each by a unit of its own: readygate is told to them by a drop-in, proven as with
kubeadm, and taken out to the byte.

The units start what kubeadm's manifests started, with the binary of the image.
"""

import pytest

from tests.hosts.controls.schedulers import MANIFEST, THREE
from tests.hosts.deployment.landing import Landings
from tests.hosts.deployment.test_survival import SCHEDULER_OFF

METHOD = {"readygate_scheduler_config_method": "systemd"}
SCHEDULER = "readygate_scheduler_config"
ASKED = ["http://127.0.0.1:9376"]
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
# All that systemd knows of it, and all that has our name.
AS_IT_IS = (
    "systemctl cat kube-scheduler.service; ls -A /etc/systemd/system /etc/kubernetes;"
    " ls -AR /etc/systemd/system/kube-scheduler.service.d 2>&1"
)


def state(hosts):
    return {host: hosts.ssh(host, AS_IT_IS, check=False).stdout for host in THREE}


@pytest.fixture(scope="module")
def units(controls, plays, schedulers, three):  # noqa: ARG001
    """Schedulers that ask nobody, run by units; the extender is beside them. What the hosts are like."""
    off = plays.run(SCHEDULER_OFF, hosts=THREE)
    assert off.code == 0, off.told()
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
    assert "A pod that readygate refuses everywhere is refused everywhere" in run.output
    assert cluster == schedulers.cluster()
    assert longest_s < float("inf")
    for host in THREE:
        assert "--config=/etc/kubernetes/readygate/kube-scheduler-" in controls.ssh(host, f"cat {DROP_IN}").stdout


def test_a_second_play_changes_nothing_and_check_finds_each_registered(plays, play):
    again = play()
    assert (0, 0) == (again.code, again.changed), again.told()
    checked = plays.run("check.yml", hosts=THREE, **METHOD)
    assert (0, 0) == (checked.code, checked.changed), checked.told()


@pytest.mark.usefixtures("registered")
def test_taken_out_the_units_are_as_they_were_to_the_byte(controls, plays, schedulers, units):
    off = plays.run(SCHEDULER_OFF, hosts=THREE, **METHOD)
    assert off.code == 0, off.told()
    assert schedulers.all_ask([])
    assert units == state(controls)
