"""What happens when a deployment goes wrong, and that uninstall.yml leaves the control plane as kubeadm made it."""

from pathlib import Path

import pytest
import yaml

from kube import contract
from tests.hosts.deployment import readme
from tests.hosts.deployment.conftest import namespaces, scheduler_files
from tests.hosts.deployment.probing import PODS, clear, pod
from tests.hosts.waiting import wait_for
from tools.testbed.hosts.images import PAUSE

SCHEDULER_ONLY = Path(__file__).with_name("scheduler_only.yml")
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
WRONG = {
    "profiles": [{"schedulerName": "default-scheduler", "plugins": {"filter": {"enabled": [{"name": "NoSuchPlugin"}]}}}]
}


def schedules(api) -> bool:
    clear(api)
    api.create(PODS, pod("probing-again", None, PAUSE))
    # The lock of the scheduler that was ended has to run out first: 15 s.
    return bool(wait_for(lambda: api.get(f"{PODS}/probing-again")["spec"].get("nodeName")))


@pytest.fixture
def as_it_was(hosts, api, deployed):  # noqa: ARG001
    """The control plane's files before the test, which must be the same after it."""
    before = scheduler_files(hosts, api)
    yield before
    assert before == scheduler_files(hosts, api)


@pytest.mark.usefixtures("as_it_was")
def test_a_configuration_the_scheduler_refuses_is_never_put_in_place(hosts, ansible):
    run = ansible.run(SCHEDULER_ONLY, readygate_scheduler_config_base=WRONG)
    assert run.code != 0
    assert "NoSuchPlugin" in run.told()
    assert "nothing was changed" in run.told()
    assert hosts.ssh("control-1", "ls /etc/kubernetes/readygate/kube-scheduler-* | wc -l").stdout.strip() == "1"


@pytest.mark.usefixtures("as_it_was")
def test_edits_that_kubeadm_would_lose_stop_the_play(ansible):
    run = ansible.run(
        SCHEDULER_ONLY, readygate_scheduler_config_kubeadm_environment={"HTTPS_PROXY": "http://192.0.2.9:3128"}
    )
    assert (run.code != 0, run.changed) == (True, 0)
    assert "differs from what kubeadm would write: these lines (+) would be new. Remove them from" in run.told()
    assert "192.0.2.9" in run.told()


@pytest.mark.usefixtures("as_it_was")
def test_a_scheduler_that_does_not_come_up_gets_its_old_manifest_back(api, ansible):
    run = ansible.run(
        SCHEDULER_ONLY,
        readygate_scheduler_config_base=WRONG,
        readygate_scheduler_config_validate=False,
        readygate_scheduler_config_health_timeout_seconds=30,
    )
    assert run.code != 0
    assert "the earlier manifest is back in place and works" in run.told()
    assert "NoSuchPlugin" in run.told()
    assert schedules(api)


def test_uninstall_leaves_the_control_plane_as_kubeadm_made_it(hosts, api, checkout, untouched, deployed):
    assert deployed.code == 0
    run = checkout.run(readme.REMOVE)
    assert run.code == 0, run.told()
    after = scheduler_files(hosts, api)
    assert untouched.manifest == after.manifest, "byte for byte"
    assert untouched.listing == after.listing
    assert yaml.safe_load(untouched.cluster) == yaml.safe_load(after.cluster)
    assert hosts.ssh("control-1", "ls -A /etc/kubernetes | grep readygate || true").stdout == ""
    assert contract.NAMESPACE not in namespaces(api)
    assert schedules(api)
    clear(api)


@pytest.mark.parametrize(
    "path",
    [
        "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
        "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
        "/apis/rbac.authorization.k8s.io/v1/roles",
        "/apis/rbac.authorization.k8s.io/v1/rolebindings",
        CLASSES,
    ],
)
def test_uninstall_leaves_no_object_behind(api, path):
    assert [o["metadata"]["name"] for o in api.items(path) if "readygate" in o["metadata"]["name"]] == []


def test_uninstall_leaves_no_mark_on_a_node(api):
    for node in api.items("/api/v1/nodes"):
        marks = [key for kind in ("labels", "annotations") for key in node["metadata"].get(kind, {})]
        assert [key for key in marks if "readygate" in key] == []


def test_a_second_uninstall_finds_nothing_to_do(ansible):
    run = ansible.run("uninstall.yml")
    assert (run.code, run.changed) == (0, 0), run.told()
