"""How many nodes a request may name: twice the known ones and 1,000 more; 65,536 while their number is unknown."""

import json
import random
from collections import Counter

import pytest

from extender.verbs import wire
from extender.verbs.counts import RequestResult
from extender.verbs.filter import answer_filter
from extender.verbs.preempt import CANDIDATES_MAX, answer_preempt
from extender.verbs.prioritize import answer_prioritize
from tests.extender.builders import node, pod
from tests.extender.verbs.test_filter import World
from tests.extender.world import PODS
from tools.kit.scope import draws

KNOWN = 5
LIMIT = 2 * KNOWN + 1_000
ATTACK = 64_000
ORDINARY = {"metadata": {"name": "p", "namespace": "default"}}
EXEMPT = {"metadata": {"name": "p", "namespace": "kube-system"}}
COMMAS = {
    "metadata": {"name": "p", "namespace": "default", "annotations": {"a": "," * 100_000, "b": '["x","y"],' * 9_000}}
}


@pytest.fixture
def world() -> World:
    world = World()
    names = [f"h{number}" for number in range(KNOWN)]
    world.services.index.replace_nodes([node(name) for name in names])
    world.services.index.replace_pods(PODS, [pod(name, Ready="False" if name == "h0" else "True") for name in names])
    world.see()
    return world


def names(count: int) -> list[str]:
    """The known nodes, and so many more that are unknown."""
    return [f"h{number}" for number in range(count)]


def usual(names: list[str], pod: dict[str, object] = ORDINARY) -> bytes:
    """As kube-scheduler writes it."""
    return json.dumps({"Pod": pod, "Nodes": None, "NodeNames": names}, separators=(",", ":")).encode()


def with_blanks(names: list[str], pod: dict[str, object] = ORDINARY) -> bytes:
    return json.dumps({"Pod": pod, "Nodes": None, "NodeNames": names}, indent=1).encode()


def names_first(names: list[str], pod: dict[str, object] = ORDINARY) -> bytes:
    return json.dumps({"NodeNames": names, "Pod": pod}).encode()


def lower_case(names: list[str], pod: dict[str, object] = ORDINARY) -> bytes:
    return json.dumps({"pod": pod, "nodenames": names}).encode()


def doubled(names: list[str], pod: dict[str, object] = ORDINARY) -> bytes:
    """The last list counts."""
    return b'{"NodeNames":["x"],' + usual(names, pod)[1:]


FORMS = [usual, with_blanks, names_first, lower_case, doubled]


@pytest.mark.parametrize("pod", [ORDINARY, EXEMPT, COMMAS], ids=["ordinary", "exempt", "commas in the Pod"])
@pytest.mark.parametrize("form", FORMS)
def test_as_many_names_as_the_limit_are_answered(world, form, pod):
    reply = answer_filter(world.services, form(names(LIMIT), pod))
    answer = json.loads(reply.body)
    assert (200, "") == (reply.status, answer["Error"])
    assert LIMIT == len(answer["NodeNames"]) + len(answer["FailedAndUnresolvableNodes"])


@pytest.mark.parametrize("count", [LIMIT + 1, ATTACK])
@pytest.mark.parametrize("pod", [ORDINARY, EXEMPT, COMMAS], ids=["ordinary", "exempt", "commas in the Pod"])
@pytest.mark.parametrize("form", FORMS)
def test_more_names_than_the_limit_are_refused_with_413(world, form, pod, count):
    reply = answer_filter(world.services, form(names(count), pod))
    text = "readygate: the request names more nodes than the limit of 1010"
    assert (413, RequestResult.TOO_LARGE, text) == (reply.status, reply.result, json.loads(reply.body)["Error"])
    assert [] == world.services.attempts.take(9), "no attempt of a pod"


@pytest.mark.parametrize("form", [usual, with_blanks, names_first, doubled])
def test_a_request_that_names_64_000_nodes_is_refused_before_it_is_decoded(world, monkeypatch, form):
    def decode(*_: object, **__: object) -> None:
        raise AssertionError("the names were decoded")

    monkeypatch.setattr(wire, "read_filter_args", decode)
    assert 413 == answer_filter(world.services, form(names(ATTACK))).status


@pytest.mark.parametrize("form", [usual, with_blanks, names_first, doubled])
def test_a_prioritize_request_that_names_64_000_nodes_is_refused_before_it_is_decoded(world, monkeypatch, form):
    def decode(*_: object, **__: object) -> None:
        raise AssertionError("the names were decoded")

    monkeypatch.setattr(wire, "read_filter_args", decode)
    assert 413 == answer_prioritize(world.services, form(names(ATTACK))).status


@pytest.mark.parametrize("pod", [ORDINARY, COMMAS], ids=["ordinary", "commas in the Pod"])
def test_a_request_about_each_known_node_is_never_scanned(world, monkeypatch, pod):
    """Its names are counted on the way."""
    monkeypatch.setattr(wire, "refuse_too_many", None)
    assert 200 == answer_filter(world.services, usual(names(KNOWN), pod)).status


