"""The admission policies allow as much text as agent and extender write, and no more."""

import re
import uuid

import pytest

from agent.checks.health import MESSAGE_LIMIT_BYTES
from agent.wire import condition
from extender.outlets import event_text, kick, leader, node_condition_text
from extender.policy import evidence
from kube import contract
from tests.charts.rendering import Object, objects
from tests.plane import harm

REASON_MAX = 64


@pytest.fixture(scope="module")
def policies() -> dict[str, Object]:
    """By name, without that of the release."""
    given = ['image.repository="readygate"', "agent.heartbeat=true"]
    found = objects(given=given)
    return {
        name.removeprefix("readygate-"): one["spec"]
        for (kind, _, name), one in found.items()
        if kind == "ValidatingAdmissionPolicy"
    }


def bound(policy: Object, field: str) -> int:
    """The characters that one field may have."""
    expressions = " ".join(one["expression"] for one in policy["validations"])
    (found,) = set(re.findall(rf"{re.escape(field)}\.size\(\) <= (\d+)", expressions))
    return int(found)


def test_messages_and_reasons_of_the_conditions(policies):
    agent, extender = policies["agent-own-condition"], policies["extender-condition"]
    message, reason = "c.?message.orValue('')", "c.?reason.orValue('')"
    assert (MESSAGE_LIMIT_BYTES, node_condition_text.MESSAGE_LIMIT) == (bound(agent, message), bound(extender, message))
    assert {REASON_MAX} == {bound(agent, reason), bound(extender, reason)}


def test_the_kick_the_holder_and_events(policies):
    annotation = f"object.metadata.?annotations[?'{kick.ANNOTATION_KICK}'].orValue('')"
    assert len(kick.wall_clock()) == bound(policies["extender-kick"], annotation)
    longest = 63 + len(leader.new_identity().rpartition("_")[2]) + 1
    assert longest == bound(policies["extender-lease"], "object.spec.?holderIdentity.orValue('')")
    event = policies["extender-event"]
    assert event_text.MESSAGE_LIMIT == bound(event, "variables.event.?message.orValue('')")
    assert bound(event, "variables.event.?reason.orValue('')") == REASON_MAX


# Fields of a core/v1 Event that take any text from a client. The API server requires the namespace of the Event itself
# for involvedObject.namespace.
TEXTS_OF_AN_EVENT = (
    *("message", "reason", "type", "action", "reportingComponent", "reportingInstance", "related", "series"),
    *(f"source.?{field}" for field in ("component", "host")),
    *(f"involvedObject.?{field}" for field in ("kind", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")),
    "metadata.name",
)


@pytest.mark.parametrize("field", TEXTS_OF_AN_EVENT)
def test_each_text_of_an_event_is_bounded(policies, field):
    expressions = " ".join(one["expression"] for one in policies["extender-event"]["validations"])
    assert re.search(rf"variables\.event\.\??{re.escape(field)}\b", expressions)


def test_an_event_has_no_metadata_that_takes_other_text(policies):
    """generateName would stay in the Event at any length."""
    expressions = " ".join(one["expression"] for one in policies["extender-event"]["validations"])
    (keys,) = re.findall(r"variables\.event\.metadata\.all\(key, key in \[([^]]*)\]\)", expressions)
    assert {"'name'", "'namespace'", "'uid'", "'creationTimestamp'", "'managedFields'"} == set(keys.split(", "))


def test_the_owner_of_a_heartbeat_is_bounded(policies):
    assert bound(policies["agent-own-heartbeat"], "owner.uid") >= len(str(uuid.uuid4()))


def test_no_reason_is_longer_than_the_policies_allow():
    words = [value for name, value in vars(condition).items() if name.startswith("REASON_")]
    words += [
        *node_condition_text.WORDS.values(),
        *node_condition_text._SAID,
        node_condition_text.HELD_OPEN,
        evidence.TOLD_HEALTHY,
    ]
    words += [f"Node{word}" for word in words] + [event_text.POD_REFUSED, event_text.NODE_CLOSED]
    assert max(map(len, words)) <= REASON_MAX


def test_the_draws_of_ring_2_know_the_same_bounds():
    assert (REASON_MAX, len(kick.wall_clock())) == (harm.REASON_MAX, harm.KICK_MAX)
    assert contract.STATUS_UNKNOWN in harm.STATUSES
