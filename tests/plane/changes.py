"""Draws writes of Nodes and Pods in the five forms that the API server takes (pure).

The forms are PUT, JSON patch, JSON merge patch, strategic merge patch and server-side apply. `tests.plane.harm` judges
what comes of a write.
"""

import copy
import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from extender.outlets.kick import ANNOTATION_KICK
from kube.media_types import JSON, MERGE_PATCH, STRATEGIC_MERGE_PATCH
from tests.plane.harm import KICK_MAX, OWN, REASON_MAX, STATUSES, Target
from tools.testbed.shared.api import Object

JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
FORMS = ("PUT", JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, APPLY)
OWNER_OF_FOREIGN = "readygate-tests"  # field manager that applied the conditions of others
NEARLY_OWN = (OWN.lower(), f"{OWN} ", "readygate.dev/NodeHealthy2", "NodeHealthy", f"x.{OWN}")


@dataclass(frozen=True)
class Request:
    """A write. form: one of FORMS."""

    actor: str
    target: Target
    form: str
    body: Any
    query: str = ""

    def __str__(self) -> str:
        return f"{self.actor}: {self.form} {self.target.path}{self.target.part}{self.query} {json.dumps(self.body)}"


class Draft:
    """A changed copy of an object, and the JSON patch that makes it."""

    def __init__(self, before: Object):
        self.after = copy.deepcopy(before)
        self.operations: list[Object] = []
        if "conditions" not in self.after.setdefault("status", {}):
            self.set("/status/conditions", [])

    @property
    def conditions(self) -> list[Object]:
        return self.after["status"]["conditions"]

    def insert(self, place: int, entry: Object) -> None:
        self.conditions.insert(place, copy.deepcopy(entry))
        self._operation("add", f"/status/conditions/{place}", value=entry)

    def remove(self, place: int) -> None:
        del self.conditions[place]
        self._operation("remove", f"/status/conditions/{place}")

    def double(self, place: int, to: int) -> None:
        self.conditions.insert(to, copy.deepcopy(self.conditions[place]))
        self._operation("copy", f"/status/conditions/{to}", **{"from": f"/status/conditions/{place}"})

    def move(self, place: int, to: int) -> None:
        self.conditions.insert(to, self.conditions.pop(place))
        self._operation("move", f"/status/conditions/{to}", **{"from": f"/status/conditions/{place}"})

    def change(self, place: int, key: str, value: str) -> None:
        self.conditions[place][key] = value
        self._operation("add", f"/status/conditions/{place}/{key}", value=value)

    def set(self, path: str, value: Any) -> None:
        """Makes the objects on the way that are missing."""
        there, keys = self.after, [key.replace("~1", "/") for key in path[1:].split("/")]
        for depth, key in enumerate(keys[:-1], start=1):
            if key not in there:
                there[key] = {}
                self._operation("add", "/" + "/".join(path[1:].split("/")[:depth]), value={})
            there = there[key]
        there[keys[-1]] = value
        self._operation("add", path, value=copy.deepcopy(value))

    def _operation(self, op: str, path: str, **more: Any) -> None:
        self.operations.append({"op": op, "path": path, **copy.deepcopy(more)})


def condition(chance: random.Random, kind: str = OWN, *, message_max: int = 400) -> Object:
    """An entry within the bounds, sometimes just so."""
    return {
        "type": kind,
        "status": chance.choice(STATUSES),
        "reason": chance.choice(["Healthy", "Unhealthy", "R" * REASON_MAX]),
        "message": chance.choice(["", "disk", "m" * message_max]),
        "lastTransitionTime": "2026-03-01T00:00:00Z",
    }


def excessive(chance: random.Random, message_max: int) -> Object:
    """An entry with one text that is too long, or that is no status."""
    entry = condition(chance, message_max=message_max)
    key, value = chance.choice(
        [
            ("status", "S" * 1000),
            ("status", "true"),
            ("reason", "R" * (REASON_MAX + 1)),
            ("message", "m" * (message_max + 1)),
            ("message", "m" * 200_000),
        ]
    )
    return entry | {key: value}


def places(draft: Draft, *, own: bool) -> list[int]:
    return [place for place, one in enumerate(draft.conditions) if (one["type"] == OWN) is own]


def write_own(chance: random.Random, draft: Draft, message_max: int) -> None:
    mine = places(draft, own=True)
    if mine and chance.random() < 0.3:
        draft.remove(mine[0])
    elif mine:
        for key, value in condition(chance, message_max=message_max).items():
            draft.change(mine[0], key, value)
    else:
        draft.insert(chance.randint(0, len(draft.conditions)), condition(chance, message_max=message_max))


