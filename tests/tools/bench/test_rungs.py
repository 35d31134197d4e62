"""What the suite `layers` measures: the event loop with nothing behind it, and the parts of an answer."""

import json
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.extender.builders import node, pod
from tests.extender.verbs.test_filter import World
from tests.extender.world import PODS
from tools.bench import in_process
from tools.bench.asking import request_for
from tools.bench.processes import Measured
from tools.bench.rungs import REPLY
from tools.kit.programs import python_environ

NAMES = ["h1", "h2", "u1"]


def test_the_loop_with_nothing_behind_it_answers(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "tools.bench.rungs"]
    child = Measured("floor", argv, cwd=tmp_path, environ=python_environ())
    child.start()
    with child, urllib.request.urlopen(f"http://{child.listening_on()}/filter", request_for(["a"]), timeout=5) as reply:
        assert (200, REPLY) == (reply.status, reply.read())


@pytest.fixture
def world() -> World:
    world = World()
    world.services.index.replace_nodes([node(name) for name in NAMES])
    world.services.index.replace_pods(PODS, [pod("h1"), pod("h2"), pod("u1", Ready="False")])
    world.see()
    return world


def test_the_parts_of_an_answer_are_those_of_the_whole_one(world: World) -> None:
    found = {name: do() for name, do in in_process.parts_of(world.services, request_for(NAMES)).items()}
    assert found["answer"].body == found["encode"]
    assert ["h1", "h2"] == json.loads(found["encode"])["NodeNames"]


@pytest.mark.parametrize(
    ("body", "where"),
    [
        pytest.param(json.dumps({"Pod": {}, "NodeNames": NAMES}).encode(), "form", id="with blanks"),
        pytest.param(request_for([*NAMES, "stranger"]), "known", id="with a name that is no node's"),
        pytest.param(request_for(["h1", "h2"]), "closed", id="with no closed node"),
    ],
)
def test_what_is_answered_in_another_way_is_not_measured(world: World, body: bytes, where: str) -> None:
    with pytest.raises(in_process.AnotherWayError, match=where):
        in_process.parts_of(world.services, body)
