"""The draws and the oracle of tests/plane/test_policy_changes.py: reproducible, varied, and blind to no difference."""

import copy
import random
from collections import Counter

import pytest

from extender.outlets.kick import ANNOTATION_KICK
from tests.plane import changes
from tests.plane.harm import OWN as OWN_TYPE
from tests.plane.harm import Target, harm_of
from tools.kit.cases import cases
from tools.testbed.shared.api import Object

OWN = {"type": OWN_TYPE, "status": "True", "reason": "R", "message": "m"}
READY = {"type": "Ready", "status": "True"}
DISK = {"type": "DiskPressure", "status": "False"}
APPLIED = {"manager": "example", "operation": "Apply", "fieldsV1": {}}
BEFORE: Object = {
    "metadata": {"name": "n", "labels": {"a": "b"}, "resourceVersion": "1", "managedFields": [APPLIED]},
    "spec": {},
    "status": {"conditions": [READY, DISK], "phase": "x"},
}
STATUS = Target("/api/v1/nodes/n", "/status", ("extender's host",), 400, BEFORE)
NODE = Target("/api/v1/nodes/n", "", ("extender's host",), 400, BEFORE)


def after(conditions: list[Object], **more: Object) -> Object:
    changed = copy.deepcopy(BEFORE)
    changed["status"]["conditions"] = conditions
    for key, value in more.items():
        changed[key] = changed.get(key, {}) | value
    return changed


@cases(
    "target, made, expected",
    ("nothing", STATUS, after([READY, DISK]), []),
    ("the own condition, wherever it is", STATUS, after([OWN, READY, DISK]), []),
    ("another version", STATUS, after([READY, DISK], metadata={"resourceVersion": "2"}), []),
    ("one dropped, another doubled", STATUS, after([READY, READY]), ["status.conditions differs"]),
    ("another order", STATUS, after([DISK, READY]), ["status.conditions differs"]),
    ("one dropped", STATUS, after([READY]), ["status.conditions differs"]),
    ("one renamed", STATUS, after([READY, OWN | {"type": "x"}]), ["status.conditions differs"]),
    ("ours twice", STATUS, after([READY, DISK, OWN, OWN]), ["two conditions of the same type"]),
    ("no status", STATUS, after([READY, DISK, OWN | {"status": "x"}]), ["no status"]),
    ("a long reason", STATUS, after([READY, DISK, OWN | {"reason": "R" * 65}]), ["long reason"]),
    ("a long message", STATUS, after([READY, DISK, OWN | {"message": "m" * 401}]), ["long message"]),
    ("a label", STATUS, after([READY, DISK], metadata={"labels": {}}), ["metadata differs"]),
    ("another owner", STATUS, after([READY, DISK], metadata={"managedFields": []}), ["applied differs"]),
    ("spec", STATUS, after([READY, DISK], spec={"a": 1}), ["spec differs"]),
    (
        "the kick with the status",
        STATUS,
        after([READY, DISK], metadata={"annotations": {ANNOTATION_KICK: "1"}}),
        ["metadata differs"],
    ),
    ("kick", NODE, after([READY, DISK], metadata={"annotations": {ANNOTATION_KICK: "1"}}), []),
    ("a long kick", NODE, after([READY, DISK], metadata={"annotations": {ANNOTATION_KICK: "1" * 33}}), ["long kick"]),
    ("a condition without /status", NODE, after([OWN, READY, DISK]), ["status.conditions differs"]),
)
def test_oracle_names_each_difference(target, made, expected):
    assert expected == harm_of(target, made)


def test_a_seed_draws_the_same_writes_and_each_form_as_often():
    first, second = (changes.requests(random.Random(7), 500, [STATUS, NODE]) for _ in range(2))
    assert list(map(str, first)) == list(map(str, second))
    assert set(Counter(one.form for one in first).values()) == {100}


def test_a_draft_and_its_json_patch_say_the_same():
    """Each operation is played on the object before."""
    for seed in range(300):
        draft = changes.drawn(random.Random(seed), STATUS)
        played = copy.deepcopy(BEFORE)
        for operation in draft.operations:
            play(played, operation)
        assert draft.after == played


def play(thing: Object, operation: Object) -> None:
    """One operation of RFC 6902, of those that are drawn."""

    def place(path: str) -> tuple[object, object]:
        *way, last = [key.replace("~1", "/") for key in path[1:].split("/")]
        there = thing
        for key in way:
            there = there[int(key)] if isinstance(there, list) else there[key]
        return there, int(last) if isinstance(there, list) else last

    value = copy.deepcopy(operation.get("value"))
    if operation["op"] in ("copy", "move"):
        there, key = place(operation["from"])
        value = copy.deepcopy(there[key])
        if operation["op"] == "move":
            del there[key]
    there, key = place(operation["path"])
    if operation["op"] == "remove":
        del there[key]
    elif isinstance(there, list):
        there.insert(key, value)
    else:
        there[key] = value


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        pytest.param({"a": 1}, {"a": 1}, {}, id="equal"),
        pytest.param({"a": 1}, {}, {"a": None}, id="gone"),
        pytest.param({"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "c": 3}}, {"a": {"c": 3}}, id="inside"),
        pytest.param({"a": [1]}, {"a": [1, 1]}, {"a": [1, 1]}, id="a list is whole"),
    ],
)
def test_merge_patch(one, other, expected):
    assert expected == changes.merge_patch(one, other)
