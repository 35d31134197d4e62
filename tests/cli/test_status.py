"""`readygate status`: its page at three widths, whose word is taken, exit codes."""

import json
from dataclasses import replace

import msgspec
import pytest

from cli.__main__ import main
from cli.layout import text_of
from cli.pages import status as drawn
from cli.replicas import Difference
from extender.policy.reasons import CLOSED_NODE_LOST, CLOSED_UNHEALTHY
from extender.web.schema import (
    CapTold,
    Change,
    DecisionTold,
    GatesTold,
    GateTold,
    NodeVerdict,
    NodeVerdicts,
    OrderTold,
    SchedulerTold,
    Scope,
    StormTold,
)
from tests.cli.served import OPEN, Extender, serving

LEASE = "kubelet Lease not renewed"


def decided(gate="base", reason="", **others):
    others = {"open": not reason, "verdict": reason, "since_seconds": 60.0, **others}
    return DecisionTold(gate=gate, reason=reason, **others)


def verdict(node, *gates, heartbeat_s=1.0):
    closed = next((one for one in gates if not one.open and one.armed), None)
    return NodeVerdict(node, closed is None, closed.reason if closed else "", 60.0, "", "", heartbeat_s, gates)


NODES = [
    verdict("gpu-11", decided(reason=CLOSED_NODE_LOST, evidence=LEASE, since_seconds=28.0), heartbeat_s=52.0),
    verdict(
        "w-014",
        decided(reason=CLOSED_UNHEALTHY, evidence="CheckFailed: rootfs: Read-only file system", since_seconds=180.0),
    ),
    verdict(
        "gpu-07",
        decided(
            "gpu",
            "node(s) held closed by an operator",
            verdict="",
            held_by="hold",
            note='hold by ana: "RMA 4711"',
            until_seconds=9000.0,
            since_seconds=183_600.0,
        ),
    ),
    verdict(
        "w-101",
        decided(
            reason=CLOSED_UNHEALTHY,
            verdict="",
            held_by="damping",
            note="healthy again; flapped 3 times in 1h",
            until_seconds=42.0,
            since_seconds=18.0,
        ),
    ),
    verdict(
        "w-102",
        decided(verdict=CLOSED_UNHEALTHY, held_by="cap", note="cap of 65", evidence="CheckFailed: dns: timed out"),
        decided("dns", CLOSED_UNHEALTHY, armed=False, evidence="CheckFailed: dns: timed out"),
    ),
    verdict("w-001", decided()),
]
GATES = GatesTold(
    not_answering="",
    cap=CapTold(65, 4, 1),
    gates=(
        GateTold(
            gate="base",
            nodes=216,
            open=213,
            closed=3,
            refused10m=41,
            last_change=Change(kind="closed", node="gpu-11", ago_seconds=52.0),
        ),
        GateTold(
            gate="dns", armed=False, open=211, closed=5, would_refuse10m=112, for_="pods that request nvidia.com/gpu"
        ),
    ),
)
STATUS = drawn.Status(
    cluster="prod-eu1",
    nodes=NodeVerdicts(not_answering="", last_word_seconds=0.4, nodes=NODES),
    gates=GATES,
    answered=2,
    asked=2,
)
AT_60 = """\
prod-eu1   2 of 6 nodes open   cap 65: 4 used
2 of 2 extenders agree   last word 0.4s ago

GATE   OPEN  CLOSED  HELD OPEN  REFUSED/10m
base    213       3          0           41
  for every pod
  last change: gpu-11 closed 52s ago
dns *   211       5          0        (112)
  for pods that request nvidia.com/gpu
  last change: -

* in shadow: closes nothing; in brackets what it would do

NODE    GATE  STATE        FOR
gpu-11  base  closed       28s
  its kubelet has been silent for 52s
  opens when its Lease moves
w-014   base  closed       3m
  rootfs: Read-only file system
  opens when check rootfs passes
gpu-07  gpu   closed       2d3h
  hold by ana: "RMA 4711"
  opens when the hold is lifted, or ends in 2h30m
w-101   base  opening      18s
  healthy again; flapped 3 times in 1h
  opens when it stays healthy for 42s more
w-102   base  held open    1m
  cap of 65: dns: timed out
  - (closes when a place under the cap is free)
w-102   dns   would close  1m
  dns: timed out
  opens when check dns passes
"""
AT_120 = """\
prod-eu1   2 of 6 nodes open   cap 65: 4 used   2 of 2 extenders agree   last word 0.4s ago

GATE   FOR                               OPEN  CLOSED  HELD OPEN  REFUSED/10m  LAST CHANGE
base   every pod                          213       3          0           41  gpu-11 closed 52s ago
dns *  pods that request nvidia.com/gpu   211       5          0        (112)  -

* in shadow: closes nothing; in brackets what it would do

NODE    GATE  STATE        FOR   BECAUSE                               OPENS WHEN
gpu-11  base  closed       28s   its kubelet has been silent for 52s   its Lease moves
w-014   base  closed       3m    rootfs: Read-only file system         check rootfs passes
gpu-07  gpu   closed       2d3h  hold by ana: "RMA 4711"               the hold is lifted, or ends in 2h30m
w-101   base  opening      18s   healthy again; flapped 3 times in 1h  it stays healthy for 42s more
w-102   base  held open    1m    cap of 65: dns: timed out             - (closes when a place under the cap is free)
w-102   dns   would close  1m    dns: timed out                        check dns passes
"""


