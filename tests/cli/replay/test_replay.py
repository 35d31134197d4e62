"""Recordings are replayed with other configurations: what each closes, and where they differ."""

import io
import json

import msgspec
import pytest

from cli.__main__ import main
from cli.replay import capture
from cli.replay.differences import Difference, ReplayResult, Transition, differences, totals_of
from cli.replay.player import Player
from cli.replay.recording import RecordingError, head_of, lines_of, written
from extender import settings
from extender.cluster.observed import Lease
from extender.policy.reasons import CLOSED_NOT_READY
from kube.auth import Connection
from kube.client import Client
from tests.cli.replay import recordings
from tests.cli.replay.recordings import AT
from tools.fakes.anonymous import Anonymous

NO_LEASES = "heartbeat: {limitSeconds: 0}\n"
UNBRAKED = NO_LEASES + "cap: off\nstorm: off\n"
CAPPED = NO_LEASES + "storm: off\n"


def played(configuration, *lines):
    return Player(settings.parse(configuration), recordings.head()).play(lines)


def turned(configuration, *lines):
    """Without the first word on each node."""
    found = played(configuration, *lines).transitions
    return [(round(one.at - AT, 1), one.node, bool(one.reason), one.held_by) for one in found if one.at > AT + 1]


FOUR_FAIL = [
    *recordings.start(10),
    *(recordings.turns(10.0 * (i + 1), name, ready=False) for i, name in enumerate(recordings.names(4))),
]


@pytest.mark.parametrize(
    ("configuration", "expected"),
    [
        pytest.param(
            UNBRAKED,
            [(10.0, "n-00", True, ""), (20.0, "n-01", True, ""), (30.0, "n-02", True, ""), (40.0, "n-03", True, "")],
            id="without a cap all four close",
        ),
        pytest.param(
            CAPPED,
            [
                (10.0, "n-00", True, ""),
                (20.0, "n-01", True, ""),
                (30.0, "n-02", True, ""),
                (40.0, "n-03", False, "cap"),
            ],
            id="with the usual cap the fourth of ten is held open",
        ),
    ],
)
def test_a_configuration_closes_what_an_extender_would_have_closed(configuration, expected):
    assert expected == turned(configuration, *FOUR_FAIL, recordings.end(60))


def test_time_alone_closes_a_node_whose_pod_is_gone_after_the_grace():
    gone = recordings.line(10, "remove", recordings.PODS, recordings.pod("n-00", ready=True))
    assert [(10.0, "n-00", False, "grace"), (40.0, "n-00", True, "")] == turned(
        UNBRAKED, *recordings.start(3), gone, recordings.end(100)
    )


def lease(name, renewed_s, duration_s=40):
    """As its holder of the same name writes it. renewed_s: seconds after the recording began."""
    renewed = f"2026-09-21T14:{13 + (20 + renewed_s) // 60}:{(20 + renewed_s) % 60:02d}.000000Z"
    return {
        "metadata": {"name": name},
        "spec": {"renewTime": renewed, "leaseDurationSeconds": duration_s, "holderIdentity": name},
    }


@pytest.mark.parametrize(
    ("of", "every_s", "configuration", "between"),
    [
        # With the first word of the API server behind 24 s.
        pytest.param("leases", 10, "cap: off\nstorm: off\n", (24.0, 31.0), id="of a kubelet"),
        pytest.param(
            "leases of agents",
            3,
            "cap: off\nstorm: off\nheartbeat: {limitSeconds: 0, agents: {limitSeconds: 9}}\n",
            (9.0, 14.0),
            id="of an agent",
        ),
    ],
)
def test_a_lease_that_is_not_renewed_closes_its_node_at_its_age(of, every_s, configuration, between):
    first, *others = recordings.names(3)
    duration_s = 4 * every_s
    began = recordings.line(0, "replace", of, *(lease(name, 0, duration_s) for name in (first, *others)))
    beats = [
        recordings.line(after, "upsert", of, lease(name, after, duration_s))
        for after in range(every_s, 100, every_s)
        for name in others
    ]
    found = [one for one in turned(configuration, *recordings.start(3), began, *beats, recordings.end(100)) if one[2]]
    assert [(first, True)] == [(node, closed) for _, node, closed, _ in found]
    earliest, latest = between
    assert earliest <= found[0][0] <= latest


@pytest.mark.parametrize(
    ("heartbeat", "expected"),
    [
        pytest.param("{limitSeconds: 24}", ["leases"], id="of kubelets"),
        pytest.param("{limitSeconds: 0, agents: {}}", ["leases of agents"], id="of agents"),
        pytest.param("{limitSeconds: 24, agents: {}}", ["leases", "leases of agents"], id="of both"),
        pytest.param("{limitSeconds: 0}", [], id="of none"),
    ],
)
def test_only_the_leases_that_count_are_recorded(heartbeat, expected):
    tried = settings.parse(f"heartbeat: {heartbeat}")
    written_to = io.BytesIO()
    recorder = capture.Recorder(tried, written_to, lambda: AT)
    made = capture.watches(
        tried, recorder, Client(Connection("http://127.0.0.1:1", None, Anonymous()), user_agent="test")
    )
    for name in ("leases", "agents"):
        if name in made.caches:
            made.caches[name]._store.upsert(msgspec.convert(lease("n-00", 0), Lease))
    lines = list(lines_of(io.BytesIO(written_to.getvalue())))
    assert [(of, "n-00") for of in expected] == [
        (line.of, msgspec.json.decode(line.objects[0])["spec"]["holderIdentity"]) for line in lines
    ]


