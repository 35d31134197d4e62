"""The bench of faults, but for its hosts: what is tried, how rounds become figures, and figures the table."""

import os
import subprocess
import threading
from dataclasses import replace
from unittest.mock import Mock

import msgspec
import pytest
import yaml

from agent import settings
from agent.checks.catalogue import check_spec
from tools.bench.faults import cost, plan, rival
from tools.bench.faults.results import figures, table, tried
from tools.bench.faults.rival import Told
from tools.bench.faults.rounds import Player, Round, Together, script
from tools.bench.faults.words import AGENT, EXTENDER, KUBELET, Word, Words, around, stood_unready
from tools.faults.fault import alone
from tools.faults.registry import FAULTS
from tools.kit.whole import end_marked
from tools.testbed.hosts.errors import HostsError

ADDRESSES = {"control-1": "10.99.0.11", "worker-1": "10.99.0.21", "worker-2": "10.99.0.22"}
WORKERS = ["worker-1", "worker-2"]
GOOD = Round("disk-full", "filesystem", "fast", "worker-1", 3.0, "node(s) reported unhealthy", 3.5, False, 1.0, 1.5)
EVENT = replace(GOOD, fault="log-shutdown", check="kernelLog", closed_s=0.2)
ROUTE = replace(GOOD, fault="default-route-gone", check="servicePath", closed_s=1.2)
FILE = replace(GOOD, fault="cni-gone", check="cni", closed_s=1.3)
BEGAN, HEALED = 100.0, 103.0
MARK_VARIABLE = "READYGATE_FAULT_LINES"
READY, NOT_READY = (Word(0.0, KUBELET, status, "Kubelet") for status in ("True", "False"))
BAD = replace(GOOD, fault="gpu-missing", check="gpu", closed_s=None, refused_s=None, opened_s=None, bound_s=None)


@pytest.mark.parametrize("given", plan.checks(ADDRESSES), ids=lambda given: given["name"])
def test_the_agent_takes_each_check_of_the_plan(given):
    assert given["name"] == check_spec(msgspec.convert(given, settings.Check)).name


def test_each_fault_of_the_plan_has_a_check_that_watches_for_it():
    watched = {kind for check in plan.checks(ADDRESSES) for kind in check} | {"cni", plan.KUBELET}
    assert {fault.check for fault in plan.TRIED.values()} <= watched


def test_a_fault_that_is_played_on_a_copy_is_watched_for_on_that_copy():
    """Each other setting of the fault's own check may differ: a host of ring 3 is watched from a container, too."""
    checks = plan.checks(ADDRESSES)
    for fault in (FAULTS[name] for name in plan.TRIED if name in FAULTS):
        own = yaml.safe_load(fault.settings)
        for key in {"proc", "folder", "sysfs"} & set(own):
            look = set(own.get("look", ()))
            watching = [one for given in checks if look <= set((one := given.get(fault.check, {})).get("look", ()))]
            assert f"/host{own[key]}" in [one.get(key) for one in watching], fault.name


def test_what_the_kernel_tells_is_of_faults_that_are_tried():
    assert set(plan.NEWS) <= set(plan.TRIED)


def test_in_a_round_each_worker_has_each_fault_once_and_the_control_plane_only_what_it_can_bear():
    turns = plan.often(plan.TRIED, WORKERS, "control-1", 0)
    alone = {*plan.EVERYWHERE, *plan.SLOW}
    for worker in WORKERS:
        had = [turn[worker] for turn in turns if worker in turn and turn[worker] not in plan.SLOW]
        assert sorted(had) == sorted(set(plan.TRIED) - set(plan.SLOW))
    assert {turn["control-1"] for turn in turns if "control-1" in turn} <= {*plan.HARMLESS, *plan.EVERYWHERE}
    assert [1] * len(alone) == [len(set(turn.values())) for turn in turns if alone & set(turn.values())]
    assert [["worker-1"], ["worker-2"]] == [
        [*plan.often(plan.SLOW, WORKERS, "control-1", number)[0]] for number in (0, 1)
    ]


def test_no_two_nodes_have_the_same_usual_fault_at_once_where_there_are_many():
    usual = [turn for turn in plan.often(plan.TRIED, WORKERS, "control-1", 0) if len(set(turn.values())) > 1]
    assert all(turn["worker-1"] != turn["worker-2"] for turn in usual)


