"""Does the kubelet still report? Its port each 2 s and its Lease each 4 s (8 s without a port), by a fake clock."""

import pytest

from agent.opinion import silence

LIMIT_S = 24.0


def silent_from(
    seconds: int, *, port_dies: int | None, lease_dies: int | None, port: bool = True, api: range | None = None
) -> int | None:
    """The second at which it is called silent first, of so many; None: never. A kubelet renews each ten seconds.

    port_dies, lease_dies: from when each is silent. api: when the API server is away.
    """
    seen = silence.Seen()
    for second in range(0, seconds, 2):
        if port:
            dead = port_dies is not None and second >= port_dies
            seen = silence.port_silent(seen, "no answer", float(second)) if dead else silence.port_answered(seen)
        due = silence.reads_lease(seen, has_port=port) and second % (4 if port else 8) == 0
        if due and api is not None and second in api:
            seen = silence.lease_unread(seen)
        elif due:
            renewed = min(second, lease_dies if lease_dies is not None else second) // 10
            seen = silence.lease_read(seen, str(renewed), float(second))
        if silence.is_silent(seen, float(second), has_port=port, lease_limit_s=LIMIT_S):
            return second
    return None


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        pytest.param({"port_dies": None, "lease_dies": None}, None, id="a kubelet that lives"),
        pytest.param({"port_dies": 60, "lease_dies": 60}, 76, id="one that is stopped or killed"),
        pytest.param({"port_dies": 60, "lease_dies": None}, None, id="only its port is shut: its Lease moves"),
        pytest.param({"port_dies": None, "lease_dies": 60}, None, id="only its Lease is refused: it lives"),
        pytest.param({"port_dies": None, "lease_dies": None, "port": False}, None, id="without a port, alive"),
        pytest.param({"port_dies": None, "lease_dies": 60, "port": False}, 88, id="without a port, dead"),
        pytest.param(
            {"port_dies": 60, "lease_dies": 60, "api": range(60, 500)}, None, id="the API server is away: no witness"
        ),
        pytest.param(
            {"port_dies": 60, "lease_dies": 60, "api": range(60, 100)}, 116, id="until it is back, and tells as long"
        ),
        pytest.param(
            {"port_dies": None, "lease_dies": 60, "port": False, "api": range(72, 80)},
            104,
            id="without a port: a Lease that could not be read for a moment has its time anew",
        ),
    ],
)
def test_who_is_called_silent(facts: dict[str, object], expected: int | None) -> None:
    assert expected == silent_from(200, **facts)


def test_one_answer_of_the_port_ends_it_at_once() -> None:
    seen = silence.lease_read(silence.port_silent(silence.Seen(), "", 0.0), "r", 0.0)
    seen = silence.lease_read(silence.port_silent(seen, "", 20.0), "r", 20.0)
    facts = {"has_port": True, "lease_limit_s": LIMIT_S}
    assert (True, False) == (
        silence.is_silent(seen, 20.0, **facts),
        silence.is_silent(silence.port_answered(seen), 20.0, **facts),
    )


def test_what_its_lease_said_in_an_earlier_silence_is_forgotten() -> None:
    """Else a port that is silent for a moment after a day would find a Lease that was last read a day ago."""
    seen = silence.lease_read(silence.port_silent(silence.Seen(), "", 0.0), "r", 0.0)
    seen = silence.port_silent(silence.port_answered(seen), "", 86_400.0)
    seen = silence.lease_read(seen, "r", 86_400.0)
    assert not silence.is_silent(seen, 86_408.0, has_port=True, lease_limit_s=LIMIT_S)
