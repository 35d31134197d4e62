"""The verdict about the pod network: whose fault it is that a node does not reach its peers or Services."""

from collections.abc import Sequence

from agent.checks.peer_verdict import Answer, Leg, Probe, Seen, Way, judge
from agent.checks.state import CheckState, CheckStatus, Finding, Severity, Thresholds, next_status
from tools.kit.cases import cases

WAYS = {"+": Way.REACHED, "r": Way.REFUSED, "s": Way.SMALL_ONLY, "c": Way.STALLED, "-": Way.SILENT, "u": Way.UNSENT}
WELL = Answer("", "passed", ("x", "y", "z"), (), api=True, dns=True)
CUT_OFF = Answer("", "failed", ("x",), ("y", "z"), api=False, dns=False)
STARTING = Answer("", "starting")
SAYS = {"+": WELL, "c": CUT_OFF, "?": STARTING, ".": None}


def probes(ways: str, answers: str = "", family: int = 4) -> list[Probe]:
    """One of each letter, of peers a, b, c, ...; of those reached each says how it is by a letter of `answers`."""
    said = iter(answers or "+" * len(ways))
    return [
        Probe(chr(ord("a") + place), family, WAYS[way], SAYS[next(said)] if way in "+s" else None)
        for place, way in enumerate(ways)
    ]


def legs(letters: str) -> list[Leg]:
    """API server, DNS by UDP, DNS by TCP."""
    names = (("api", "API server"), ("dns", "DNS by UDP"), ("dns", "DNS by TCP"))
    return [Leg(of, name, WAYS[way]) for (of, name), way in zip(names, letters, strict=False)]  # type: ignore[arg-type]


def verdict(ways: str, answers: str = "", services: str = "+++", *, visitors: Sequence[str] = ()) -> Finding:
    return judge(Seen("own", max(2, len(ways)), probes(ways, answers), legs(services), visitors))


@cases(
    "ways, answers, services, state, output",
    ("all peers are reached", "+++", "", "+++", "passed", "peers reached"),
    ("half of the peers are enough", "++--", "", "+++", "passed", "2 of 4 peers reached, not c, d"),
    ("one dead peer of three", "++-", "", "+++", "passed", "2 of 3 peers reached, not c"),
    ("a peer that refuses was reached", "rrr", "", "+++", "passed", "peers reached"),
    ("none of three", "---", "", "+++", "failed", "0 of 3 peers reached over IPv4: a, b, c silent"),
    ("none of three, and no Service", "---", "", "---", "failed", "0 of 3 peers reached"),
    ("none of two, but the API server", "--", "", "+++", "unknown", "perhaps both peers are down"),
    ("none of two, nor the API server", "--", "", "-++", "failed", "0 of 2 peers reached"),
    ("two peers that connect and fall silent", "cc", "", "+++", "failed", "a, b connected, then silent"),
    ("large packets to all peers are lost", "sss", "+++", "+++", "failed", "a, b, c large packets lost"),
    ("no route to any peer", "uuu", "", "+++", "failed", "this node cannot send to its peers"),
    (
        "few are reached, and they are cut off as well",
        "+---",
        "c",
        "+++",
        "shared",
        "most reached peers are cut off as",
    ),
    ("few are reached, they are well, others are unknown", "+---", "+", "+++", "warned", "no other node is known to"),
    ("few are reached, and they have just started", "+---", "?", "+++", "unknown", "no peer says how it is itself"),
    ("few are reached, with agents that do not say", "+---", ".", "+++", "unknown", "no peer says how it is itself"),
    (
        "the API server is reached from peers",
        "+++",
        "+++",
        "-++",
        "failed",
        "API server silent; reached from 3 of 3 peer",
    ),
    ("the API server is reached from no peer", "+++", "ccc", "-++", "warned", "not of this node alone, reached from 0"),
    ("nobody says whether the API server is reached", "+++", "...", "-++", "unknown", "no peer says whether it is"),
    ("no route to the API server", "+++", "...", "u++", "failed", "API server cannot be sent"),
    ("DNS by UDP alone is lost", "+++", "+++", "+-+", "failed", "DNS by UDP silent; reached from 3 of 3 peers"),
    ("DNS by TCP alone is lost", "+++", "+++", "++-", "failed", "DNS by TCP silent; reached from 3 of 3 peers"),
    ("DNS is down for all", "+++", "ccc", "+--", "warned", "not of this node alone, reached from 0 of 3 peers: DNS by"),
    ("DNS is down for half of the peers", "++++", "++cc", "+-+", "warned", "reached from 2 of 4 peers"),
)
def test_verdict(ways: str, answers: str, services: str, state: str, output: str) -> None:
    found = verdict(ways, answers, services)
    assert (str(found.state), output in found.output, found.output) == (state, True, found.output)


