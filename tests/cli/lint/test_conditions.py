"""Which conditions of a gate are always good, never good or without effect.

The class of kubernetes-sigs/node-readiness-controller#414, #418, #425: an entry of anyOf that is good while its
condition is missing. Further members: contradictory checks (kubernetes-sigs/cluster-api#3056), a rule on a Ready that
the checker itself decides on (kubernetes-sigs/cluster-api#13512), either of two (node-readiness-controller#313, #315).
"""

import itertools
import json
import random
from dataclasses import replace

import pytest

from cli.lint.conditions import _OWN_READY, of_conditions
from extender.config.settings import parse
from extender.policy import reasons
from extender.policy.conditions import judge, rules_of
from extender.policy.evidence import ObservedCondition
from kube.times import format_time
from tests.extender.builders import observed_node
from tools.kit.cases import cases
from tools.kit.scope import draws

NODE = {"of": "node", "type": "A"}
OTHER = {"of": "node", "type": "B"}
TRUE, FALSE = NODE | {"status": "True"}, NODE | {"status": "False"}
READY, NOT_READY = ({"of": "node", "type": "Ready", "status": status} for status in ("True", "False"))
POD_READY, POD_NOT_READY = READY | {"of": "pod"}, NOT_READY | {"of": "pod"}
UNLESS_UNKNOWN = {"missing": "open", "unknown": "open"}


def conditions_of(all_of=(), any_of=()):
    gate = {"conditions": {"allOf": list(all_of), "anyOf": list(any_of)}}
    return parse(json.dumps({"gates": [gate]})).gate.conditions


def found(all_of=(), any_of=()):
    return [f"{one.level} {one.where}" for one in of_conditions(conditions_of(all_of, any_of), "c")]


@cases(
    "all_of, any_of, expected",
    ("one condition", [TRUE], [], []),
    ("two conditions", [TRUE, OTHER], [], []),
    (
        "node-problem-detector's, where missing is good",
        [FALSE | {"missing": "open"}, OTHER | {"missing": "open"}],
        [],
        [],
    ),
    ("either of two", [], [TRUE, OTHER], []),
    ("one alone in anyOf, where missing is good", [], [TRUE | {"missing": "open"}], []),
    ("the same type of the pod and of the node", [READY, POD_NOT_READY], [], []),
    ("all of some and any of others", [READY], [TRUE, OTHER], []),
    (
        "the case: both statuses of one condition",
        [READY, NOT_READY],
        [],
        ["error c.allOf"],
    ),
    ("both, and unknown is good: then it is good", [TRUE | {"unknown": "open"}, FALSE | {"unknown": "open"}], [], []),
    ("both, and missing is good for one", [TRUE | {"missing": "open"}, FALSE], [], ["error c.allOf"]),
    ("both, of the pod", [POD_READY, POD_NOT_READY], [], ["error c.allOf"]),
    (
        "both, and each is good once it is stale, but not at the same age",
        [TRUE | {"staleAfterSeconds": 60, "stale": "open"}, FALSE | {"staleAfterSeconds": 60}],
        [],
        ["error c.allOf"],
    ),
    (
        "both, and the one is good when it is stale while the other one is not stale yet",
        [TRUE | {"staleAfterSeconds": 60, "stale": "open"}, FALSE | {"staleAfterSeconds": 90}],
        [],
        [],
    ),
    (
        "the Ready of a node that every gate closes then (the kind of cluster-api#13512)",
        [NOT_READY, OTHER],
        [],
        ["error c.allOf"],
    ),
    ("the same in anyOf, alone", [], [NOT_READY], ["error c.anyOf"]),
    ("the same in anyOf, beside another", [], [NOT_READY, OTHER], ["warning c.anyOf[0]"]),
    ("of a node whose Ready is missing it may be", [NOT_READY | {"missing": "open"}], [], []),
    ("the case: the same entry twice", [FALSE, FALSE], [], ["warning c.allOf[1]"]),
    ("twice in anyOf", [], [FALSE, OTHER, FALSE], ["warning c.anyOf[2]"]),
    ("twice, once with the default spelled out", [FALSE, FALSE | {"missing": "closed"}], [], ["warning c.allOf[1]"]),
    ("three times", [FALSE, FALSE, FALSE], [], ["warning c.allOf[1]", "warning c.allOf[2]"]),
    ("an entry that a stricter one makes moot", [TRUE | {"missing": "open"}, TRUE], [], ["warning c.allOf[0]"]),
    (
        "a limit that a shorter one makes moot",
        [TRUE | {"staleAfterSeconds": 60}, TRUE | {"staleAfterSeconds": 900}],
        [],
        ["warning c.allOf[1]"],
    ),
    ("a laxer entry makes one of anyOf moot", [], [TRUE, TRUE | {"missing": "open"}], ["warning c.anyOf[0]"]),
    ("the case: True or False", [], [FALSE, TRUE], ["warning c.anyOf"]),
    (
        "True or False, and what is neither is good",
        [],
        [TRUE | UNLESS_UNKNOWN, FALSE],
        ["error c.anyOf"],
    ),
    ("split over two entries", [], [TRUE | {"missing": "open"}, FALSE | {"unknown": "open"}], ["error c.anyOf"]),
    ("all of it beside another condition", [], [OTHER, TRUE | UNLESS_UNKNOWN, FALSE], ["error c.anyOf"]),
    (
        "True or False, but stale is closed",
        [],
        [TRUE | UNLESS_UNKNOWN | {"staleAfterSeconds": 60}, FALSE | {"staleAfterSeconds": 60}],
        ["warning c.anyOf"],
    ),
    (
        "True or False, and stale is good",
        [],
        [TRUE | UNLESS_UNKNOWN | {"staleAfterSeconds": 60, "stale": "open"}, FALSE],
        ["error c.anyOf"],
    ),
    (
        "the case: good while it is missing (node-readiness-controller#414)",
        [],
        [TRUE | {"missing": "open"}, OTHER],
        ["warning c.anyOf[0].missing"],
    ),
    ("good while it is unknown", [], [OTHER, TRUE | {"unknown": "open"}], ["warning c.anyOf[1].unknown"]),
    (
        "good once it is stale: nobody writes it any more",
        [],
        [TRUE | {"stale": "open", "staleAfterSeconds": 60}, OTHER],
        ["warning c.anyOf[0].stale"],
    ),
    (
        "each of them while it is missing",
        [],
        [TRUE | {"missing": "open"}, OTHER | {"missing": "open"}],
        ["warning c.anyOf[0].missing", "warning c.anyOf[1].missing"],
    ),
    (
        "missing is good, but allOf demands the condition",
        [TRUE | {"unknown": "open"}],
        [TRUE | {"missing": "open"}, OTHER],
        [],
    ),
    ("anyOf repeats allOf", [TRUE], [TRUE, OTHER], ["warning c.anyOf"]),
    ("anyOf is laxer than allOf", [TRUE], [TRUE | {"missing": "open"}, OTHER], ["warning c.anyOf"]),
    ("an entry of anyOf that allOf forbids", [TRUE], [FALSE, OTHER], ["warning c.anyOf[0]"]),
    ("all of anyOf is forbidden by allOf", [TRUE, OTHER], [FALSE, OTHER | {"status": "False"}], ["error c.anyOf"]),
    ("stale without a limit", [TRUE | {"stale": "open"}], [], ["warning c.allOf[0].stale"]),
    (
        "an entry within the range that two others leave",
        [
            TRUE | {"staleAfterSeconds": 60},
            TRUE | {"staleAfterSeconds": 300, "stale": "open"},
            TRUE | {"unknown": "open"},
        ],
        [],
        ["warning c.allOf[1]", "warning c.allOf[2]"],
    ),
)
def test_conditions_lead_to_their_findings(all_of, any_of, expected):
    assert expected == found(all_of, any_of)