def at(width, status=STATUS):
    return text_of(drawn.page(status, width))


@pytest.mark.parametrize(("width", "expected"), [(60, AT_60), (120, AT_120)])
def test_the_page(width, expected):
    assert expected == at(width)


@pytest.mark.parametrize("width", [60, 80, 100, 120])
def test_no_line_is_wider_than_the_terminal(width):
    assert [line for line in at(width).splitlines() if len(line) > width] == []


def with_gates(**changes):
    return drawn.Status("", STATUS.nodes, GatesTold(not_answering="", **changes), 1, 1)


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param(
            drawn.Status("", NodeVerdicts(not_answering="no word from the API server for 130 s", nodes=[]), None, 1, 1),
            "We are blind: no word from the API server for 130 s.\n"
            "kube-scheduler gets no verdicts: it places pods unfiltered (protect) or waits (enforce).\n",
            id="blind",
        ),
        pytest.param(
            drawn.Status(
                "",
                NodeVerdicts(not_answering="", nodes=[verdict("a", decided())]),
                None,
                2,
                2,
                differences=(Difference("a", {"e-1": "open", "e-2": CLOSED_UNHEALTHY}),),
                releases=("0.1.0", "0.2.0"),
            ),
            "1 of 1 node open   2 of 2 extenders answer\n"
            "! The extenders do not say the same of 1 node:\n"
            f"  a: e-1 says open, e-2 says {CLOSED_UNHEALTHY}\n"
            "! The extenders are of different releases: 0.1.0, 0.2.0.\n",
            id="replicas that disagree, of two releases",
        ),
        pytest.param(
            drawn.Status(
                "",
                NodeVerdicts(not_answering="", nodes=[verdict("a", decided())]),
                GatesTold(
                    not_answering="",
                    gates=(
                        GateTold(gate="g", open=1, storms=(StormTold(cause="dns", nodes=41, suspect="10.96.0.10"),)),
                    ),
                    orders=(
                        OrderTold(
                            "a", "hold", Scope(gate="gpu", node="gpu-07"), "ana", "RMA 4711", "2026-11-28T09:00:00Z"
                        ),
                        OrderTold("b", "pause", Scope(), "", "an upgrade", None),
                    ),
                    faults=("c: expires: is the text soon, allowed: an RFC 3339 time",),
                ),
                1,
                1,
            ),
            "1 of 1 node open\n"
            "STORM gate g: 41 nodes turned bad at once (dns), held open. Suspect: 10.96.0.10.\n"
            "HOLD gate gpu and node gpu-07, by ana: RMA 4711, ends 2026-11-28T09:00:00Z\n"
            "PAUSE the cluster, by somebody: an upgrade\n"
            "! order ignored: c: expires: is the text soon, allowed: an RFC 3339 time\n"
            "\n"
            "GATE  FOR        OPEN  CLOSED  HELD OPEN  REFUSED/10m  LAST CHANGE\n"
            "g     every pod     1       0          0            0  -\n",
            id="a storm, orders, and one that is ignored",
        ),
    ],
)
def test_what_else_is_said(status, expected):
    assert expected == at(120, status)


# The command

CLOSED = {**OPEN, "node": "node-2", "open": False, "reason": CLOSED_UNHEALTHY, "evidence": "CheckFailed: cni: gone"}


def status(capsys, *arguments):
    code = main(["status", *arguments])
    written = capsys.readouterr()
    return code, written.out, written.err


@pytest.mark.parametrize(
    ("nodes", "why", "code"),
    [
        pytest.param([OPEN], "", 0, id="all open"),
        pytest.param([OPEN, CLOSED], "", 1, id="one closed"),
        pytest.param([OPEN], "caches not synced", 3, id="no verdicts"),
        pytest.param([], "", 0, id="no nodes"),
    ],
)
@pytest.mark.parametrize("output", ["table", "json"])
def test_the_exit_code(capsys, cluster, nodes, why, code, output):
    cluster.extenders = [Extender("e-1", nodes={"notAnswering": why, "nodes": nodes})]
    assert (code, "") == status(capsys, "-o", output)[::2]


def test_an_extender_that_tells_of_no_gates_is_shown_all_the_same(capsys, cluster):
    cluster.extenders = [Extender("e-1", nodes={"nodes": [OPEN, CLOSED]})]
    expected = """\
testbed   1 of 2 nodes open   last word 0.4s ago

NODE    GATE  STATE   FOR   BECAUSE    OPENS WHEN
node-2  -     closed  1m1s  cni: gone  check cni passes
"""
    assert (1, expected, "") == status(capsys)


