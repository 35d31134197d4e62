"""`readygate status`: its page, the choice of the newest data, exit codes."""

import json
from dataclasses import replace

import msgspec
import pytest

from cli.__main__ import main
from cli.shared.layout import text_of
from cli.shared.merge_answers import Difference
from cli.status import page
from extender.policy.reasons import CLOSED_NODE_LOST, CLOSED_UNHEALTHY
from extender.web.report import (
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
STATUS = page.Status(
    cluster="prod-eu1",
    nodes=NodeVerdicts(not_answering="", last_word_seconds=0.4, nodes=NODES),
    gates=GATES,
    answered=2,
    asked=2,
)
AT_60 = """\
prod-eu1   2 of 6 nodes open   cap 65: 4 used
2 of 2 extenders agree   last API response 0.4s ago

GATE   OPEN  CLOSED  HELD OPEN  REFUSED/10m
base    213       3          0           41
  for every pod
  last change: gpu-11 closed 52s ago
dns *   211       5          0        (112)
  for pods that request nvidia.com/gpu
  last change: -

* in shadow: closes nothing; (n) is what it would refuse

NODE    GATE  STATE        FOR
gpu-11  base  closed       28s
  kubelet Lease not renewed for 52s
  opens when its kubelet renews its Lease
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
  - (closes when the cap has room)
w-102   dns   would close  1m
  dns: timed out
  opens when check dns passes
"""
AT_120 = """\
prod-eu1   2 of 6 nodes open   cap 65: 4 used   2 of 2 extenders agree   last API response 0.4s ago

GATE   FOR                               OPEN  CLOSED  HELD OPEN  REFUSED/10m  LAST CHANGE
base   every pod                          213       3          0           41  gpu-11 closed 52s ago
dns *  pods that request nvidia.com/gpu   211       5          0        (112)  -

* in shadow: closes nothing; (n) is what it would refuse

NODE    GATE  STATE        FOR   CAUSE                                 OPENS WHEN
gpu-11  base  closed       28s   kubelet Lease not renewed for 52s     its kubelet renews its Lease
w-014   base  closed       3m    rootfs: Read-only file system         check rootfs passes
gpu-07  gpu   closed       2d3h  hold by ana: "RMA 4711"               the hold is lifted, or ends in 2h30m
w-101   base  opening      18s   healthy again; flapped 3 times in 1h  it stays healthy for 42s more
w-102   base  held open    1m    cap of 65: dns: timed out             - (closes when the cap has room)
w-102   dns   would close  1m    dns: timed out                        check dns passes
"""


def at(width, status=STATUS):
    return text_of(page.render(status, width))


@pytest.mark.parametrize(("width", "expected"), [(60, AT_60), (120, AT_120)])
def test_the_page_fits_the_width(width, expected):
    assert expected == at(width)


@pytest.mark.parametrize("width", [60, 80, 100, 120])
def test_no_line_is_wider_than_the_terminal(width):
    assert [line for line in at(width).splitlines() if len(line) > width] == []


def with_gates(**changes):
    return page.Status("", STATUS.nodes, GatesTold(not_answering="", **changes), 1, 1)


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param(
            page.Status("", NodeVerdicts(not_answering="no word from the API server for 130 s", nodes=[]), None, 1, 1),
            "The extender gives no verdicts: no word from the API server for 130 s.\n"
            "kube-scheduler places pods unfiltered (protect), or pods wait (enforce).\n",
            id="without verdicts",
        ),
        pytest.param(
            page.Status(
                "",
                NodeVerdicts(not_answering="", nodes=[verdict("a", decided())]),
                None,
                2,
                2,
                differences=(Difference("a", {"e-1": "open", "e-2": CLOSED_UNHEALTHY}),),
                releases=("0.1.0", "0.2.0"),
            ),
            "1 of 1 node open   2 of 2 extenders answer\n"
            "! The extenders disagree on 1 node:\n"
            f"  a: open at e-1; {CLOSED_UNHEALTHY} at e-2\n"
            "! The extenders run different releases: 0.1.0, 0.2.0.\n",
            id="replicas that disagree, of two releases",
        ),
        pytest.param(
            page.Status(
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
            "STORM gate g: 41 nodes became unhealthy at once (dns), held open. Suspect: 10.96.0.10.\n"
            "HOLD gate gpu and node gpu-07, by ana: RMA 4711, ends 2026-11-28T09:00:00Z\n"
            "PAUSE the cluster, by an unknown author: an upgrade\n"
            "! order ignored: c: expires: is the text soon, allowed: an RFC 3339 time\n"
            "\n"
            "GATE  FOR        OPEN  CLOSED  HELD OPEN  REFUSED/10m  LAST CHANGE\n"
            "g     every pod     1       0          0            0  -\n",
            id="a storm, orders, and an invalid order",
        ),
    ],
)
def test_problems_storms_and_orders_are_shown(status, expected):
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
def test_the_exit_code_shows_whether_a_node_is_closed(capsys, cluster, nodes, why, code, output):
    cluster.extenders = [Extender("e-1", nodes={"notAnswering": why, "nodes": nodes})]
    assert (code, "") == status(capsys, "-o", output)[::2]


