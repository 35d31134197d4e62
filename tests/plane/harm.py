"""The oracle of writes by agent and extender: it compares an object before and after (pure).

It accepts nothing but one entry: the condition, or the annotation of the kick.
"""

import copy
from dataclasses import dataclass
from typing import Any

from extender.outlets.kick import ANNOTATION_KICK
from kube import contract
from tools.testbed.shared.api import Object

OWN = contract.CONDITION_NODE_HEALTHY
STATUSES = ("True", "False", "Unknown")
REASON_MAX = 64  # characters
KICK_MAX = 32


@dataclass(frozen=True)
class Target:
    """An object to write to. part: "" or "/status". actors: the identities that the policies confine there.

    message_max: characters that the message of the condition may have.
    """

    path: str
    part: str
    actors: tuple[str, ...]
    message_max: int
    before: Object


def harm_of(target: Target, after: Object) -> list[str]:
    """Names what differs from the object before that must not, and what is too much; [] for a write that is right."""
    found = [f"{part} differs" for part, one, other in _pairs(target, after) if one != other]
    own = [one for one in after["status"].get("conditions") or [] if one["type"] == OWN]
    if target.part == "/status":
        found += ["two conditions of the same type"] if len(own) > 1 else []
        found += ["no status"] if any(one["status"] not in STATUSES for one in own) else []
        bounds = {"reason": REASON_MAX, "message": target.message_max}
        found += [f"long {key}" for key, most in bounds.items() if any(len(one.get(key, "")) > most for one in own)]
    kick = after["metadata"].get("annotations", {}).get(ANNOTATION_KICK, "")
    return found + (["long kick"] if len(kick) > KICK_MAX else [])


def _pairs(target: Target, after: Object) -> list[tuple[str, Any, Any]]:
    one, other = _rest(target, target.before), _rest(target, after)
    pairs = [(part, one.get(part), other.get(part)) for part in sorted((one.keys() | other.keys()) - {"status"})]
    keys = sorted(one["status"].keys() | other["status"].keys())
    return pairs + [(f"status.{key}", one["status"].get(key), other["status"].get(key)) for key in keys]


def _rest(target: Target, thing: Object) -> Object:
    """The object without the entry that may differ, and without what the API server writes itself."""
    rest = copy.deepcopy(thing)
    managed = rest["metadata"].pop("managedFields", [])
    rest["applied"] = [one for one in managed if one["operation"] == "Apply"]
    rest["metadata"].pop("resourceVersion", None)
    if target.part == "":
        rest["metadata"].get("annotations", {}).pop(ANNOTATION_KICK, None)
        if not rest["metadata"].get("annotations"):
            rest["metadata"].pop("annotations", None)
        return rest
    others = [one for one in rest["status"].get("conditions") or [] if one["type"] != OWN]
    return rest | {"status": rest["status"] | {"conditions": others}}
