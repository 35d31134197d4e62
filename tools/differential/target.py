"""What a target of the comparison is."""

from random import Random
from typing import Any, Protocol

from agent.wire.semantics import Semantics

History = Any
"""JSON. Times are seconds since the epoch."""

Answers = Any
"""JSON; where it is a list, one answer a step."""


class Target(Protocol):
    """`name` is the one that the driver knows it by."""

    name: str

    def draw(self, random: Random) -> History:
        """A random history."""

    def told(self, answer: Answers) -> Answers:
        """What of an answer is compared."""

    def answer(self, history: History, semantics: Semantics) -> Answers:
        """What the agent answers. Raises anything for what is no history."""
