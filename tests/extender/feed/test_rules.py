"""What decisions are made by, and their cap, over the feed: so that people are told by the same rules."""

import json
import logging
import socket
import threading

import pytest

from extender.config.settings import parse
from extender.feed import wire
from extender.feed.replica import SILENT_AFTER_S, Replica
from extender.policy.decision import CapState, Decision
from extender.policy.exempt import rules_of
from extender.policy.reasons import CLOSED_UNHEALTHY
from extender.policy.snapshot import Snapshot
from extender.verbs.filter import answer_filter
from tests.contract.go_types import read_filter_result
from tests.extender.feed.published import SETTINGS
from tests.extender.feed.test_wire import status
from tools.kit.waiting import wait_until

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
    mirror = Replica(path, SETTINGS)
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
    mirror = Replica(path, SETTINGS)
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


def test_one_that_ends_each_time_after_its_first_words_is_asked_ever_more_seldom_and_told_of_once(path, caplog):
    """Each time it makes a frame of every node, beside the thread that answers kube-scheduler."""
    caplog.set_level(logging.INFO)
    path.parent.mkdir(mode=0o700)
    now = 100.0
    mirror = Replica(path, SETTINGS, monotonic=lambda: now, random=lambda: 0.0)
    words = [wire.Hello(wire.PROTOCOL, 7), wire.Said(status(at_monotonic=now, required=[]))]

    def turns():
        """One connection: its words, and its end. The pause that follows."""
        speaking = threading.Thread(target=lambda: speak(listener.accept()[0]))
        speaking.start()
        mirror.turn()
        speaking.join()
        return mirror.turn()

    def speak(connection):
        with connection:
            connection.sendall(b"".join(map(wire.write, words)))

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        assert [0.05, 0.1, 0.2, 0.4, 0.5, 0.5] == [turns() for _ in range(6)]
        assert ["following", "the feed is not connected"] == [record.message for record in caplog.records]
        now += 600.0
        mirror._connection = mirror._connect()
        now += SILENT_AFTER_S
        speak(listener.accept()[0])
        mirror.turn()
        assert 0.05 == mirror.turn(), "it had lasted"
    assert ["the feed is not connected"] == [record.message for record in caplog.records[2:]]