def test_an_extender_without_decisions_per_gate_is_shown(capsys, cluster):
    cluster.extenders = [Extender("e-1", nodes={"nodes": [OPEN, CLOSED]})]
    expected = """\
testbed   1 of 2 nodes open   last API response 0.4s ago

NODE    GATE  STATE   FOR   CAUSE      OPENS WHEN
node-2  -     closed  1m1s  cni: gone  check cni passes
"""
    assert (1, expected, "") == status(capsys)


def test_option_all_lists_open_nodes(capsys, cluster):
    cluster.extenders = [Extender("e-1", nodes={"nodes": [OPEN]})]
    assert "node-1  -     open   1m1s" in status(capsys, "--all")[1]


def test_the_newest_data_and_differences_are_shown(capsys, cluster):
    old = {"nodes": [OPEN, {**CLOSED, "open": True, "reason": ""}], "lastWordSeconds": 9.0}
    cluster.extenders = [Extender("e-1", nodes=old), Extender("e-2", nodes={"nodes": [OPEN, CLOSED]})]
    code, out, _ = status(capsys)
    assert (1, True) == (code, f"  node-2: open at e-1; {CLOSED_UNHEALTHY} at e-2\n" in out)


def test_json_names_the_extender_and_the_problems(capsys, cluster):
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


def test_json_has_releases_and_calls_of_all_extenders(capsys, cluster):
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


# The calls of kube-scheduler

ASKED = SchedulerTold(calls=12_345, unanswered=2, per_second=1.25, p99_seconds=0.002, last_call_seconds=3.0)
QUIET = SchedulerTold(calls=7, last_call_seconds=3000.0)
NEVER = SchedulerTold()


@pytest.mark.parametrize(
    ("schedulers", "expected"),
    [
        pytest.param((), None, id="extenders of another release report no calls"),
        pytest.param(
            (NEVER,), "has never called; `readygate doctor` shows whether readygate is registered.", id="never"
        ),
        pytest.param((QUIET, NEVER), "last call 50m ago, 0 of 7 calls unanswered.", id="nothing to place"),
        pytest.param(
            (SchedulerTold(calls=7),),
            "no call for ten minutes, 0 of 7 calls unanswered.",
            id="no time of the last call",
        ),
        pytest.param(
            (ASKED, NEVER, QUIET),
            "calls 1 of 3 extenders, 1.2 calls/s, p99 below 2ms, 2 of 12,352 calls unanswered.",
            id="the leader calls the extender on its host",
        ),
        pytest.param(
            (SchedulerTold(calls=7, unanswered=7, per_second=0.1),),
            "calls 1 of 1 extender, 0.1 calls/s, p99 above 1s, 7 of 7 calls unanswered.",
            id="slow",
        ),
    ],
)
def test_calls_of_the_scheduler_are_shown(schedulers, expected):
    shown = text_of(page.render(replace(STATUS, schedulers=schedulers), 120)).splitlines()
    found = [line for line in shown if line.startswith("Scheduler: ")]
    assert found == ([] if expected is None else [f"Scheduler: {expected}"])


@pytest.mark.parametrize("mode", ["protect", "enforce"])
def test_the_first_line_shows_the_mode(mode):
    gates = msgspec.structs.replace(GATES, scheduler=SchedulerTold(mode=mode))
    first = text_of(page.render(replace(STATUS, gates=gates), 120)).splitlines()[0]
    assert (
        f"prod-eu1   2 of 6 nodes open   cap 65: 4 used   {mode}   2 of 2 extenders agree   last API response 0.4s ago"
        == first
    )
