"""`readygate history` and `readygate impact`: pages, filters, exit codes."""

import functools
import json

import pytest

from cli.__main__ import main
from cli.history import command as history
from cli.shared import terminal
from tests.cli.served import HEAD, Extender, status_of

EVENTS = [
    {
        "agoSeconds": 52,
        "wall": "2026-11-22T06:00:00Z",
        "kind": "closed",
        "gate": "base",
        "node": "gpu-11",
        "evidence": "a",
    },
    {
        "agoSeconds": 61,
        "wall": "2026-11-22T05:59:51Z",
        "kind": "storm",
        "gate": "dns",
        "note": "41 nodes\u202e at \x1bonce",
    },
    {"agoSeconds": 70, "wall": "2026-11-22T05:59:42Z", "kind": "held", "gate": "dns", "node": "w-1", "heldBy": "cap"},
    {"agoSeconds": 9000, "wall": "2026-11-22T03:30:52Z", "kind": "opened", "gate": "base", "node": "w-1"},
    {"agoSeconds": 9001, "wall": "2026-11-22T03:30:51Z", "kind": "a later word", "gate": "base", "node": "w-1"},
]


def run(capsys, *arguments):
    code = main(list(arguments))
    written = capsys.readouterr()
    return code, written.out, written.err


PAGE = """\
5 changes in the 1d1h that the extender remembers.
12 older changes were dropped.

  AGO  CHANGE        NODE    GATE  CAUSE
  52s  closed        gpu-11  base  a
 1m1s  storm begins  -       dns   41 nodes at once
1m10s  held by cap   w-1     dns   -
2h30m  opened        w-1     base  -
2h30m  a later word  w-1     base  -
"""


@pytest.fixture
def remembered(cluster):
    """Two extenders. The second has the longer memory."""
    cluster.extenders = [
        Extender("e-1", history={"events": [], "sinceStartSeconds": 5.0}, impact={"gates": []}),
        Extender("e-2", history={"events": EVENTS, "forgotten": 12}),
    ]
    return cluster.extenders


@pytest.mark.usefixtures("remembered")
def test_the_longest_memory_is_shown(capsys):
    assert (0, PAGE, "") == run(capsys, "history")


@pytest.mark.parametrize(
    ("options", "query"),
    [
        pytest.param((), "limit=50", id="the newest fifty"),
        pytest.param(("--node", "w-1"), "limit=50&node=w-1", id="of a node"),
        pytest.param(("--gate", "dns", "--limit", "7"), "limit=7&gate=dns", id="seven of a gate"),
    ],
)
@pytest.mark.usefixtures("remembered")
def test_filters_are_part_of_the_query(capsys, cluster, options, query):
    assert 0 == run(capsys, "history", *options)[0]
    asked = {query for extender in cluster.extenders for query in extender.queries}
    assert {query} == asked


@pytest.mark.parametrize(
    ("events", "more", "expected"),
    [
        pytest.param(EVENTS[:2], "17", "The newest 2 changes{}; there are more.", id="more than were asked for"),
        pytest.param(EVENTS[:1], "17", "The newest change{}; there are more.", id="one of more"),
        pytest.param(EVENTS[:2], "", "2 changes{}.", id="all of them"),
    ],
)
def test_the_headline_shows_whether_there_are_more_changes(capsys, cluster, events, more, expected):
    cluster.extenders = [Extender("e-1", history={"events": events, "continue": more})]
    first = run(capsys, "history", "--gate", "dns")[1].splitlines()[0]
    assert expected.format(" of gate dns in the 1d1h that the extender remembers") == first


@pytest.mark.parametrize(("option", "name"), [("node", "N 1"), ("gate", "a.b")])
@pytest.mark.usefixtures("remembered")
def test_an_invalid_name_is_wrong_usage(capsys, option, name):
    code, out, err = run(capsys, "history", f"--{option}", name)
    assert (2, "", f"readygate history: --{option} {name} is not a valid {option} name\n") == (code, out, err)


@pytest.mark.usefixtures("remembered")
def test_json_has_the_history(capsys):
    document = json.loads(run(capsys, "history", "-o", "json")[1])
    assert ("e-2", 12, 5) == (document["replica"], document["forgotten"], len(document["events"]))


def watched(cluster, monkeypatch, capsys, *later):
    """What a pipe gets while the history changes to each of `later`."""
    answers = iter([None, *later])
    real = history.view

    def view(queries, arguments):
        events = next(answers, KeyboardInterrupt)
        if events is KeyboardInterrupt:
            raise events
        if events is not None:
            cluster.extenders[-1].answers["history"] = {**HEAD, "events": events}
        return real(queries, arguments)

    monkeypatch.setattr(history, "view", view)
    monkeypatch.setattr(terminal, "watch", functools.partial(terminal.watch, every_s=0.0))
    assert main(["history", "--watch"]) == 130
    return [line[9:] for line in capsys.readouterr().out.splitlines()]


def test_a_watch_writes_each_new_change_once_in_order(cluster, monkeypatch, capsys):
    """In a storm all nodes change at once."""
    cluster.extenders = [Extender("e-1", history={"events": EVENTS[3:]})]
    expected = [
        "w-1 opened (gate base): -",
        "w-1 held by cap (gate dns): -",
        "- storm begins (gate dns): 41 nodes at once",
        "gpu-11 closed (gate base): a",
    ]
    assert expected == watched(cluster, monkeypatch, capsys, EVENTS, EVENTS)


