"""Three schedulers with what kubespray renders for them, in an inventory with kubespray's groups: the play prints what
its inventory needs and changes nothing; with that, rendered as kubespray does, each scheduler asks and is proven to.
"""

import json
import re

import pytest

from tests.hosts.controls.schedulers import MANIFEST, THREE
from tests.hosts.deployment.conftest import ansible_for
from tests.hosts.deployment.landing import POD_URL
from tests.playbooks import kubespray
from tools.testbed.hosts.hosts import Hosts

METHOD = {"readygate_scheduler_config_method": "kubespray"}
SCHEDULER = "readygate_scheduler_config"
# What `crictl stopp` of docs/registration.md does: the kubelet makes a new sandbox. The testbed has no crictl.
NEW_SANDBOX = """
sandbox=$(ctr --namespace k8s.io containers ls --quiet \
  "labels.\\"io.cri-containerd.kind\\"==sandbox,labels.\\"io.kubernetes.pod.name\\"==kube-scheduler-$(hostname)")
# An earlier one that has ended has no task any more.
for one in $sandbox; do ctr --namespace k8s.io tasks kill --signal SIGKILL $one || true; done
"""


# Several plays before the first of these tests, host after host.
pytestmark = pytest.mark.timeout(1800)


class Sprayed:
    """The hosts, in an inventory with kubespray's names for the groups."""

    def __init__(self, hosts: Hosts) -> None:
        self._hosts = hosts
        self.progress = hosts.progress

    def inventory(self, controls=()) -> str:
        written = self._hosts.inventory(controls)
        return written.replace("control_plane:", "kube_control_plane:").replace("workers:", "kube_node:")


def render(controls, extenders) -> None:
    """kubespray's file, on each host. As by Ansible's template, it is another file afterwards."""
    write = f"cat > {kubespray.FILE}.new && mv {kubespray.FILE}.new {kubespray.FILE}"
    for host in THREE:
        controls.ssh(host, write, stdin=kubespray.configuration(extenders))


@pytest.fixture(scope="module")
def sprayed(controls, plays, schedulers, unasked, tmp_path_factory):  # noqa: ARG001
    """readygate on a cluster whose schedulers are kubespray's and do not ask. Returns what plays there."""
    render(controls, [])
    schedulers.give(kubespray.SECTION)
    assert schedulers.all_ask([]), "kubespray's schedulers run"
    image = plays.variables["readygate_image"]
    yield ansible_for(Sprayed(controls), image, tmp_path_factory.mktemp("sprayed"), "controls", limit_s=1200.0)
    schedulers.give({})
    assert schedulers.all_ask([])
    for host in THREE:
        controls.ssh(host, f"rm {kubespray.FILE}")


@pytest.fixture(scope="module")
def refused(controls, sprayed):
    """The play before kubespray's inventory has us, and the manifests around it."""
    manifests = [controls.ssh(host, f"stat --format=%i:%z {MANIFEST}").stdout for host in THREE]
    run = sprayed.run("site.yml", hosts=THREE, tags=SCHEDULER, **METHOD)
    return run, manifests == [controls.ssh(host, f"stat --format=%i:%z {MANIFEST}").stdout for host in THREE]


def printed(run) -> list[dict]:
    """What to add, as the play has printed it; within JSON or not."""
    text = re.search(r"k8s_cluster: (\{.*?\}) and run", run.output.replace('\\"', '"'))
    return list(json.loads(text[1])["kube_scheduler_extenders"]) if text else []


def test_before_its_inventory_has_us_the_play_fails_with_what_to_add_and_changes_nothing(refused):
    run, same = refused
    assert (True, 0, True) == (run.code != 0, run.changed, same), run.told()
    assert [POD_URL] == [one["urlPrefix"] for one in printed(run)]


def test_with_it_each_scheduler_asks_and_the_play_and_check_prove_it(controls, schedulers, sprayed, refused):
    render(controls, printed(refused[0]))
    for host in THREE:
        controls.ssh(host, NEW_SANDBOX)
    assert schedulers.all_ask([POD_URL])
    run = sprayed.run("site.yml", hosts=THREE, tags=SCHEDULER, **METHOD)
    assert (0, 0) == (run.code, run.changed), run.told()
    assert "Check that kube-scheduler refuses a pod that readygate refuses on every node" in run.output
    checked = sprayed.run("check.yml", hosts=THREE, **METHOD)
    assert (0, 0) == (checked.code, checked.changed), checked.told()