def double_own(chance: random.Random, draft: Draft, message_max: int) -> None:
    write_own(chance, draft, message_max)
    draft.insert(chance.randint(0, len(draft.conditions)), condition(chance, message_max=message_max))


def write_too_much(chance: random.Random, draft: Draft, message_max: int) -> None:
    for place in reversed(places(draft, own=True)):
        draft.remove(place)
    draft.insert(chance.randint(0, len(draft.conditions)), excessive(chance, message_max))


def add_foreign(chance: random.Random, draft: Draft, _: int) -> None:
    kind = chance.choice(["example.com/Other", *NEARLY_OWN])
    draft.insert(chance.randint(0, len(draft.conditions)), condition(chance, kind))


def remove_foreign(chance: random.Random, draft: Draft, _: int) -> None:
    draft.remove(chance.choice(places(draft, own=False)))


def double_foreign(chance: random.Random, draft: Draft, _: int) -> None:
    draft.double(chance.choice(places(draft, own=False)), chance.randint(0, len(draft.conditions)))


def trade_foreign(chance: random.Random, draft: Draft, _: int) -> None:
    """One is dropped and another one doubled, so that the number is as before."""
    draft.remove(chance.choice(places(draft, own=False)))
    draft.double(chance.choice(places(draft, own=False)), chance.randint(0, len(draft.conditions)))


def move_foreign(chance: random.Random, draft: Draft, _: int) -> None:
    draft.move(chance.choice(places(draft, own=False)), chance.randrange(len(draft.conditions)))


def rename_foreign(chance: random.Random, draft: Draft, _: int) -> None:
    others = [one["type"] for one in draft.conditions]
    kind = chance.choice([OWN, *others, *NEARLY_OWN, "example.com/Other"])
    draft.change(chance.choice(places(draft, own=False)), "type", kind)


def change_foreign(chance: random.Random, draft: Draft, _: int) -> None:
    key, value = chance.choice([("status", "Unknown"), ("reason", "X"), ("message", "x"), ("status", "False")])
    draft.change(chance.choice(places(draft, own=False)), key, value)


# By it the next apply of that manager would take a label away.
FORGED = [
    {
        "manager": "example",
        "operation": "Apply",
        "apiVersion": "v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:metadata": {"f:labels": {"f:kubernetes.io/os": {}, "f:app.kubernetes.io/name": {}}}},
    }
]
SET: tuple[tuple[str, Any], ...] = (
    ("/metadata/labels/a", "b"),
    ("/metadata/annotations/a", "b"),
    ("/metadata/annotations/readygate.dev~1kick", "k" * (KICK_MAX + 1)),
    ("/metadata/annotations/readygate.dev~1kick", "k" * 200_000),
    ("/metadata/annotations/readygate.dev~1Kick", "1"),
    ("/metadata/finalizers", ["example.com/x"]),
    ("/metadata/finalizers", ["example.com/x", "example.com/x"]),
    ("/metadata/ownerReferences", [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}]),
    ("/metadata/generateName", "generated-"),
    ("/metadata/selfLink", "/x"),
    ("/metadata/managedFields", [{}]),
    ("/metadata/managedFields", FORGED),
    ("/spec/unschedulable", True),
    ("/status/phase", "Terminated"),
    ("/status/conditions", None),
    ("/status/addresses", [{"type": "InternalIP", "address": "192.0.2.66"}] * 2),
    ("/status/podIP", "192.0.2.66"),
    ("/status/message", "x"),
)


def set_another(chance: random.Random, draft: Draft, _: int) -> None:
    draft.set(*copy.deepcopy(chance.choice(SET)))


def write_kick(chance: random.Random, draft: Draft, _: int) -> None:
    draft.set("/metadata/annotations/readygate.dev~1kick", chance.choice(["1", "k" * KICK_MAX]))


HARMFUL: tuple[Callable[[random.Random, Draft, int], None], ...] = (
    double_own,
    write_too_much,
    add_foreign,
    remove_foreign,
    double_foreign,
    trade_foreign,
    trade_foreign,
    move_foreign,
    rename_foreign,
    change_foreign,
    set_another,
    set_another,
)


def drawn(chance: random.Random, target: Target) -> Draft:
    """Half of all change nothing but what the actor is there for."""
    draft = Draft(target.before)
    if target.part == "":
        write_kick(chance, draft, 0)
    elif chance.random() < 0.8:
        write_own(chance, draft, target.message_max)
    if chance.random() < 0.5:
        for change in chance.sample(HARMFUL, chance.randint(1, 2)):
            if draft.after["status"]["conditions"] is not None and len(places(draft, own=False)) > 1:
                change(chance, draft, target.message_max)
    return draft


