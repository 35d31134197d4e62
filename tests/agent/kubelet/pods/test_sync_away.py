"""The sync loop while its runtime is away, or not known yet."""

import logging
import threading

import pytest

from agent.kubelet.status.conditions import CONDITION_READY
from agent.processes.command import RuntimeUnavailable
from tests.agent.kubelet.pods.test_sync import POD, Node
from tests.agent.kubelet.status.builders import make_pod

OTHER = make_pod("c", uid="uid-2")


def go_away(node: Node, *uids: str) -> None:
    """These pods cannot be inspected any more."""
    look = node.runtime.pod

    def pod(uid: str) -> object:
        if uid in uids:
            raise RuntimeUnavailable("runtime away")
        return look(uid)

    node.runtime.pod = pod


def test_a_pod_that_is_not_known_yet_is_left_alone_until_it_is() -> None:
    node = Node()
    node.runtime.ready = lambda _uid: False
    node.put(POD)
    assert ([], None) == (node.runtime.started, node.status())
    node.runtime.ready = lambda _uid: True
    node.inbox.put(POD.uid)
    node.settle()
    assert [("c", 0)] == node.runtime.started


def test_a_pod_that_cannot_be_inspected_is_one_line_and_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    node = Node()
    node.put(POD)
    look = node.runtime.pod
    go_away(node, POD.uid)
    node.inbox.put(POD.uid)
    node.settle()
    (record,) = (record for record in caplog.records if record.levelno >= logging.WARNING)
    assert ("pod not synced", "runtime away", None) == (record.message, record.error, record.exc_info)
    node.runtime.pod = look
    node.runtime.end("c", 1)
    node.after(10.0)
    assert [("c", 0), ("c", 1)] == node.runtime.started


def test_it_keeps_no_other_pod_from_being_synced() -> None:
    node = Node()
    go_away(node, POD.uid)
    node.put(POD)
    node.put(OTHER)
    assert ([("c", 0)], True) == (node.runtime.started, node.status(OTHER.uid) is not None)


def test_at_the_end_the_statuses_of_the_others_are_told() -> None:
    node = Node()
    node.put(POD)
    node.put(OTHER)
    ended = threading.Event()
    end_all = node.runtime.end_all

    def ends_and_goes_away(grace_s: float, **limits: float) -> bool:
        done = end_all(grace_s, **limits)
        go_away(node, POD.uid)
        ended.set()
        return bool(done)

    node.runtime.end_all = ends_and_goes_away
    node.loop.start()
    node.loop.stop()
    assert ended.wait(20.0)
    ready = {
        uid: c.status for uid in ("uid-1", "uid-2") for c in node.status(uid).conditions if c.type == CONDITION_READY
    }
    assert {"uid-1": "True", "uid-2": "False"} == ready
