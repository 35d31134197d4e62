"""Two words on one pod over time: who is believed, and when they disagree. Times are seconds of a fake clock."""

import re

import pytest

from agent.opinion.agreement import Stance, Words, heard, stance
from agent.opinion.readiness import Word
from tools.kit.cases import cases

STAND_S = 30.0
WORDS = {"r": Word.READY, "n": Word.NOT_READY, "?": Word.UNKNOWN}
SHORT = {
    Stance.AGREED: "agreed",
    Stance.FAILED: "failed",
    Stance.DISPUTED_READY: "disputed",
    Stance.DISPUTED_UNREADY: "said",
}


def story(text: str, *, news: bool = True) -> list[str]:
    """text: steps `seconds: ours theirs`; what comes of each, looked at each second up to the next step."""
    steps = [re.fullmatch(r"(\d+): (.)(.)", step.strip()) for step in text.split(",")]
    at = {int(step[1]): (WORDS[step[2]], WORDS[step[3]]) for step in steps if step}
    words: Words | None = None
    found: list[str] = []
    ours, theirs = at[0]
    for second in range(max(at) + 1):
        ours, theirs = at.get(second, (ours, theirs))
        words = heard(words, ours, theirs, float(second), stand_s=STAND_S, news=news)
        said = SHORT[stance(words, float(second), stand_s=STAND_S, news=news)]
        if not found or found[-1] != said:
            found.append(said)
    return found


@cases(
    "text, expected",
    ("both ready", "0: rr, 9: rr", ["agreed"]),
    ("both not: its Ready closes the node", "0: nn, 99: nn", ["agreed"]),
    ("a start: we see it ready first", "0: nn, 5: rn, 9: rr", ["agreed"]),
    ("a start: the kubelet sees it first, within a period", "0: nn, 5: nr, 14: rr", ["agreed"]),
    ("our own start beside a pod that is ready", "0: ?r, 5: rr", ["agreed"]),
    ("our first word is no news, it has to stand", "0: ?r, 5: nr, 20: rr", ["agreed"]),
    ("and does so in the end", "0: ?r, 5: nr, 36: nr", ["agreed", "disputed"]),
    ("a fault that we see first", "0: rr, 5: nr, 9: nn, 90: nn", ["agreed", "failed"]),
    ("a fault that the kubelet sees first", "0: rr, 5: rn, 9: nn, 90: nn", ["agreed"]),
    ("over: the kubelet sees it first", "0: rr, 5: nr, 9: nn, 50: nr, 59: rr", ["agreed", "failed", "agreed"]),
    ("over, and it was the kubelet both times", "0: rr, 5: rn, 9: nn, 50: nr, 59: rr", ["agreed"]),
    ("over: we see it first", "0: rr, 5: nr, 9: nn, 50: rn, 59: rr", ["agreed", "failed", "agreed"]),
    ("the kubelet stands by ready", "0: rr, 5: nr, 36: nr", ["agreed", "failed", "disputed"]),
    ("and gives in", "0: rr, 5: nr, 60: nn", ["agreed", "failed", "disputed", "failed"]),
    ("the kubelet stands by not ready", "0: rr, 5: rn, 36: rn", ["agreed", "said"]),
    ("then we know no more: as it was", "0: rr, 5: nr, 9: ?r, 20: ?r", ["agreed", "failed"]),
    ("until the kubelet looks again", "0: rr, 5: nr, 9: ?r, 12: ?n, 15: ?r", ["agreed", "failed", "agreed"]),
    ("the kubelet has said nothing yet: so will we", "0: r?, 5: n?, 99: n?", ["agreed"]),
)
def test_who_is_believed(text: str, expected: list[str]) -> None:
    assert expected == story(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("0: rr, 5: nr, 99: nr", ["agreed", "failed"], id="what we see ourselves counts at once"),
        pytest.param("0: ?r, 5: nr, 99: nr", ["agreed"], id="a first word stands against nobody"),
        pytest.param("0: rr, 5: rn, 99: rn", ["agreed"], id="nor does ready against not ready"),
    ],
)
def test_without_the_api_server_no_disagreement_grows_old(text: str, expected: list[str]) -> None:
    assert expected == story(text, news=False)
