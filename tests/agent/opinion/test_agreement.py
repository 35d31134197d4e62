"""Two words on one pod over time: who is believed, and when they disagree. Times are seconds of a fake clock."""

import re

import pytest

from agent.opinion.agreement import Stance, Words, heard, stance
from agent.opinion.readiness import Word

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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("0: rr, 9: rr", ["agreed"], id="both ready"),
        pytest.param("0: nn, 99: nn", ["agreed"], id="both not: its Ready closes the node"),
        pytest.param("0: nn, 5: rn, 9: rr", ["agreed"], id="a start: we see it ready first"),
        pytest.param("0: nn, 5: nr, 14: rr", ["agreed"], id="a start: the kubelet sees it first, within a period"),
        pytest.param("0: ?r, 5: rr", ["agreed"], id="our own start beside a pod that is ready"),
        pytest.param("0: ?r, 5: nr, 20: rr", ["agreed"], id="our first word is no news, it has to stand"),
        pytest.param("0: ?r, 5: nr, 36: nr", ["agreed", "disputed"], id="and does so in the end"),
        pytest.param("0: rr, 5: nr, 9: nn, 90: nn", ["agreed", "failed"], id="a fault that we see first"),
        pytest.param("0: rr, 5: rn, 9: nn, 90: nn", ["agreed"], id="a fault that the kubelet sees first"),
        pytest.param(
            "0: rr, 5: nr, 9: nn, 50: nr, 59: rr", ["agreed", "failed", "agreed"], id="over: the kubelet sees it first"
        ),
        pytest.param("0: rr, 5: rn, 9: nn, 50: nr, 59: rr", ["agreed"], id="over, and it was the kubelet both times"),
        pytest.param("0: rr, 5: nr, 9: nn, 50: rn, 59: rr", ["agreed", "failed", "agreed"], id="over: we see it first"),
        pytest.param("0: rr, 5: nr, 36: nr", ["agreed", "failed", "disputed"], id="the kubelet stands by ready"),
        pytest.param("0: rr, 5: nr, 60: nn", ["agreed", "failed", "disputed", "failed"], id="and gives in"),
        pytest.param("0: rr, 5: rn, 36: rn", ["agreed", "said"], id="the kubelet stands by not ready"),
        pytest.param("0: rr, 5: nr, 9: ?r, 20: ?r", ["agreed", "failed"], id="then we know no more: as it was"),
        pytest.param(
            "0: rr, 5: nr, 9: ?r, 12: ?n, 15: ?r", ["agreed", "failed", "agreed"], id="until the kubelet looks again"
        ),
        pytest.param("0: r?, 5: n?, 99: n?", ["agreed"], id="the kubelet has said nothing yet: so will we"),
    ],
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
