"""A mapping that changes a little at a time says what a dictionary would say."""

import random

from extender.policy.layered_map import CHANGES_MAX, LayeredMap


def test_it_is_the_dictionary_after_the_same_changes(seed: int) -> None:
    chance = random.Random(f"{seed} overlay")
    plain: dict[str, int] = {f"n{i}": i for i in range(20)}
    overlay = LayeredMap(dict(plain))
    for step in range(2000):
        names = chance.sample([f"n{i}" for i in range(60)], chance.choice([0, 1, 3, CHANGES_MAX // 4]) % 60)
        changes = {name: chance.choice([None, step]) for name in names}
        before = dict(overlay)
        after = overlay.with_changes(changes)
        assert before == dict(overlay)
        differing = {name for name in before.keys() | changes.keys() if before.get(name) != after.get(name)}
        assert differing <= set(after.differing(overlay))
        overlay = after
        plain = {name: value for name, value in {**plain, **changes}.items() if value is not None}
        assert plain == dict(overlay.items()) == {name: overlay[name] for name in overlay}
        assert (len(plain), [True] * len(plain)) == (len(overlay), [name in overlay for name in plain])
        assert [overlay.get(f"n{i}") for i in range(60)] == [plain.get(f"n{i}") for i in range(60)]


def test_no_change_gives_the_same_object() -> None:
    overlay = LayeredMap({"n1": 1})
    assert overlay is overlay.with_changes({})


def test_what_differs_is_among_few_names_while_both_share_a_base() -> None:
    before = LayeredMap({f"n{i}": i for i in range(5000)}).with_changes({"n1": 0, "n2": None})
    assert {"n1", "n2", "n3"} == set(before.with_changes({"n1": 5, "n3": None}).differing(before))
    assert {"n1", "n2"} == set(before.differing(before))
    assert {"a", "b"} == set(LayeredMap({"a": 1}).differing({"b": 1}))
