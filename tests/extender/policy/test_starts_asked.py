"""A failed start counts only if kube-scheduler asked about the pod, which is known a moment later."""

from tests.extender.policy.test_pod_starts import OWNERS, Told, all_owners, stuck_pods
from tools.kit.cases import cases


def asked_after(told: Told, seconds: float, *, look: bool = True) -> Told:
    """Kube-scheduler's questions about all pods so far become known that much later."""
    known_at = told.now + seconds
    told.asked = lambda _: told.now >= known_at
    while look and told.now < known_at:
        told.black()
        told.passes(min(1.0, known_at - told.now))
    return told


def broken_pods() -> Told:
    return stuck_pods(Told(), able=True, broken="CreateContainerError")


@cases(
    "told, expected",
    ("not asked about, rejected", asked_after(all_owners(), 1e9, look=False), []),
    ("not asked about, stuck", asked_after(stuck_pods(Told()), 1e9, look=False).passes(60), []),
    ("not asked about, with a broken container", asked_after(broken_pods(), 1e9, look=False), []),
    ("rejected before the question was recorded", asked_after(all_owners(), 1), ["bad"]),
    ("bound before it was recorded", asked_after(stuck_pods(Told()), 1).passes(30), ["bad"]),
    ("broken before it", asked_after(broken_pods(), 1), ["bad"]),
    ("a question about a pod of that name a minute later", asked_after(all_owners(), 60), []),
    ("a pod of one started there before it was recorded", asked_after(all_owners().runs("web", "bad"), 1), []),
    ("one pod started there, another is broken", asked_after(broken_pods().runs("web", "bad"), 1), []),
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
