"""A failed start counts only if kube-scheduler asked about the pod, which is known a moment later."""

import pytest

from tests.extender.policy.test_starts import OWNERS, Told, all_owners, stuck_pods


def asked_after(told: Told, seconds: float, *, look: bool = True) -> Told:
    """Kube-scheduler's questions about all pods so far become known that much later."""
    known_at = told.now + seconds
    told.asked = lambda _: told.now >= known_at
    while look and told.now < known_at:
        told.black()
        told.passes(min(1.0, known_at - told.now))
    return told


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        pytest.param(asked_after(all_owners(), 1e9, look=False), [], id="not asked about, rejected"),
        pytest.param(asked_after(stuck_pods(Told()), 1e9, look=False).passes(60), [], id="not asked about, stuck"),
        pytest.param(
            asked_after(stuck_pods(Told(), able=True, broken="CreateContainerError"), 1e9, look=False),
            [],
            id="not asked about, with a container that cannot be created",
        ),
        pytest.param(asked_after(all_owners(), 1), ["bad"], id="rejected before the question was recorded"),
        pytest.param(asked_after(stuck_pods(Told()), 1).passes(30), ["bad"], id="bound before it was recorded"),
        pytest.param(
            asked_after(stuck_pods(Told(), able=True, broken="CreateContainerError"), 1), ["bad"], id="broken before it"
        ),
        pytest.param(asked_after(all_owners(), 60), [], id="a question about a pod of that name a minute later"),
        pytest.param(
            asked_after(all_owners().runs("web", "bad"), 1), [], id="a pod of one started there before it was recorded"
        ),
        pytest.param(
            asked_after(stuck_pods(Told(), able=True, broken="CreateContainerError").runs("web", "bad"), 1),
            [],
            id="a pod of one started there while another one is broken",
        ),
    ],
)
def test_only_pods_that_kube_scheduler_asked_about_accuse_a_node(told: Told, expected: list[str]) -> None:
    assert expected == told.black()


def test_a_pod_that_was_asked_about_and_rejected_counts_although_it_is_deleted_at_once() -> None:
    told = all_owners()
    for uid in told.starts.known:
        told.starts.ended(uid, deleted=True, at=told.now)
    assert ["bad"] == asked_after(told, 1).black()


def test_a_pending_pod_that_was_asked_about_counts_when_its_kubelet_rejects_it_later() -> None:
    told = Told()
    for owner in OWNERS:
        told.runs(owner, "good").bound(owner, "bad", pod=f"{owner}-late")
    told.black()
    told.asked = lambda _: False  # forgotten since
    for owner in OWNERS:
        told.rejected(owner, "bad", pod=f"{owner}-late")
    assert ["bad"] == told.black()
