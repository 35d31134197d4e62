"""What the condition of a node says, by what its gates decided."""

import pytest

from extender.outlets.node_condition_text import MESSAGE_LIMIT, WORDS, Standing, standing_of
from extender.policy.reasons import REASONS
from tests.extender.outlets.gate_states import closed, gate, gates, opened


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        pytest.param([gate("a", n=opened())], Standing("True", "Healthy", "open at gate a"), id="open"),
        pytest.param(
            [gate("a", n=opened()), gate("b", n=opened())],
            Standing("True", "Healthy", "open at gates a, b"),
            id="open at two",
        ),
        pytest.param(
            [gate("a", n=closed("not ready", "ContainersNotReady: dns"))],
            Standing(
                "False",
                "HealthPodNotReady",
                "closed: gate a: with a health pod that is not Ready: ContainersNotReady: dns",
            ),
            id="closed, with the evidence",
        ),
        pytest.param(
            [gate("a", n=opened()), gate("b", n=closed("unhealthy", "cni")), gate("c", n=closed("missing"))],
            Standing("False", "Unhealthy", "closed: gate b: reported unhealthy: cni; gate c: without a health pod"),
            id="closed by two, the first gives the word",
        ),
        pytest.param(
            [gate("a", n=closed("lost"))],
            Standing("Unknown", "NodeLost", "closed: gate a: lost: the kubelet no longer reports"),
            id="lost: nothing is known of it",
        ),
        pytest.param(
            [gate("a", n=closed("unknown")), gate("b", n=closed("missing"))],
            Standing("False", "NoHealthPod", "closed: gate a: whose health is unknown; gate b: without a health pod"),
            id="what one gate knows counts more than what another does not",
        ),
        pytest.param(
            [gate("a", n=closed("missing")), gate("b", n=closed("not ready", new=True))],
            Standing(
                "False",
                "NotYetHealthy",
                "closed: gate a: without a health pod; gate b: with a health pod that is not Ready",
            ),
            id="new at one gate: whoever starts shall not count it as one that was in use",
        ),
        pytest.param(
            [gate("a", n=closed("held", held_by="hold", note="ann: disk swap"))],
            Standing("False", "HeldClosed", "closed: gate a: held closed by an operator (hold: ann: disk swap)"),
            id="held closed, by whom",
        ),
        pytest.param(
            [gate("a", n=closed("not ready", held_by="damping", note="healthy for 3 s of 40 s"))],
            Standing("False", "HealthPodNotReady", "closed: gate a: with a health pod that is not Ready (damping)"),
            id="damped: its countdown would be a write a second",
        ),
        pytest.param(
            [gate("a", n=opened("unhealthy", "cni", held_by="cap", note="31 of 30"))],
            Standing("True", "HeldOpen", "held open: gate a: reported unhealthy: cni (cap)"),
            id="held open by the cap",
        ),
        pytest.param(
            [gate("a", n=opened("missing", held_by="grace"))],
            Standing("True", "Healthy", "open at gate a"),
            id="a health pod that is being replaced says nothing",
        ),
        pytest.param(
            [gate("a", armed=False, n=closed("unhealthy", "cni"))],
            Standing("True", "WouldBeClosed", "would be closed, were the gate armed: gate a: reported unhealthy: cni"),
            id="in shadow",
        ),
        pytest.param(
            [gate("a", armed=False, n=closed("unhealthy")), gate("b", n=closed("missing"))],
            Standing("False", "NoHealthPod", "closed: gate b: without a health pod"),
            id="in shadow beside one that closes it: that one alone is told",
        ),
        pytest.param(
            [gate("a", severity="preferNot", n=closed("unhealthy"))],
            Standing("True", "NotPreferred", "not preferred: gate a: reported unhealthy"),
            id="of severity preferNot",
        ),
        pytest.param(
            [gate("a", severity="warn", n=closed("unhealthy"))],
            Standing("True", "Warned", "open, but: gate a: reported unhealthy"),
            id="of severity warn",
        ),
        pytest.param([gate("a", n=None)], None, id="a node no gate knows"),
        pytest.param([gate("a", n=opened(held_by="not-gated"))], None, id="a node the gate is not for"),
        pytest.param([], None, id="no gates"),
    ],
)
def test_what_the_condition_says(states, expected):
    assert expected == standing_of(gates(*states), "n")


@pytest.mark.parametrize("reason", REASONS)
def test_each_reason_has_a_word_of_its_own(reason):
    assert (1, True) == ([*WORDS.values()].count(WORDS[reason]), WORDS[reason].isalpha())


def test_texts_of_the_cluster_are_one_line_of_bounded_length():
    decision = closed("unhealthy", "two\nlines\x1b[31m\u202e and <b>" + "x" * 10_000)
    standing = standing_of(gates(*(gate(f"g{i}", n=decision) for i in range(20))), "n")
    assert standing.message.startswith("closed: gate g0: reported unhealthy: two lines [31m and <b>xxx")
    assert (MESSAGE_LIMIT, True) == (len(standing.message), standing.message.isprintable())
