"""An ordinary play ends with the proof that kube-scheduler asks; one whose scheduler places unasked fails."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kube import contract
from tests.hosts.deployment.landing import POD_URL
from tests.hosts.waiting import wait_for

CANARY_ONLY = Path(__file__).with_name("canary_only.yml")
CANARY = "readygate-canary"
NS = f"/api/v1/namespaces/{contract.NAMESPACE}"
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
EXTENDERS = f"/apis/apps/v1/namespaces/{contract.NAMESPACE}/daemonsets/{contract.NAME_EXTENDER}"
READY = f"curl --silent --fail --max-time 2 {POD_URL}/readyz"


def left_behind(api) -> list[str]:
    found = [*api.items(f"{NS}/pods"), *api.items(CLASSES)]
    return [one["metadata"]["name"] for one in found if one["metadata"]["name"].startswith(CANARY)]


def refusals(api) -> list[str]:
    """What the scheduler's Events say of it, which stay for an hour."""
    events = api.items(f"{NS}/events")
    ours = [one for one in events if one.get("involvedObject", {}).get("name", "").startswith(CANARY)]
    return [one["message"] for one in ours if one["reason"] == "FailedScheduling"]


def test_the_play_has_seen_that_the_scheduler_asks_while_all_gates_are_in_shadow(api, deployed):
    assert "Check that kube-scheduler refuses a pod that readygate refuses on every node" in deployed.output
    assert any(contract.CANARY_REFUSED in said for said in refusals(api)), api.items(f"{NS}/events")
    assert left_behind(api) == []


def test_the_rehearsal_had_none(rehearsed):
    assert rehearsed.code == 0
    assert "is refused everywhere\n" not in rehearsed.output.replace("skipping: [control-1]", "")


def select(api, value: str | None) -> None:
    """Besides what its pods' nodes have to be: None takes it back."""
    selector = {"readygate.dev/nowhere": value}
    api.patch(EXTENDERS, {"spec": {"template": {"spec": {"nodeSelector": selector}}}})


@pytest.fixture
def alone(hosts, api, deployed) -> Iterator[None]:  # noqa: ARG001
    """The scheduler without its extender, in mode protect."""
    select(api, "true")
    assert wait_for(lambda: hosts.ssh("control-1", READY, check=False).returncode != 0)
    yield
    select(api, None)
    assert wait_for(lambda: hosts.ssh("control-1", READY, check=False).returncode == 0)


@pytest.mark.usefixtures("alone")
def test_a_scheduler_that_places_unasked_fails_the_play(api, ansible):
    run = ansible.run(CANARY_ONLY)
    assert run.code != 0
    assert "kube-scheduler (default-scheduler) placed a pod on node " in run.told()
    assert "check.yml reports for each host whether readygate is registered" in run.told()
    assert left_behind(api) == []