def test_a_watch_reports_missing_changes(cluster, monkeypatch, capsys):
    """As after a restart of the extender, or if more changes came than one answer holds."""
    cluster.extenders = [Extender("e-1", history={"events": EVENTS[3:]})]
    assert watched(cluster, monkeypatch, capsys, EVENTS[:2])[1:] == [
        "changes in between are missing",
        "- storm begins (gate dns): 41 nodes at once",
        "gpu-11 closed (gate base): a",
    ]


@pytest.mark.parametrize("limit", ["0", "1001", "-1"])
@pytest.mark.usefixtures("remembered")
def test_an_invalid_limit_is_wrong_usage(capsys, limit):
    code, out, err = run(capsys, "history", "--limit", limit)
    assert (2, "", f"readygate history: --limit is {limit}, allowed: 1 to 1000\n") == (code, out, err)


@pytest.mark.parametrize("command", ["history", "impact"])
def test_without_an_answer_the_result_is_unknown(capsys, cluster, command):
    cluster.extenders = [Extender("e-1", **{command: status_of(503, "ServiceUnavailable", "refused")})]
    code, out, err = run(capsys, command)
    assert (3, "", 1) == (code, out, len(err.splitlines()))


# Impact

DNS = {
    "gate": "dns",
    "armed": False,
    "sinceSeconds": 183_600.0,
    "wouldClose": 5,
    "wouldCloseMost": 11,
    "wouldRefuse": 300,
    "wouldRefuseCalls": 112,
    "pods": 37,
    "capHits": 1,
}
QUIET = {"gate": "ceph", "armed": False, "sinceSeconds": 60.0}
ARMED = {
    "gate": "base",
    "sinceSeconds": 60.0,
    "wouldCloseMost": 3,
    "wouldRefuseCalls": 4,
    "pods": 2,
    "podsAtLeast": True,
}


@pytest.mark.parametrize(
    ("gates", "code", "expected"),
    [
        pytest.param([], 3, "No extender reports any gate.", id="nothing is decided yet"),
        pytest.param([ARMED], 0, "Every gate is armed: nothing is in shadow.", id="armed"),
        pytest.param(
            [QUIET], 0, "If armed, gate ceph would have closed nothing since 1m.", id="it would have done nothing"
        ),
        pytest.param(
            [DNS],
            1,
            "If armed, gate dns would close 5 nodes now, 11 at most at once since 2d3h, and would have refused nodes "
            "in 112 calls for 37 pods.",
            id="it would have closed nodes",
        ),
    ],
)
def test_impact_shows_what_a_gate_in_shadow_would_have_done(capsys, cluster, monkeypatch, gates, code, expected):
    monkeypatch.setenv("COLUMNS", "160")
    cluster.extenders = [Extender("e-1", impact={"gates": gates})]
    found, out, err = run(capsys, "impact")
    assert (code, expected, "") == (found, out.splitlines()[0], err)


def test_without_verdicts_it_is_unknown_whether_arming_is_safe(capsys, cluster):
    cluster.extenders = [Extender("e-1", impact={"gates": [QUIET], "notAnswering": "no word for 130 s"})]
    code, out, _ = run(capsys, "impact")
    first = "The extender gives no verdicts: no word for 130 s. It is unknown whether arming is safe."
    assert (3, first) == (code, out.splitlines()[0])


def test_impact_is_a_table_of_gates(capsys, cluster):
    cluster.extenders = [Extender("e-1", impact={"gates": [ARMED]}), Extender("e-2", impact={"gates": [QUIET, ARMED]})]
    cluster.extenders[1].answers["impact"]["gates"] = [QUIET, {**ARMED, "wouldRefuseCalls": 5}]
    expected = """\
If armed, gate ceph would have closed nothing since 1m.

GATE  STATE   SINCE  CLOSED NOW  MAX  REFUSED CALLS  PODS  CAP  STORMS
ceph  shadow     1m           0    0              0     0    0       0
base  armed      1m           0    3              5    2+    0       0

nodes: readygate status; timeline: readygate history
"""
    assert (0, expected, "") == run(capsys, "impact")


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        pytest.param(
            60,
            """\
gate ceph   state shadow   since 1m   closed now 0   max 0
refused calls 0   pods 0   cap 0   storms 0
gate base   state armed   since 1m   closed now 0   max 3
refused calls 4   pods 2+   cap 0   storms 0
""",
            id="60: each number keeps its name",
        ),
        pytest.param(
            80,
            """\
GATE  STATE   SINCE  CLOSED NOW  MAX  REFUSED CALLS  PODS  CAP  STORMS
ceph  shadow     1m           0    0              0     0    0       0
base  armed      1m           0    3              4    2+    0       0
""",
            id="80",
        ),
    ],
)
def test_impact_fits_a_narrow_terminal(capsys, cluster, monkeypatch, columns, expected):
    monkeypatch.setenv("COLUMNS", str(columns))
    cluster.extenders = [Extender("e-1", impact={"gates": [QUIET, ARMED]})]
    assert expected in run(capsys, "impact")[1]


@pytest.mark.parametrize("command", ["history", "impact"])
@pytest.mark.parametrize("columns", [40, 60, 80])
def test_no_line_is_wider_than_the_terminal(capsys, cluster, monkeypatch, command, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    words = "a check's long message about devices " * 4
    event = {**EVENTS[0], "evidence": words}
    cluster.extenders = [Extender("e-1", history={"events": [event]}, impact={"gates": [DNS, QUIET, ARMED]})]
    assert [line for line in run(capsys, command)[1].splitlines() if len(line) > columns] == []
