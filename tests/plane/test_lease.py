"""The real Lease by which kube-schedulers agree on who leads, and what the program of a registration does about it."""

import subprocess
import time
from collections.abc import Iterator

import pytest

from tests.plane.cluster import Cluster
from tests.playbooks.host.configz import configuration_of
from tests.playbooks.host.lease import Lease
from tests.playbooks.seeing import given, job, manifest, plan, seen
from tools.kit.waiting import wait_for
from tools.testbed.plane.identities import ADMIN

LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler"
LEASE_S = 300  # so long the next one would wait by itself


def run(argv: list[str], limit_s: float) -> tuple[int, str]:
    done = subprocess.run(argv, capture_output=True, text=True, timeout=10 * limit_s, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def elected(cluster: Cluster) -> Iterator[Cluster]:
    """Its scheduler leads because it has the Lease."""
    cluster.plane.stop_scheduler()
    cluster.api.delete(LEASE)
    config = cluster.plane.scheduler_config([], "elected", elected=True, lease_s=LEASE_S)
    cluster.plane.restart_scheduler(config)
    assert wait_for(lambda: lease(cluster).holder(), timeout_s=60)
    yield cluster
    cluster.plane.restart_scheduler()


def lease(cluster: Cluster, holder: str = "") -> Lease:
    """As the play tells the program on the host to ask, of what this scheduler says."""
    plane = cluster.plane
    kubectl = [str(plane.kubectl), f"--kubeconfig={plane.kubeconfig_for(ADMIN)}"]
    configz = [*kubectl, "get", "--raw=/configz", f"--server={plane.scheduler_url}", "--insecure-skip-tls-verify"]
    loaded = configuration_of(run(configz, 3.0)[1])
    looked = seen(manifest(), configz=loaded, configz_command=configz, kubectl=kubectl)
    rendered = {"wanted": manifest(), "without": manifest()}
    return Lease(run, job(looked, given(), plan(looked, given()), rendered)["lease"], holder)


def named(cluster: Cluster) -> str:
    return str(cluster.api.get(LEASE)["spec"].get("holderIdentity", ""))


def test_after_a_scheduler_that_was_killed_the_next_one_leads_at_once(elected: Cluster):
    (node,) = elected.add_nodes(1)
    holder = lease(elected).holder()
    killed = lease(elected, holder)
    assert holder == named(elected)
    elected.plane.kill_scheduler()
    elected.add_pod("waits")
    killed.give_up()
    assert "" == named(elected)

    began = time.monotonic()
    elected.plane.start_scheduler(elected.plane.scheduler_config([], "elected", elected=True, lease_s=LEASE_S))
    assert node == elected.wait_bound("waits")
    print(f"bound {time.monotonic() - began:.2f} s after the next scheduler was started")


def test_the_lease_of_one_that_leads_again_is_not_given_up(elected: Cluster):
    killed = lease(elected, "control-1_of-a-scheduler-that-has-ended")
    holder = named(elected)
    killed.give_up()
    assert holder == named(elected)