def test_with_all_the_open_nodes_are_listed_too(capsys, cluster):
    cluster.extenders = [Extender("e-1", nodes={"nodes": [OPEN]})]
    assert "node-1  -     open   1m1s" in status(capsys, "--all")[1]


def test_the_freshest_word_is_shown_and_differences_are(capsys, cluster):
    old = {"nodes": [OPEN, {**CLOSED, "open": True, "reason": ""}], "lastWordSeconds": 9.0}
    cluster.extenders = [Extender("e-1", nodes=old), Extender("e-2", nodes={"nodes": [OPEN, CLOSED]})]
    code, out, _ = status(capsys)
    assert (1, True) == (code, f"  node-2: e-1 says open, e-2 says {CLOSED_UNHEALTHY}\n" in out)


def test_json_says_whose_word_it_is_and_who_differs(capsys, cluster):
    cluster.extenders = [Extender("e-1", nodes={"nodes": [OPEN, CLOSED]}), Extender("e-2", nodes=(500, b"{}"))]
    document = json.loads(status(capsys, "-o", "json")[1])
    assert ("e-1", 1, 2, False, 1) == (
        document["replica"],
        document["answered"],
        document["asked"],
        document["agree"],
        len(document["problems"]),
    )
    assert [node["node"] for node in document["nodes"]["nodes"]] == ["node-1", "node-2"]


def test_json_tells_what_the_page_tells_of_all_replicas(capsys, cluster):
    """Of which releases they are, and what is asked of each."""
    gates = [{"gates": [], "scheduler": {"calls": calls}} for calls in (3, 4)]
    cluster.extenders = [
        Extender(f"e-{number}", nodes={"release": f"1.{number}", "nodes": [OPEN]}, gates=one)
        for number, one in enumerate(gates)
    ]
    document = json.loads(status(capsys, "-o", "json")[1])
    assert ("testbed", ["1.0", "1.1"], [3, 4]) == (
        document["cluster"],
        document["releases"],
        [one["calls"] for one in document["schedulers"]],
    )


def test_all_pages_are_read():
    pages = {
        "": {"notAnswering": "", "continue": "t", "nodes": [OPEN]},
        "t": {"notAnswering": "", "nodes": [CLOSED]},
    }

    def answer(target, _headers):
        token = target.partition("continue=")[2]
        return 200, json.dumps(pages[token]).encode()

    with serving(answer) as url:
        assert main(["status", "--server", url]) == 1


def test_five_thousand_nodes_are_drawn(capsys, cluster):
    nodes = [{**CLOSED, "node": f"node-{number}"} for number in range(5000)]
    cluster.extenders = [Extender(f"e-{number}", nodes={"nodes": nodes}) for number in range(3)]
    code, out, _ = status(capsys)
    assert (1, "... and 4,950 more: readygate status -a shows all") == (code, out.splitlines()[-1])


# What kube-scheduler asks.

ASKED = SchedulerTold(calls=12_345, unanswered=2, per_second=1.25, p99_seconds=0.002, last_call_seconds=3.0)
QUIET = SchedulerTold(calls=7, last_call_seconds=3000.0)
NEVER = SchedulerTold()


@pytest.mark.parametrize(
    ("schedulers", "expected"),
    [
        pytest.param((), None, id="extenders of another release do not tell"),
        pytest.param((NEVER,), "has never asked; `readygate doctor` says whether it is told to.", id="never"),
        pytest.param((QUIET, NEVER), "asked last 50m ago, 0 of 7 calls unanswered.", id="nothing to place"),
        pytest.param(
            (SchedulerTold(calls=7),), "has not asked for ten minutes, 0 of 7 calls unanswered.", id="before we looked"
        ),
        pytest.param(
            (ASKED, NEVER, QUIET),
            "asks 1 of 3 extenders, 1.2 calls/s, p99 below 2ms, 2 of 12,352 calls unanswered.",
            id="one leads, and asks the extender beside it",
        ),
        pytest.param(
            (SchedulerTold(calls=7, unanswered=7, per_second=0.1),),
            "asks 1 of 1 extender, 0.1 calls/s, p99 above 1s, 7 of 7 calls unanswered.",
            id="slow",
        ),
    ],
)
def test_the_line_of_the_scheduler(schedulers, expected):
    page = text_of(drawn.page(replace(STATUS, schedulers=schedulers), 120)).splitlines()
    found = [line for line in page if line.startswith("Scheduler: ")]
    assert found == ([] if expected is None else [f"Scheduler: {expected}"])


@pytest.mark.parametrize("mode", ["protect", "enforce"])
def test_the_mode_stands_in_the_first_line(mode):
    gates = msgspec.structs.replace(GATES, scheduler=SchedulerTold(mode=mode))
    first = text_of(drawn.page(replace(STATUS, gates=gates), 120)).splitlines()[0]
    assert (
        f"prod-eu1   2 of 6 nodes open   cap 65: 4 used   {mode}   2 of 2 extenders agree   last word 0.4s ago" == first
    )