@pytest.mark.parametrize("age_s", [None, 1e9], ids=["not synced", "stale"])
def test_while_the_number_of_nodes_is_unknown_65_536_names_are_taken(world, age_s):
    """A restart must not make mode protect place pods unfiltered because a request is refused that was answered."""
    if age_s is None:
        world = World()
    else:
        world.caches["nodes"].age = age_s
    expected = RequestResult.NOT_SYNCED if age_s is None else RequestResult.STALE
    for form in FORMS:
        reply = answer_filter(world.services, form(names(wire.NAMES_MAX)))
        assert (200, expected) == (reply.status, reply.result)
        reply = answer_filter(world.services, form(names(wire.NAMES_MAX + 1)))
        assert (413, RequestResult.TOO_LARGE) == (reply.status, reply.result)
        assert wire.NAMES_MAX == len(
            json.loads(answer_filter(world.services, form(names(wire.NAMES_MAX), EXEMPT)).body)["NodeNames"]
        )


def test_the_limit_follows_the_number_of_known_nodes(world):
    body = usual(names(LIMIT + 2))
    assert 413 == answer_filter(world.services, body).status
    world.services.index.upsert_node(node("h5"))
    world.see()
    assert 200 == answer_filter(world.services, body).status


def test_a_node_pool_that_the_extender_does_not_know_yet_is_answered(world):
    """Each new node is refused as unknown until the extender has seen it, and the known ones are answered as ever."""
    answer = json.loads(answer_filter(world.services, usual(names(KNOWN + 1_000))).body)
    assert (["h1", "h2", "h3", "h4"], 1_001) == (answer["NodeNames"], len(answer["FailedAndUnresolvableNodes"]))


@pytest.mark.parametrize("known", [0, 100, 5_000, 32_268, 100_000])
def test_the_limit_is_never_above_65_536(known):
    expected = {0: 1_000, 100: 1_200, 5_000: 11_000, 32_268: 65_536, 100_000: 65_536}
    assert expected[known] == wire.names_max_of(known)


@pytest.mark.parametrize(("count", "status"), [(LIMIT, 200), (LIMIT + 1, 413), (ATTACK, 413)])
@pytest.mark.parametrize("form", FORMS)
def test_prioritize_has_the_same_limit(world, form, count, status):
    reply = answer_prioritize(world.services, form(names(count)))
    assert (status, status == 413) == (reply.status, reply.result is RequestResult.TOO_LARGE)


def candidates(count: int) -> bytes:
    return json.dumps(
        {"Pod": ORDINARY, "NodeNameToMetaVictims": {name: {"Pods": []} for name in names(count)}}
    ).encode()


@pytest.mark.parametrize(("count", "status"), [(LIMIT, 200), (LIMIT + 1, 413), (ATTACK, 413)])
def test_preempt_has_the_same_limit_for_its_candidates(world, count, status):
    reply = answer_preempt(world.services, candidates(count))
    assert (status, status == 413) == (reply.status, reply.result is RequestResult.TOO_LARGE)


def test_preempt_takes_16_384_candidates_while_the_number_of_nodes_is_unknown():
    services = World().services
    assert RequestResult.NOT_SYNCED is answer_preempt(services, candidates(CANDIDATES_MAX)).result
    assert 413 == answer_preempt(services, candidates(CANDIDATES_MAX + 1)).status


def test_a_refused_request_is_noted_for_no_kick(world):
    answer_filter(world.services, usual(names(ATTACK)))
    (refusals,) = world.services.board._refusals.values()
    assert ([], []) == ([page for page in refusals._pages if page], list(refusals._unknown))


REQUESTS = draws(80, 300)
TEXTS = [",", '"', "[", "]", '],"Nodes":null,"NodeNames":[', "\\", "a", "é", '{"NodeNames":["x","y"]}', "," * 5]
NAMES_KEYS = ["NodeNames", "NodeNames", "NodeNames", "nodenames", "NODENAMES"]


def request_by_chance(chance: random.Random, count: int) -> bytes:
    """A request with so many names; commas, brackets and lists called NodeNames are everywhere else."""

    def text() -> str:
        return "".join(chance.choice(TEXTS) for _ in range(chance.randrange(4)))

    def value(depth: int) -> object:
        match chance.randrange(4 if depth else 2):
            case 0:
                return text()
            case 1:
                return [text() for _ in range(chance.choice((0, 1, 3, 1_500)))]
            case 2:
                return {text(): value(depth - 1) for _ in range(3)}
            case _:
                return {"NodeNames": [text() for _ in range(1_500)]}

    metadata = {"name": text(), "namespace": chance.choice(("default", "kube-system")), "annotations": value(2)}
    members: list[tuple[str, object]] = [
        (chance.choice(("Pod", "pod")), {"metadata": metadata, "x": value(2)}),
        ("Nodes", None),
        (chance.choice(NAMES_KEYS), names(count)),
    ]
    if chance.random() < 0.3:
        members.append(("Extra", value(2)))
    if chance.random() < 0.5:
        chance.shuffle(members)
    separators = chance.choice(((",", ":"), (", ", ": "), (" ,\n", " : ")))
    return json.dumps(dict(members), separators=separators, ensure_ascii=chance.random() < 0.5).encode()


def test_requests_by_chance_are_refused_if_and_only_if_they_name_too_many_nodes(world, seed):
    chance = random.Random(f"{seed} many nodes")
    statuses: Counter[int] = Counter()
    for number in range(REQUESTS):
        count = chance.choice((1, KNOWN, LIMIT - 1, LIMIT, LIMIT + 1, LIMIT + 2, 3 * LIMIT, 30 * LIMIT))
        body = request_by_chance(chance, count)
        reply = answer_filter(world.services, body)
        expected = 413 if count > LIMIT else 200
        assert expected == reply.status, f"request {number} of this seed names {count}: {body[:2_000]!r}"
        statuses[reply.status] += 1
    assert min(statuses[200], statuses[413]) > REQUESTS / 4