def test_others_that_reach_the_lost_peers_show_whose_fault_it_is() -> None:
    answer = Answer("a", "passed", ("b", "c"), ())
    seen = Seen("own", 4, [Probe("a", 4, Way.REACHED, answer), *probes("----")[1:]], legs("+++"))
    assert (
        judge(seen).output
        == "others reach peers that this node does not, 1 of 4 peers reached over IPv4: b, c, d silent"
    )


def test_a_peer_that_is_cut_off_shows_nothing() -> None:
    answer = Answer("a", "failed", ("b", "c"), ("d", "e", "f"))
    seen = Seen("own", 4, [Probe("a", 4, Way.REACHED, answer), *probes("----")[1:]], legs("+++"))
    assert judge(seen).state is CheckState.SHARED


def test_a_group_that_reaches_few_and_no_api_server_is_cut_off() -> None:
    answer = Answer("a", "failed", ("own",), ("b", "c", "d"))
    seen = Seen("own", 4, [Probe("a", 4, Way.REACHED, answer), *probes("----")[1:]], legs("-++"))
    assert judge(seen).output.startswith("cut off with few others, 1 of 4 peers reached")


def test_one_way_outwards_is_said() -> None:
    """Peers reach this node, and it reaches none of them."""
    assert verdict("---", visitors=("a", "b")).output.startswith("one-way, 2 peers reached this node: 0 of 3")


def test_large_packets_that_are_lost_are_not_one_way() -> None:
    assert verdict("sss", "+++", visitors=("a", "b")).output.startswith("0 of 3 peers reached")


def test_one_way_outwards_is_certain_with_two_peers() -> None:
    assert verdict("--", visitors=("a",)).state is CheckState.FAILED


def of_visitors(*lost_by: str, visitors: Sequence[str] = (), found_by: str = "") -> Finding:
    """Peers that this node reaches, of which those named do not reach it."""
    said = [
        Probe(
            n, 4, Way.REACHED, Answer(n, "passed", ("x", "y") + (("own",) * (n in found_by)), ("own",) * (n in lost_by))
        )
        for n in "abc"
    ]
    return judge(Seen("own", 3, said, legs("+++"), visitors))


@cases(
    "lost_by, visitors, found_by, state",
    ("two peers do not reach it, and nobody does", "ab", (), "", "failed"),
    ("one peer alone may be wrong itself", "a", (), "", "passed"),
    ("somebody reached it", "ab", ("z",), "", "passed"),
    ("a peer says that it reaches it", "ab", (), "c", "passed"),
)
def test_one_way_inwards(lost_by: str, visitors: Sequence[str], found_by: str, state: str) -> None:
    assert str(of_visitors(*lost_by, visitors=visitors, found_by=found_by).state) == state


def test_an_agent_that_has_just_started_does_not_judge_who_came() -> None:
    said = [Probe(n, 4, Way.REACHED, Answer(n, "passed", ("x", "y"), ("own",))) for n in "abc"]
    assert judge(Seen("own", 3, said, legs("+++"), None)).state is CheckState.PASSED