@cases(
    "all_of, any_of, expected",
    (
        "a contradiction",
        [READY, NOT_READY],
        [],
        "no status of node condition Ready is good for allOf[0] and allOf[1] at once: the gate closes every node",
    ),
    (
        "the node's own Ready",
        [NOT_READY],
        [],
        f"allOf[0] demands something else, and {_OWN_READY}: the gate closes every node",
    ),
    (
        "missing is good in anyOf",
        [],
        [TRUE | {"missing": "open"}, OTHER],
        "while node condition A is missing, this entry is good whatever the other entries are",
    ),
    (
        "always open",
        [],
        [TRUE | UNLESS_UNKNOWN, FALSE],
        "anyOf[0] and anyOf[1] cover every status of node condition A: the gate closes no node by its conditions",
    ),
    (
        "moot",
        [TRUE | {"missing": "open"}, TRUE],
        [],
        "has no effect: allOf[1] demands as much or more of node condition A",
    ),
)
def test_a_finding_explains_the_cause(all_of, any_of, expected):
    (found,) = of_conditions(conditions_of(all_of, any_of), "c")
    assert expected == found.text


# The solver against the rule itself: every draw is tried on all that can be observed of two conditions.
WALL = 1_800_000_000.0
LIMITS = (None, 60, 900)
AGES = (0, 100, 1000)


def drawn(rng):
    one = {"of": "node", "type": rng.choice(("A", "B")), "status": rng.choice(("True", "False"))}
    one |= {key: rng.choice(("open", "closed")) for key in ("missing", "unknown", "stale")}
    limit = rng.choice(LIMITS)
    return one if limit is None else one | {"staleAfterSeconds": limit}


def observed(kind):
    yield None
    for status, age in itertools.product(("True", "False", "Unknown"), AGES):
        yield ObservedCondition(kind, status, seen=format_time(WALL - age))


EVERY = [
    replace(observed_node(), conditions=tuple(one for one in pair if one is not None))
    for pair in itertools.product(observed("A"), observed("B"))
]


def opens(given):
    rules = rules_of(given)
    return [judge(rules, None, node, WALL).reason == reasons.OPEN for node in EVERY]


@pytest.mark.parametrize("part", range(4))
def test_the_solver_agrees_with_the_rule_on_drawn_conditions(seed, part):
    rng = random.Random(f"{seed} conditions {part}")
    seen = set()
    for _ in range(draws(150, 2000)):
        all_of = [drawn(rng) for _ in range(rng.randrange(4))]
        any_of = [drawn(rng) for _ in range(rng.randrange(4))]
        if not (all_of or any_of):
            continue
        results = opens(conditions_of(all_of, any_of))
        errors = [one.text for one in of_conditions(conditions_of(all_of, any_of), "c") if one.level == "error"]
        closed, open_ = not any(results), all(results)
        seen |= {(closed, open_)}
        told = [any(word in text for text in errors) for word in ("closes every node", "closes no node")]
        assert [closed, open_] == told, (all_of, any_of)
        for key, entries in (("allOf", all_of), ("anyOf", any_of)):
            moot = {one.where for one in of_conditions(conditions_of(all_of, any_of), "c") if "delete" in one.remedy}
            for place in range(len(entries)):
                if f"c.{key}[{place}]" in moot and len(all_of) + len(any_of) > 1:
                    left = [one for at, one in enumerate(entries) if at != place]
                    rest = (left, any_of) if key == "allOf" else (all_of, left)
                    assert results == opens(conditions_of(*rest)), (key, place, all_of, any_of)
    assert {(True, False), (False, False)} <= seen
