"""What of the comparison the gate plays."""

from argparse import Namespace

from tools.differential import __main__ as differential
from tools.differential import gate
from tools.differential.errors import ERRORS
from tools.differential.targets import TARGETS

NAMES = [target.name for target in TARGETS]


def test_gate_plays_each_target_and_the_whole_proof_more_of_each() -> None:
    played, _ = differential._amounts(Namespace(gate=True), NAMES)
    whole, _ = differential._amounts(Namespace(gate=False, minutes=None, histories=20_000, parts=4), NAMES)
    assert NAMES == list(played) == list(whole)
    assert all(0 < played[name] < whole[name] for name in NAMES)


def test_gate_plants_one_error_in_each_target_that_has_one() -> None:
    errors = gate.one_for_each(ERRORS)
    assert {error.target for error in ERRORS} == {error.target for error in errors}
    assert len(errors) == len({error.target for error in errors})


def test_gate_has_a_fixed_seed_unless_one_is_given(monkeypatch) -> None:
    monkeypatch.setenv("READYGATE_SEED", "5")
    for arguments, expected in ((["--gate"], gate.SEED), (["--gate", "--seed", "7"], 7), ([], 5)):
        monkeypatch.setattr("sys.argv", ["differential", *arguments])
        assert expected == differential._options().seed


def test_targets_with_more_histories_exist() -> None:
    assert set() == set(gate.MORE) - set(NAMES)