def merge_patch(before: Any, after: Any) -> Object:
    """The JSON merge patch (RFC 7386) from one object to another; lists are replaced whole."""
    patch: Object = dict.fromkeys(before.keys() - after.keys())
    for key, value in after.items():
        if key not in before:
            patch[key] = value
        elif isinstance(value, dict) and isinstance(before[key], dict):
            if inner := merge_patch(before[key], value):
                patch[key] = inner
        elif value != before[key]:
            patch[key] = value
    return patch


def strategic(chance: random.Random, target: Target) -> Object:
    """A strategic merge patch: entries by their key, deletions, orders and replacements."""
    there = [one["type"] for one in target.before["status"]["conditions"]]
    if target.part == "":
        body: Object = {"metadata": {"annotations": {ANNOTATION_KICK: chance.choice(["1", None])}}}
    else:
        own = chance.choice([condition(chance, message_max=target.message_max), {"type": OWN, "$patch": "delete"}])
        body = {"status": {"conditions": [own]}}
    if chance.random() < 0.5:
        return body
    status = body.setdefault("status", {})
    entries = status.setdefault("conditions", [])
    for _ in range(chance.randint(1, 2)):
        entries += chance.choice(
            [
                [condition(chance, message_max=target.message_max)] * 2,
                [excessive(chance, target.message_max)],
                [condition(chance, chance.choice([*there, *NEARLY_OWN]))],
                [{"type": chance.choice(there), "$patch": "delete"}],
                [{"type": chance.choice(there), "status": "Unknown", "$retainKeys": ["type", "status"]}],
                [{"$patch": "replace"}],
            ]
        )
    if chance.random() < 0.3:
        order = chance.sample(there, len(there))
        status["$setElementOrder/conditions"] = [{"type": kind} for kind in dict.fromkeys([*order, OWN])]
    if chance.random() < 0.2:
        draft = Draft({})
        set_another(chance, draft, 0)
        del draft.after["status"]
        body = joined(body, draft.after)
    return body


def joined(one: Object, other: Object) -> Object:
    both = {key: joined(one[key], other[key]) for key in one.keys() & other.keys() if isinstance(other[key], dict)}
    return {**one, **other, **both}


def applied(chance: random.Random, target: Target) -> tuple[Object, str]:
    """A server-side apply, and its query. What the manager of the others' conditions leaves out is removed.

    Neither agent nor extender writes so: each such write that changes something is harmful, as it changes who owns it.
    """
    metadata: Object = {"name": target.before["metadata"]["name"]}
    entries = [condition(chance, message_max=target.message_max)]
    manager = f"readygate-{chance.choice(['one', 'two'])}"
    if chance.random() < 0.5:
        manager = chance.choice([OWNER_OF_FOREIGN, manager])
        others = [one for one in target.before["status"]["conditions"] if one["type"] != OWN]
        taken = chance.sample(others, chance.randint(0, len(others)))
        entries += [one | chance.choice([{}, {}, {"status": "Unknown"}]) for one in taken]
        entries += chance.choice([[], [], [condition(chance)], [condition(chance, chance.choice(NEARLY_OWN))]])
        entries += chance.choice([[], [], [excessive(chance, target.message_max) | {"type": "example.com/Long"}]])
        chance.shuffle(entries)
    if target.part == "":
        annotations = {ANNOTATION_KICK: chance.choice(["1", "k" * KICK_MAX, "k" * (KICK_MAX + 1)])}
        metadata["annotations"] = annotations | chance.choice([{}, {}, {"a": "b"}])
        body = {"metadata": metadata}
    else:
        body = {"metadata": metadata, "status": {"conditions": entries}}
    kind = {"apiVersion": "v1", "kind": "Pod" if "/pods/" in target.path else "Node"}
    force = chance.choice(["true", "true", "false"])
    return kind | body, f"&fieldManager={manager}&force={force}"


def requests(chance: random.Random, number: int, targets: Sequence[Target]) -> list[Request]:
    """As many, a fifth in each form."""
    found = []
    for place in range(number):
        target = chance.choice(targets)
        actor, form, query = chance.choice(target.actors), FORMS[place % len(FORMS)], ""
        body: Any
        if form == STRATEGIC_MERGE_PATCH:
            body = strategic(chance, target)
        elif form == APPLY:
            body, query = applied(chance, target)
        else:
            draft = drawn(chance, target)
            body = {
                "PUT": draft.after,
                JSON_PATCH: draft.operations,
                MERGE_PATCH: merge_patch(target.before, draft.after),
            }[form]
            if form == "PUT" and chance.random() < 0.5:
                del body["metadata"]["resourceVersion"]
        found.append(Request(actor, target, form, body, query))
    return found


def media_type(form: str) -> str:
    return JSON if form == "PUT" else form
