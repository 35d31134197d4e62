"""A sleep in a test guesses how long something takes. Each is listed with its reason; other tests wait for events.

`tests/architecture/sleeps.txt` has a line for each function: `path::function  # reason`. Instruments that measure over
a given time have one for their folder.
"""

import ast
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.architecture.source import name_of
from tests.architecture.test_rooms import tracked
from tools.proof.selection import Line, read

LIST = Path(__file__).with_name("sleeps.txt")


def sleeping(tree: ast.AST, inside: str = "") -> Iterator[str]:
    """The functions that call `sleep` of `time` or `asyncio`, as Class.function; "" for the module itself."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from sleeping(node, f"{inside}.{node.name}".lstrip("."))
            continue
        match node:
            case ast.Call(func=ast.Attribute(attr="sleep", value=ast.Name(id="time" | "asyncio"))):
                yield inside
            case ast.Call(func=ast.Name(id="sleep")):
                yield inside
        yield from sleeping(node, inside)


def listed() -> list[Line]:
    return read(LIST.read_text())


@cache
def present() -> set[str]:
    instruments = [path for path in tracked() if name_of(path).startswith(("tests/", "tools/"))]
    return {
        f"{name_of(path)}::{function}" for path in instruments for function in sleeping(ast.parse(path.read_text()))
    }


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import time\ndef f():\n    time.sleep(1)", {"f"}),
        ("from time import sleep\nclass C:\n    def f(self):\n        sleep(1)", {"C.f"}),
        ("async def f():\n    await asyncio.sleep(1)", {"f"}),
        ("import time\ntime.sleep(1)", {""}),
        ("def f(clock):\n    clock.sleep(1)", set()),
    ],
)
def test_a_call_of_sleep_is_seen_with_its_function(source: str, expected: set[str]) -> None:
    assert expected == set(sleeping(ast.parse(source)))


def test_each_sleep_is_listed() -> None:
    unlisted = [place for place in present() if not any(line.covers(place) for line in listed())]
    assert sorted(unlisted) == [], f"wait for an event, or add a line with the reason to {LIST.name}"


@pytest.mark.parametrize("line", listed(), ids=[line.what for line in listed()])
def test_each_listed_sleep_exists(line: Line) -> None:
    assert any(line.covers(place) for place in present())


def test_no_place_is_listed_twice() -> None:
    assert [] == [what for what, count in Counter(line.what for line in listed()).items() if count > 1]
