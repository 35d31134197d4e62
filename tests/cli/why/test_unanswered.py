"""`readygate why pod` for messages of kube-scheduler that count no nodes: failed calls of extenders, and plugins."""

import msgspec
import pytest

from cli.shared.layout import text_of
from cli.why import pod_page
from cli.why.pod_view import read_pod
from extender.source import Sync
from tests.cli.why.blaming import EARLIER, NOT_OURS, attempt, blamed, encoded_pod, pod, told

REFUSED = 'Post "http://127.0.0.1:338/filter": dial tcp 127.0.0.1:338: connect: connection refused'
NOTHING = "readygate is not the cause: no node that it closed would have taken this pod."
WAITS = "It waits for readygate (enforce), and kube-scheduler gets no verdict:"


@pytest.mark.parametrize(
    ("seen", "answers", "code", "expected"),
    [
        pytest.param(
            pod(REFUSED),
            [told()],
            3,
            f"{WAITS} {REFUSED}.",
            id="the extender on the leader's host is down",
        ),
        pytest.param(
            pod(REFUSED, said_s=2),
            [told(attempt(passed=3))],
            3,
            f"{WAITS} {REFUSED}.",
            id="it went down after the last call",
        ),
        pytest.param(
            pod(REFUSED, said_s=60), [told(attempt(passed=3))], 0, NOTHING, id="it was down, and has answered since"
        ),
        pytest.param(
            pod("failed filter with extender at URL http://127.0.0.1:9376/filter, code 503"),
            [told()],
            3,
            f"{WAITS} failed filter with extender at URL http://127.0.0.1:9376/filter, code 503.",
            id="it fails",
        ),
        pytest.param(
            pod(Sync.STALE.value),
            [told(unanswered=3, unanswered_why="stale")],
            3,
            f"{WAITS} {Sync.STALE.value}.",
            id="the called extender is stale, another one is not",
        ),
        pytest.param(
            pod('Post "http://10.0.0.9:8888/filter": EOF'),
            [told()],
            3,
            "Unknown: an extender at http://10.0.0.9:8888/filter does not answer kube-scheduler; readygate doctor "
            "shows whether it belongs to readygate.",
            id="an extender that may be another product is down",
        ),
        pytest.param(
            pod('Post "http://10.0.0.9:8888/filter": EOF'),
            [told(attempt(passed=3))],
            0,
            NOTHING,
            id="another product is down",
        ),
    ],
)
def test_a_failed_call_makes_a_pod_wait_for_the_extender(seen, answers, code, expected):
    blame = blamed(seen, *answers)
    assert (code, expected) == (blame.code, blame.first)


def test_a_message_without_counts_is_shown():
    """Plugins of kube-scheduler may fail after readygate has passed the pod."""
    said = 'running PreBind plugin "VolumeBinding": binding volumes: context deadline exceeded'
    assert text_of(pod_page.render(blamed(pod(said), told(attempt(passed=3))), 120)).startswith(
        f"{NOTHING}\n\nkube-scheduler reports: {said}\n"
    )


@pytest.mark.parametrize("manager", ["kube-scheduler", "batch-scheduler"])
def test_the_age_of_a_message_is_known_for_schedulers_of_any_name(manager):
    """A message that is newer than the refusal proves other causes. managedFields has the program's name."""
    seen = msgspec.json.decode(encoded_pod(NOT_OURS, schedulerName="batch"))
    scheduled = {"f:status": {"f:conditions": {'k:{"type":"PodScheduled"}': {"f:message": {}}}}}
    seen["metadata"]["managedFields"][-1] |= {"manager": manager, "fieldsV1": scheduled}
    seen["status"]["conditions"][0]["lastTransitionTime"] = seen["metadata"]["creationTimestamp"]
    assert blamed(read_pod(msgspec.json.encode(seen)), told(EARLIER)).first == NOTHING