def test_played_once_each_fault_is_on_one_node_but_for_the_kernel_s_log():
    turns = plan.once(plan.TRIED, WORKERS, "control-1")
    had = [name for turn in turns for name in set(turn.values())]
    assert sorted(had) == sorted(plan.TRIED)
    assert {turn["control-1"] for turn in turns if "control-1" in turn} <= {*plan.HARMLESS, *plan.EVERYWHERE}


def test_what_nodes_have_in_common_is_done_once_and_told_to_all():
    together, called, told = Together(2, 5.0), [], []

    def call():
        called.append(True)
        return 1.0, 2.0

    threads = [threading.Thread(target=lambda: told.append(together.once("inject", call))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    together.leave()  # one is gone: the other heals without it
    assert (1.0, 2.0) == together.once("heal", call)
    assert ([True, True], [(1.0, 2.0)] * 2) == (called, told)


@pytest.mark.parametrize(
    ("lines", "code", "said"),
    [
        pytest.param(("true", "true"), 0, 2, id="two times, of before and after"),
        pytest.param(("false", "echo no"), 1, 2, id="what fails ends it, and is the exit code"),
        pytest.param(("sleep 90 > /dev/null 2>&1 &", "true"), 0, 2, id="what runs on is not waited for"),
    ],
)
def test_the_lines_of_a_fault_say_when_they_began_and_ended(lines, code, said):
    mark = f"{os.getpid()}-{len(lines[0])}"
    environ = {**os.environ, MARK_VARIABLE: mark}
    try:
        done = subprocess.run(
            ["sh", "-c", script(lines)], capture_output=True, text=True, timeout=60, check=False, env=environ
        )
    finally:
        end_marked(mark, variable=MARK_VARIABLE)
    assert (code, said) == (done.returncode, len(done.stdout.split()))


def test_polled_faults_and_those_the_kernel_tells_are_kept_apart():
    rounds = [GOOD, replace(GOOD, closed_s=5.0), EVENT, ROUTE, FILE, BAD]
    found = {each.name: each.value for each in figures(rounds, [8.5], {"default": (30, 9), "fast": (31, 45)}, [24.5])}
    assert {
        "fault_rounds": 6,
        "fault_gate_p50_s": 3.0,
        "fault_gate_p99_s": 5.0,
        "fault_gate_event_p50_s": 1.2,
        "fault_gate_event_p99_s": 1.3,
        "fault_gate_kmsg_p99_s": 0.2,
        "fault_gate_netlink_p99_s": 1.2,
        "fault_gate_inotify_p99_s": 1.3,
        "heal_bound_p99_s": 1.5,
        "dead_node_gate_p99_s": 8.5,
        "dead_node_lease_gate_p99_s": 24.5,
        "agent_node_rss_mib": 30,
        "agent_node_cpu_m": 9,
        "agent_node_fast_cpu_m": 45,
        "fault_fast_gpu_gpu_missing_rounds": 1,
    }.items() <= found.items()
    assert "fault_fast_gpu_gpu_missing_gate_p50_s" not in found


@pytest.mark.parametrize(("counted", "at_least_m"), [("$(date +%s%N)", 500), ("[not set]", 0)])
def test_memory_is_of_all_processes_of_the_unit(tmp_path, counted, at_least_m):
    """On a copy of /proc: a process of another control group does not count, nor one that has just been started and
    is still its parent's program. What a unit is comes from a systemctl of ours."""
    for pid, group, words, mib in ((7, "a", "agent", 40), (8, "a", "df", 2), (9, "a", "agent", 40), (10, "b", "sh", 9)):
        folder = tmp_path / "proc" / str(pid)
        folder.mkdir(parents=True)
        (folder / "cgroup").write_text(f"0::/{group}\n")
        (folder / "cmdline").write_text(words)
        (folder / "smaps_rollup").write_text(f"header\nRss: 99999999 kB\nPss: {mib * 1024} kB\n")
        (folder / "stat").write_text(f"{pid} (a) b) S {' '.join(['1'] * 20)}\n")
    systemctl = tmp_path / "systemctl"
    systemctl.write_text(f'#!/bin/sh\ncase $* in *MainPID*) echo 7;; *) echo "{counted}";; esac\n')
    systemctl.chmod(0o755)
    path = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    line = ["sh", "-c", cost.command("readygate-node.service", 0.3, str(tmp_path / "proc"))]
    mib, spent_m = cost.read(subprocess.run(line, env=path, capture_output=True, text=True, check=True).stdout)
    assert (42.0, True) == (mib, spent_m >= at_least_m)


def test_when_all_is_taken_back_no_thread_injects_anything_more():
    hosts = Mock(names=["worker-1"])
    hosts.ssh.return_value.stdout = "1.5\n2.5\n"
    fault = plan.TRIED["disk-full"]
    player = Player(hosts, Mock(), Mock(), {fault.name: fault})
    assert (1.5, 2.5) == player.inject("worker-1", fault)
    player.heal_all(["worker-1"], print)
    with pytest.raises(HostsError, match="this is the end"):
        player.inject("worker-1", fault)
    assert [alone(script(fault.inject)), alone(player.healing())] == [call.args[1] for call in hosts.ssh.call_args_list]


def test_a_round_that_let_a_pod_in_is_not_whole():
    assert (True, False, False) == (GOOD.whole, replace(GOOD, landed=True).whole, BAD.whole)


def test_the_table_has_a_row_for_each_fault_that_was_tried():
    values = {each.name: each.value for each in figures([GOOD, BAD], [], {})}
    faults = {name: (fault.check, fault.what) for name, fault in plan.TRIED.items()}
    assert [
        "| [`filesystem`](#filesystem) | not a byte is left | 1 | 3.0, 3.0 | 1.5, 1.5 |",
        "| [`gpu`](#gpu) | two accelerators are expected, the machine has none | 1 | -, - | -, - |".replace(
            "-, -", "-"
        ),
    ] == table(values, faults).splitlines()[2:]


def test_which_faults_figures_are_of():
    """So what is recorded later takes the place of nothing."""
    rows = [{"name": each.name} for each in figures([GOOD, BAD], [], {})]
    assert ["fault_fast_filesystem_disk_full_", "fault_fast_gpu_gpu_missing_"] == tried(rows)


def test_the_rival_tells_what_is_new():
    before, now = {"event A": 1, "condition B": 1}, {"event A": 2, "condition B": 1, "condition C": 1}
    assert ["condition C", "event A"] == rival.new(before, now)


def test_the_comparison_says_not_of_what_was_not_seen():
    (row,) = rival.table([Told("disk-full", "filesystem", 3.04, None, "", 1.0, None)]).splitlines()[2:]
    assert row == "| not a byte is left | 3.0 | 1.0 | not | - |"


def test_the_document_has_the_table_of_what_is_saved():
    document = rival.DOCUMENT.read_text()
    assert rival.saved()
    assert document == rival.filled(document)


@pytest.mark.parametrize(
    ("heard", "expected"),
    [
        pytest.param([], False, id="nobody has said anything"),
        pytest.param([READY], False, id="it calls the node ready all the time"),
        pytest.param([READY, NOT_READY._replace(at=101.0)], True, id="not ready when it is healed"),
        pytest.param([READY, NOT_READY._replace(at=104.0)], True, id="not ready after it: it had looked before"),
        pytest.param(
            [READY, NOT_READY._replace(at=101.0), READY._replace(at=102.5)], False, id="it has taken that back by then"
        ),
        pytest.param([READY, Word(101.0, AGENT, "False"), Word(101.1, EXTENDER, "closed")], False, id="others alone"),
    ],
)
def test_whether_kubernetes_itself_keeps_pods_off_a_node_that_is_healed(heard, expected):
    assert expected == stood_unready(around(heard, BEGAN, HEALED))


def test_words_around_a_fault_begin_with_what_stood_and_say_how_long_it_was_healed():
    heard = [Word(50.0, AGENT, "False"), READY._replace(at=90.0), Word(98.0, AGENT, "True"), Word(104.0, AGENT, "")]
    assert ["-13.00 kubelet True(Kubelet)", "-5.00 agent True", "+1.00 agent open"] == [
        str(word) for word in around(heard, BEGAN, HEALED)
    ]


def test_the_same_word_is_heard_once():
    words = Words(Mock())
    for status in ("True", "True", "False", "True"):
        words.hear("worker-1", KUBELET, status)
    assert ["True", "False", "True"] == [word.status for word in words.of("worker-1")]


def test_what_waits_for_the_kubelet_is_told_apart():
    late = replace(GOOD, bound_s=11.0, opened_s=10.5, words=(NOT_READY._replace(at=-1.0),))
    found = {each.name: each.value for each in figures([GOOD, late], [], {})}
    assert {
        "heal_bound_p99_s": 11.0,
        "heal_bound_ready_p99_s": 1.5,
        "heal_bound_unready_p99_s": 11.0,
        "heal_open_bound_p99_s": 0.5,
    }.items() <= found.items()
