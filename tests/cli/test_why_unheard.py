"""`readygate why pod` where kube-scheduler says something else than a count of nodes: calls of extenders that fail, and
plugins."""

import msgspec
import pytest

from cli.layout import text_of
from cli.pages import pod as drawn
from cli.why.seen import read_pod
from extender.verbs.source import Sync
from tests.cli.blaming import EARLIER, NOT_OURS, attempt, blamed, encoded_pod, pod, told

REFUSED = 'Post "http://127.0.0.1:338/filter": dial tcp 127.0.0.1:338: connect: connection refused'
NOTHING = "readygate has nothing to do with it: no node it closed would have taken this pod."
WAITS = "It waits for us (enforce), and kube-scheduler gets no verdict:"


@pytest.mark.parametrize(
    ("seen", "answers", "code", "expected"),
    [
        pytest.param(
            pod(REFUSED),
            [told()],
            3,
            f"{WAITS} {REFUSED}.",
            id="the extender beside the scheduler that leads is away",
        ),
        pytest.param(
            pod(REFUSED, said_s=2),
            [told(attempt(passed=3))],
            3,
            f"{WAITS} {REFUSED}.",
            id="it has gone since it was asked last",
        ),
        pytest.param(
            pod(REFUSED, said_s=60), [told(attempt(passed=3))], 0, NOTHING, id="it was away, and has answered since"
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
            id="the one that is asked is blind, and the one that we ask is not",
        ),
        pytest.param(
            pod('Post "http://10.0.0.9:8888/filter": EOF'),
            [told()],
            3,
            "Nobody can know: an extender at http://10.0.0.9:8888/filter gives kube-scheduler no answer, and readygate "
            "doctor tells whether that is ours.",
            id="an extender that may be another one is away",
        ),
        pytest.param(
            pod('Post "http://10.0.0.9:8888/filter": EOF'), [told(attempt(passed=3))], 0, NOTHING, id="another one is"
        ),
    ],
)
def test_a_call_that_fails_makes_a_pod_wait_for_the_extender(seen, answers, code, expected):
    blame = blamed(seen, *answers)
    assert (code, expected) == (blame.code, blame.first)


def test_what_the_scheduler_says_is_told_where_it_counts_no_nodes():
    """Its own plugins may fail after we have let the pod through."""
    said = 'running PreBind plugin "VolumeBinding": binding volumes: context deadline exceeded'
    assert text_of(drawn.page(blamed(pod(said), told(attempt(passed=3))), 120)).startswith(
        f"{NOTHING}\n\nkube-scheduler says: {said}\n"
    )


@pytest.mark.parametrize("manager", ["kube-scheduler", "batch-scheduler"])
def test_when_a_scheduler_said_it_is_known_of_one_of_another_name_too(manager):
    """Whose message is newer than our refusal was kept off by its own filters. It goes by its program's name."""
    seen = msgspec.json.decode(encoded_pod(NOT_OURS, schedulerName="batch"))
    scheduled = {"f:status": {"f:conditions": {'k:{"type":"PodScheduled"}': {"f:message": {}}}}}
    seen["metadata"]["managedFields"][-1] |= {"manager": manager, "fieldsV1": scheduled}
    seen["status"]["conditions"][0]["lastTransitionTime"] = seen["metadata"]["creationTimestamp"]
    assert blamed(read_pod(msgspec.json.encode(seen)), told(EARLIER)).first == NOTHING
