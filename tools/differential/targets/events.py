"""Which Events are written, and how: EventCorrelator of client-go/tools/record, Event by Event, under a clock that the
history moves. Of ten texts that are alike upstream forgets any one, the agent the first: so does the driver's copy.
"""

from random import Random
from typing import Any

from agent.kubelet.events.correlate import Correlator
from agent.kubelet.events.event import NORMAL, WARNING, About, Event
from agent.wire.semantics import Semantics
from tools.differential import worlds
from tools.differential.target import Answers, History
from tools.differential.worlds import maybe

ABOUT = (
    {"kind": "Pod", "name": "p", "namespace": "ns", "uid": "u", "fieldPath": "spec.containers{a}"},
    {"kind": "Pod", "name": "p", "namespace": "ns", "uid": "u", "fieldPath": "spec.containers{b}"},
    {"kind": "Pod", "name": "p", "namespace": "ns", "uid": "v", "fieldPath": "spec.containers{a}"},
    {"kind": "Pod", "name": "p", "namespace": "ns", "uid": "u"},
    {"kind": "Node", "name": "p"},
)
REASONS = ("Unhealthy", "BackOff")
PAUSES_S = (*[0.0] * 6, 0.25, 0.25, 1.0, 29.0, 299.0, 301.0, 600.0, 600.25, 4000.0)


class EventsTarget:
    name = "events"

    def draw(self, random: Random) -> History:
        """Often a burst about one object: with as many texts that it is told as one, or with few of them."""
        wall, steps = worlds.START, list[Any]()
        pauses = random.choice((PAUSES_S, PAUSES_S[:9], (0.0,)))
        about = random.choice((ABOUT, ABOUT[:2], ABOUT[:1]))
        reasons, texts = random.choice((REASONS, REASONS[:1])), random.choice((1, 2, 9, 10, 11, 30))
        for _ in range(random.choice((1, 3, 12, 25, 40))):
            wall += random.choice(pauses)
            step = {"wall": wall, "about": random.choice(about), "type": WARNING if maybe(random, 0.9) else NORMAL}
            steps.append({**step, "reason": random.choice(reasons), "message": f"text {random.randrange(texts)}"})
        return {"steps": steps}

    def answer(self, history: History, semantics: Semantics) -> Answers:  # noqa: ARG002 - no gate is asked
        correlator, answers = Correlator(), list[Any]()
        for step in history["steps"]:
            about = {"fieldPath": "", "namespace": "", "uid": "", **step["about"]}
            within = About(about["kind"], about["name"], about["namespace"], about["uid"], about["fieldPath"])
            event = Event(within, step["type"], step["reason"], step["message"])
            write = correlator.correlate(event, monotonic=step["wall"], wall=step["wall"])
            if write is None:
                answers.append(None)
                continue
            said = {"name": write.name, "message": write.event.message, "count": write.count}
            answers.append({**said, "first": write.first_at, "last": write.last_at})
        return answers

    def told(self, answer: Answers) -> Answers:
        return answer
