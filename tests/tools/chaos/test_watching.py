"""What R03 notes of a store: which versions never came to it."""

from collections.abc import Sequence

import pytest

from kube.objects import ObjectMeta as Meta
from tests.scripted.following import Node
from tools.chaos.watching import History

WRITTEN = range(1001, 1007)


def item(version: int) -> Node:
    return Node(metadata=Meta(name="a", resource_version=str(version)))


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        pytest.param([("list", 1000), *(("event", version) for version in WRITTEN)], [], id="each by its event"),
        pytest.param([("list", 1000), ("event", 1001), ("list", 1005), ("event", 1006)], [], id="some by a list"),
        pytest.param(
            [("list", 1000), ("event", 1001), ("event", 1006)], [1002, 1003, 1004, 1005], id="some not at all"
        ),
        pytest.param([("list", 1003), ("event", 1006)], [1004, 1005], id="after the list"),
        pytest.param([("list", 1000), ("event", 1002)], [1001], id="what has not come yet is none of them"),
    ],
)
def test_a_version_is_missed_that_came_neither_by_an_event_nor_by_a_list(
    told: Sequence[tuple[str, int]], expected: list[int]
) -> None:
    history = History()
    for how, version in told:
        if how == "list":
            history.listed = version
            history.replace([item(version)])
        else:
            history.upsert(item(version))
    assert expected == history.missed(WRITTEN)
