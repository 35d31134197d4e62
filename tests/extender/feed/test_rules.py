"""What decisions are made by, and their cap, over the feed: so that people are told by the same rules."""

import json

import pytest

from extender.feed import wire
from extender.feed.mirror import Mirror
from extender.policy.decision import CapState, Decision
from extender.policy.exempt import rules_of
from extender.policy.reasons import CLOSED_UNHEALTHY
from extender.policy.snapshot import Snapshot
from extender.settings import parse
from extender.verbs.dispatch import answer_filter
from tests.contract.go_types import read_filter_result
from tests.extender.feed.published import SETTINGS
from tests.extender.feed.test_wire import status
from tests.kit.waiting import wait_until

GPU = """
kubernetes: {server: https://192.0.2.1}
mode: enforce
exempt: {namespaces: [team-a]}
gates:
- {name: health}
- {name: gpu, damping: off, for: {resources: [nvidia.com/gpu]}, cap: 20%}
"""


@pytest.mark.usefixtures("publisher")
def test_the_mirror_answers_by_the_settings_of_who_answers_kube_scheduler(published, path):
    published.settings = parse(GPU)
    mirror = Mirror(path, SETTINGS)
    assert (mirror.settings, mirror.exemptions, mirror.classes.everybody) == (SETTINGS, rules_of(SETTINGS), True)
    mirror.start()
    wait_until(lambda: mirror.settings is not SETTINGS, "the rules")
    told = mirror.settings
    assert (told.gates, told.exempt, told.mode) == (published.settings.gates, published.settings.exempt, "enforce")
    assert told.kubernetes == SETTINGS.kubernetes, "what no answer follows from is not told"
    assert (mirror.exemptions, mirror.classes.everybody) == (rules_of(published.settings), False)
    mirror.stop()


def test_other_rules_take_effect_with_the_first_decisions_made_by_them(path):
    """As after a reload: of a gate that is no more and one that has come, neither answers for the other."""
    mirror = Mirror(path, SETTINGS)
    question = json.dumps({"Pod": {"metadata": {"name": "p", "namespace": "n"}}, "NodeNames": ["n1"]}).encode()

    def decided(gate):
        closed = Decision(CLOSED_UNHEALTHY)
        mirror._take(wire.Changes(gate, [wire.Row.of("n1", closed)], []))
        mirror._take(wire.Complete([wire.Gate(gate, True, "gate", CapState(), ())]))

    def survivors():
        return read_filter_result(answer_filter(mirror, question).body).NodeNames

    mirror._take(wire.Said(status(at_monotonic=mirror.monotonic(), required=[])))
    decided("health")
    mirror._take(wire.Ruled.of(parse("gates: [{name: gpu, for: {resources: [nvidia.com/gpu]}}]")))
    assert [] == survivors(), "by the rules and decisions of before"
    mirror._next = {}
    decided("gpu")
    assert ["n1"] == survivors(), "the gate is not for this pod"


@pytest.mark.usefixtures("publisher")
def test_the_cap_of_the_cluster_is_mirrored(published, mirror):
    published.board.swap(Snapshot({}, frozenset({"n1"}), 7))
    wait_until(lambda: mirror.board.snapshot.cap == 7, "the cap")