def test_orders_count_as_when_they_were_recorded():
    order = {
        "order": "hold",
        "scope": {"node": "n-02"},
        "author": "ana",
        "reason": "RMA",
        "created": "2026-09-01T00:00:00Z",
    }
    given = {"metadata": {"name": "readygate-orders"}, "data": {"a": json.dumps(order)}}
    lines = [*recordings.start(3), recordings.line(5, "replace", "orders", given), recordings.end(20)]
    assert [(5.0, "n-02", True, "hold")] == turned(UNBRAKED, *lines)


def test_a_gate_whose_pods_were_not_recorded_is_refused():
    other = NO_LEASES + "gates: [{name: dns, healthPods: {namespace: kube-system, labelSelector: k8s-app=dns}}]"
    with pytest.raises(RecordingError, match="it has no pods kube-system k8s-app=dns"):
        played(other, *recordings.start(3), recordings.end(10))


# ---- differences


def of(*turns, gate="health", ended=100.0):
    return ReplayResult(
        0.0, ended, tuple(Transition(at, gate, node, reason) for at, node, reason in turns), {gate: True}
    )


BAD = CLOSED_NOT_READY


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(of((1.0, "a", BAD)), of((1.0, "a", BAD)), [], id="the same"),
        pytest.param(of((1.0, "a", BAD)), of(), [Difference("health", "a", 1.0, None, BAD, "")], id="one never closes"),
        pytest.param(
            of((1.0, "a", BAD), (9.0, "a", "")),
            of((4.0, "a", BAD), (9.0, "a", "")),
            [Difference("health", "a", 1.0, 4.0, BAD, "")],
            id="one closes later",
        ),
        pytest.param(
            of((1.0, "a", BAD)),
            of((1.0, "a", BAD), gate="other"),
            [Difference("health", "a", 1.0, None, BAD, None), Difference("other", "a", 1.0, None, None, BAD)],
            id="another gate",
        ),
    ],
)
def test_differences_are_spans_of_time(before, after, expected):
    assert expected == differences(before, after)


def test_totals_count_closures_nodes_and_seconds():
    total = totals_of(of((1.0, "a", BAD), (2.0, "b", BAD), (11.0, "a", ""), (50.0, "a", BAD)))
    assert (3, 2, 10.0 + 98.0 + 50.0) == (total.closures, total.most_closed, total.closed_s)


def test_a_node_that_two_gates_close_counts_once():
    turns = (("a", "n", 1.0, BAD), ("b", "n", 2.0, BAD), ("a", "n", 3.0, ""), ("b", "m", 4.0, BAD))
    played = ReplayResult(0.0, 10.0, tuple(Transition(at, gate, node, said) for gate, node, at, said in turns), {})
    assert (3, 2) == (totals_of(played).closures, totals_of(played).most_closed)


# ---- the command


@pytest.fixture
def recording(tmp_path):
    return recordings.file_of(tmp_path / "recording", [*FOUR_FAIL, recordings.end(60)], CAPPED)


def test_the_command_shows_what_a_configuration_without_a_cap_would_have_done(recording, tmp_path, capsys):
    tried = tmp_path / "tried.yaml"
    tried.write_text(UNBRAKED)
    assert main(["replay", str(recording), "--config", str(tried), "-o", "json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert [("n-03", "", BAD)] == [(one["node"], one["before"], one["after"]) for one in told["differences"]]
    assert (3, 4) == (told["before"]["most_closed"], told["after"]["most_closed"])
    assert main(["replay", str(recording), "--config", str(tried)]) == 1
    shown = capsys.readouterr().out
    assert shown.startswith("1 difference at 1 node in 60 s of recording.\n")
    assert "open (cap" in shown


@pytest.mark.parametrize("columns", [40, 60, 80])
def test_no_line_is_wider_than_the_terminal(recording, tmp_path, capsys, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    (tmp_path / "tried.yaml").write_text(UNBRAKED)
    assert main(["replay", str(recording), "--config", str(tmp_path / "tried.yaml")]) == 1
    assert [line for line in capsys.readouterr().out.splitlines() if len(line) > columns] == []


def test_the_same_configuration_has_no_differences(recording, tmp_path, capsys):
    tried = tmp_path / "tried.yaml"
    tried.write_text(CAPPED)
    assert main(["replay", str(recording), "--config", str(tried)]) == 0
    assert capsys.readouterr().out.startswith("Nothing differs in 60 s of recording.\n")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "it is not a recording"),
        (b"{}\n", "it is not a recording"),
        (b'{"recording":1,"release":"\xff","at":0,"configuration":""}\n', "it is not a recording"),
        (b'{"recording":9,"release":"","at":0,"configuration":""}\n', "format 9"),
        (b'{"recording":1,"release":"","at":0,"configuration":"gates: 1"}\n', "the recorded configuration"),
        (b'{"recording":1,"release":"","at":0,"configuration":""}\nrubbish\n', "line 2"),
    ],
    ids=["empty", "no head", "a head that is no UTF-8", "another format", "a wrong configuration", "a wrong line"],
)
def test_another_file_than_a_recording_is_refused_in_one_line(tmp_path, capsys, content, expected):
    (tmp_path / "recording").write_bytes(content)
    (tmp_path / "c.yaml").write_text(UNBRAKED)
    assert main(["replay", str(tmp_path / "recording"), "--config", str(tmp_path / "c.yaml")]) == 2
    complaint = capsys.readouterr().err
    assert (1, True) == (complaint.count("\n"), expected in complaint)


def test_an_incomplete_last_line_is_ignored():
    whole = written(recordings.end(5))
    assert [recordings.end(5)] == list(lines_of([whole, whole[:10]]))
    assert head_of(written(recordings.head())) == recordings.head()