@cases(
    "ready, state",
    ("as a cluster starts, no peer is ready", "", "shared"),
    ("one that is ready is too few", "a", "shared"),
    ("two that are ready may both be down", "ab", "unknown"),
    ("three are enough", "abc", "failed"),
)
def test_lost_peers_that_are_not_ready_are_no_witnesses(ready: str, state: str) -> None:
    """As where nodes are shut down (goldpinger#87), or all start at once."""
    asked = [Probe(name, 4, Way.SILENT, ready=name in ready) for name in "abcdef"]
    assert str(judge(Seen("own", 6, asked, legs("+++"))).state) == state


def test_one_way_inwards_names_the_peers() -> None:
    assert of_visitors("a", "b").output == "one-way: this node reaches its peers, they do not reach it: a, b"


def test_a_policy_of_the_operator_is_named_and_fails_nobody() -> None:
    seen = Seen("own", 3, probes("---"), legs("+++"), peers_denied=["deny-all"])
    expected = "NetworkPolicy deny-all stops packets between agents: 0 of 3 peers reached over IPv4: a, b, c silent"
    assert judge(seen) == Finding(CheckState.NOT_APPLICABLE, expected)


def test_a_policy_that_stops_packets_to_services_fails_nobody() -> None:
    seen = Seen("own", 3, probes("+++"), legs("---"), services_denied=["deny-egress"])
    assert judge(seen).state is CheckState.WARNED


def test_with_fewer_than_two_peers_there_is_nothing_to_judge() -> None:
    assert [judge(Seen("own", known)).state for known in (0, 1)] == [CheckState.NOT_APPLICABLE] * 2


def test_without_a_list_nothing_is_known() -> None:
    assert judge(Seen("own", None, list_trouble="Unreachable")).output == "no list of peers: Unreachable"


@cases(
    "services, state",
    ("the API server is reached", "+", CheckState.SHARED),
    ("it is not reached", "-", CheckState.UNKNOWN),
    ("this node cannot send to it", "u", CheckState.UNKNOWN),
)
def test_an_api_server_that_is_reached_and_gives_no_list_is_no_fault_of_this_node(
    services: str, state: CheckState
) -> None:
    assert judge(Seen("own", None, legs=legs(services), list_trouble="429")).state is state


def test_a_list_that_is_refused_is_refused_on_all_nodes() -> None:
    assert judge(Seen("own", None, list_trouble="403", list_forbidden=True)).state is CheckState.SHARED


def test_each_family_is_judged_by_itself() -> None:
    """A cluster of two families, whose IPv6 is broken on this node (node-problem-detector#991)."""
    seen = Seen("own", 3, [*probes("+++"), *probes("---", family=6)], legs("+++"))
    assert judge(seen) == Finding(CheckState.FAILED, "0 of 3 peers reached over IPv6: a, b, c silent")


def test_a_failure_is_not_hidden_by_what_is_shared() -> None:
    assert verdict("+++", "cc+", "-++").state is CheckState.WARNED
    assert verdict("---", "", "---").state is CheckState.FAILED


def test_names_beyond_four_are_counted() -> None:
    assert verdict("------").output.endswith("a, b, c, d and 2 more silent")


@cases("answers", ("cut off", "ccc"), ("starting", "???"), ("silent", "..."))
def test_what_peers_say_closes_no_node_that_reaches_its_own(answers: str) -> None:
    assert verdict("+++", answers).state is CheckState.PASSED


def test_what_is_shared_opens_a_node_that_reaches_its_peers() -> None:
    """A node that was closed before DNS went down for all, and is well again, must not wait for DNS."""
    status = CheckStatus("pods", Severity.GATE, 0.0, CheckState.FAILED)
    found = next_status(status, verdict("+++", "ccc", "+--"), Thresholds(), 1.0)
    assert found.state is CheckState.WARNED
