"""A bounded dictionary that namespaces share."""

import random
from collections import Counter

from extender.policy.shares import Shares
from tools.kit.scope import draws


def filled(limit: int, *entries: str) -> Shares[str, int]:
    """Entries as `namespace/key`."""
    shares = Shares[str, int](limit)
    for number, entry in enumerate(entries):
        shares.put(entry.partition("/")[0], entry, number)
    return shares


def test_the_namespace_with_the_most_entries_loses_its_oldest() -> None:
    shares = filled(3, "a/1", "b/1", "b/2", "c/1")
    assert ["a/1", "b/2", "c/1"] == list(shares)


def test_an_entry_that_is_put_again_is_the_newest_and_takes_no_room() -> None:
    shares = filled(2, "a/1", "a/2", "a/1")
    assert [("a/2", 1), ("a/1", 2)] == shares.items()
    assert shares.surplus("a/1") is None
    assert "a/2" == shares.surplus("a/3")


def test_what_was_taken_out_leaves_room() -> None:
    shares = filled(2, "a/1", "b/1")
    assert (0, None) == (shares.pop("a/1"), shares.pop("a/1"))
    shares.put("c", "c/1", 5)
    assert (["b/1", "c/1"], 2, None, 5) == (list(shares), len(shares), shares.get("a/1"), shares.get("c/1"))


def test_by_chance_the_oldest_entry_of_a_largest_namespace_goes(seed: int) -> None:
    """Compared with counting all entries."""
    chance = random.Random(f"{seed} oracle")
    for _ in range(draws(15, 50)):
        shares, oracle = Shares[str, int](12), dict[str, None]()
        for _ in range(300):
            entry = f"{chance.choice('aabcd')}/{chance.randrange(8)}"
            oracle.pop(entry, None)
            if chance.random() < 0.3:
                shares.pop(entry)
            else:
                surplus = shares.surplus(entry)
                if surplus is not None:
                    sizes = Counter(key[0] for key in oracle)
                    assert (12, max(sizes.values())) == (len(oracle), sizes[surplus[0]])
                    assert surplus == next(key for key in oracle if key[0] == surplus[0])
                    del oracle[surplus]
                shares.put(entry[0], entry, 0)
                oracle[entry] = None
            assert list(oracle) == list(shares)


def test_by_chance_no_namespace_displaces_others_that_have_fewer_entries(seed: int) -> None:
    chance = random.Random(f"{seed} shares")
    for _ in range(draws(15, 50)):
        limit = chance.randint(10, 40)
        shares = Shares[str, int](limit)
        few = [f"few{n}/{m}" for n in range(3) for m in range(chance.randint(1, limit // 5))]
        steps = few + [f"many/{n}" for n in range(200)]
        chance.shuffle(steps)
        for entry in steps:
            shares.put(entry.partition("/")[0], entry, 0)
            assert len(shares) <= limit
        assert set(few) <= set(shares)
