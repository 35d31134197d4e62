"""`readygate why pod`: each first sentence, the page at three widths, what nobody can know."""

import shlex

import msgspec
import pytest

from cli.__main__ import parser
from cli.layout import text_of
from cli.pages import pod as drawn
from extender.policy.reasons import CLOSED_NODE_LOST, CLOSED_UNHEALTHY
from extender.web.report import CapTold, DecisionTold, GatesTold, OrderTold
from tests.cli.blaming import (
    EARLIER,
    FIVE,
    LAST,
    MESSAGE,
    NODES,
    NOT_OURS,
    ONE,
    ONE_OPEN,
    TWO,
    attempt,
    blamed,
    closed,
    node,
    pod,
    refused,
    told,
)


def at(width, blame, problems=()):
    return text_of(drawn.page(blame, width, problems=problems))


AT_60 = """\
train-7 has been Pending for 4m12s. Two nodes would take it
now; readygate keeps it off both.

  gpu-03  closed for pods that request nvidia.com/gpu 4m31s:
          gpu-count: "7 of 8 devices"
          opens when check gpu-count passes
  gpu-11  closed for every pod 28s: its kubelet has been
          silent for 52s
          opens when its Lease moves

The other 10 are not ours: 7 Insufficient nvidia.com/gpu, 3
  didn't match Pod's node affinity/selector (kube-scheduler,
  8s ago)
No cap, pause or storm is in force.
41 of 41 scheduler calls for this pod were answered.

  look closer: readygate why node gpu-03
  open it anyway: readygate exempt --gate gpu --node gpu-03
    --for 1h --reason WHY
"""
AT_80 = """\
train-7 has been Pending for 4m12s. Two nodes would take it now; readygate keeps
it off both.

  gpu-03  closed for pods that request nvidia.com/gpu 4m31s: gpu-count: "7 of 8
          devices"
          opens when check gpu-count passes
  gpu-11  closed for every pod 28s: its kubelet has been silent for 52s
          opens when its Lease moves

The other 10 are not ours: 7 Insufficient nvidia.com/gpu, 3 didn't match Pod's
  node affinity/selector (kube-scheduler, 8s ago)
No cap, pause or storm is in force.
41 of 41 scheduler calls for this pod were answered.

  look closer: readygate why node gpu-03
  open it anyway: readygate exempt --gate gpu --node gpu-03 --for 1h --reason
    WHY
"""
AT_120 = """\
train-7 has been Pending for 4m12s. Two nodes would take it now; readygate keeps it off both.

  gpu-03  closed for pods that request nvidia.com/gpu 4m31s: gpu-count: "7 of 8 devices"
          opens when check gpu-count passes
  gpu-11  closed for every pod 28s: its kubelet has been silent for 52s
          opens when its Lease moves

The other 10 are not ours: 7 Insufficient nvidia.com/gpu, 3 didn't match Pod's node affinity/selector (kube-scheduler,
  8s ago)
No cap, pause or storm is in force.
41 of 41 scheduler calls for this pod were answered.

  look closer: readygate why node gpu-03
  open it anyway: readygate exempt --gate gpu --node gpu-03 --for 1h --reason WHY
"""


@pytest.mark.parametrize(("width", "expected"), [(60, AT_60), (80, AT_80), (120, AT_120)])
def test_the_page(width, expected):
    assert expected == at(width, blamed(pod(MESSAGE), told(LAST)))


NOTHING = "readygate has nothing to do with it: no node it closed would have taken this pod."
WAITED = "train-7 has been Pending for 4m12s."


@pytest.mark.parametrize(
    ("seen", "answers", "code", "expected"),
    [
        # Ours
        pytest.param(
            pod(MESSAGE),
            [told(attempt(ONE))],
            1,
            f"{WAITED} One node would take it now; readygate keeps it off.",
            id="one node",
        ),
        pytest.param(
            pod(MESSAGE),
            [told(attempt(*FIVE))],
            1,
            f"{WAITED} Five nodes would take it now; readygate keeps it off all of them.",
            id="five nodes",
        ),
        pytest.param(
            pod(MESSAGE),
            [told(attempt(ONE, TWO, complete=False))],
            1,
            f"{WAITED} At least two nodes would take it now; readygate keeps it off both.",
            id="kube-scheduler asked about a sample of the nodes",
        ),
        pytest.param(
            pod(MESSAGE),
            [told(attempt(ONE_OPEN, TWO))],
            1,
            f"{WAITED} One node would take it now; readygate keeps it off.",
            id="one of two has opened since",
        ),
        pytest.param(
            pod(""),
            [told(attempt(ONE, ago_seconds=0.1))],
            1,
            f"{WAITED} One node would take it now; readygate keeps it off.",
            id="the scheduler has not written yet",
        ),
        pytest.param(
            pod(NOT_OURS, said_s=60),
            [told(attempt(ONE, ago_seconds=0.1))],
            1,
            f"{WAITED} One node would take it now; readygate keeps it off.",
            id="what the scheduler wrote is of an attempt before",
        ),
        pytest.param(
            pod(MESSAGE),
            [told(), told(LAST), told(EARLIER)],
            1,
            f"{WAITED} Two nodes would take it now; readygate keeps it off both.",
            id="the replica speaks that was asked last",
        ),
        # Not ours
        pytest.param(pod(NOT_OURS), [told()], 0, NOTHING, id="its own filters pass no node, so we are not asked"),
        pytest.param(pod(NOT_OURS), [told(EARLIER)], 0, NOTHING, id="we refused it before, and are asked no more"),
        pytest.param(pod(MESSAGE), [told(attempt(passed=3))], 0, NOTHING, id="we let it through everywhere"),
        pytest.param(
            pod('0/3 nodes are available: persistentvolumeclaim "x" not found.'),
            [told()],
            0,
            NOTHING,
            id="a plugin that looked at the pod alone",
        ),
        pytest.param(
            pod(MESSAGE),
            [told(attempt(exempt="label readygate.dev/exempt"))],
            0,
            "readygate has nothing to do with it: it is exempt (label readygate.dev/exempt) and never refused a node.",
            id="exempt",
        ),
        pytest.param(
            pod(""),
            [told(attempt(ONE, TWO, passed=1))],
            0,
            "readygate does not hold it: 1 node that would take it was let through; two were not.",
            id="some nodes were let through",
        ),
        pytest.param(
            pod(MESSAGE),
            [told(msgspec.structs.replace(attempt(ONE_OPEN), refused_count=700, open_count=700))],
            0,
            f"{WAITED} 700 nodes would take it now; readygate has opened them since: kube-scheduler tries it again.",
            id="more than one page of nodes has opened",
        ),
        pytest.param(
            pod(MESSAGE),
            [told(attempt(ONE_OPEN))],
            0,
            f"{WAITED} One node would take it now; readygate has opened it since: kube-scheduler tries it again.",
            id="all have opened since",
        ),
        # Not Pending
        pytest.param(
            pod(node="w-014", bound_s=63, phase="Running"),
            [told(LAST)],
            0,
            "It is not Pending: it runs on w-014, bound 3s before w-014 closed.",
            id="bound before its node closed",
        ),
        pytest.param(
            pod(node="w-014", bound_s=20, phase="Running"),
            [told(LAST)],
            0,
            "It is not Pending: it runs on w-014, bound 40s after w-014 closed: exempt, or placed unfiltered.",
            id="bound after its node closed",
        ),
        pytest.param(
            pod(node="w-001", bound_s=20, phase="Running"),
            [told(LAST)],
            0,
            "It is not Pending: it runs on w-001, bound 20s ago; w-001 is open.",
            id="bound to an open node",
        ),
        pytest.param(
            pod(node="w-999", bound_s=20, phase="Running"),
            [],
            0,
            "It is not Pending: it runs on w-999, bound 20s ago.",
            id="bound, and no extender answers",
        ),
        pytest.param(
            pod(node="w-014", bound_s=63),
            [told(LAST)],
            0,
            "It waits for no node: it is placed on w-014 and has not started there, bound 3s before w-014 closed.",
            id="bound, and called Pending until it starts, as where the kubelet is dead",
        ),
        pytest.param(
            pod(node="w-999", phase="Running"), [], 0, "It is not Pending: it runs on w-999.", id="a static pod"
        ),
        pytest.param(
            pod(node="w-014", phase="Succeeded"),
            [],
            0,
            "It is not Pending: it has finished (Succeeded) on w-014.",
            id="finished",
        ),
        pytest.param(pod(MESSAGE, deleted=True), [], 0, "It waits no more: it is being deleted.", id="being deleted"),
        # Not asked
        pytest.param(
            pod("", schedulingGates=[{"name": "example.com/quota"}]),
            [told()],
            0,
            "kube-scheduler has not asked us about it: it waits for example.com/quota, scheduling gates of its own.",
            id="scheduling gates of its own",
        ),
        pytest.param(
            pod(""),
            [told()],
            0,
            "kube-scheduler has not asked us about it: it has not tried to place it yet.",
            id="not tried yet",
        ),
        pytest.param(
            pod("", schedulerName="batch"),
            [told()],
            0,
            "kube-scheduler has not asked us about it: scheduler batch has not tried to place it yet.",
            id="another scheduler that has not tried",
        ),
        pytest.param(
            pod(MESSAGE),
            [told(LAST, uid="u-0"), told(attempts=0, uid="")],
            3,
            "Nobody can know which nodes: kube-scheduler names our reasons for 2, but what they remember begins 1d1h "
            "ago.",
            id="what is remembered is of an earlier pod of the name",
        ),
        # Nobody can know
        pytest.param(
            pod(MESSAGE),
            [told(not_answering="no word from the API server for 130 s")],
            3,
            "We are blind: no word from the API server for 130 s; pods are placed unfiltered (protect) or wait for us "
            "(enforce).",
            id="blind",
        ),
        pytest.param(pod(MESSAGE), [], 3, "Nobody can know: no extender answers.", id="no extender answers"),
    ],
)
def test_the_first_sentence_is_the_answer(seen, answers, code, expected):
    nodes = {
        **NODES,
        "w-014": node("w-014", closed("base", CLOSED_UNHEALTHY, 60.0, "")),
        "w-001": node("w-001", DecisionTold("base")),
    }
    found = blamed(seen, *answers, nodes=nodes)
    assert (code, expected) == (found.code, found.first)


def test_an_extender_that_does_not_answer_may_be_the_one_that_was_asked():
    found = blamed(pod(MESSAGE), told(), problems=["e-1 is silent; look at its log"])
    expected = "Nobody can know which nodes: kube-scheduler names our reasons for 2, but 1 extender did not answer."
    assert (3, expected) == (found.code, found.first)
    assert "! e-1 is silent; look at its log\n" in at(80, found, problems=("e-1 is silent; look at its log",))


def shown(blame):
    return at(120, blame).partition("\n\n")[2]


@pytest.mark.parametrize(
    ("seen", "answers", "expected"),
    [
        pytest.param(
            pod(NOT_OURS),
            [told()],
            "What keeps it off: 7 Insufficient nvidia.com/gpu, 3 didn't match Pod's node affinity/selector, 2 "
            "Insufficient cpu\n  (kube-scheduler, 8s ago)\n",
            id="not ours: what it is",
        ),
        pytest.param(
            pod('0/3 nodes are available: persistentvolumeclaim "x" not found.'),
            [told()],
            'What keeps it off: persistentvolumeclaim "x" not found (kube-scheduler, 8s ago)\n',
            id="not ours: in words, not in numbers",
        ),
        pytest.param(
            pod(NOT_OURS),
            [told(attempt(shadow=(refused("a", "dns", "r"), refused("b", "dns", "r")), shadow_count=2))],
            "What keeps it off: 7 Insufficient nvidia.com/gpu, 3 didn't match Pod's node affinity/selector, 2 "
            "Insufficient cpu\n  (kube-scheduler, 8s ago)\n"
            "Gate dns is in shadow: armed, it would have kept it off 2 nodes.\n"
            "No cap, pause or storm is in force.\n"
            "41 of 41 scheduler calls for this pod were answered.\n",
            id="shadow",
        ),
        pytest.param(
            pod(NOT_OURS),
            [told(attempts=3, unanswered=2, unanswered_why="caches not synced")],
            "What keeps it off: 7 Insufficient nvidia.com/gpu, 3 didn't match Pod's node affinity/selector, 2 "
            "Insufficient cpu\n  (kube-scheduler, 8s ago)\n"
            "3 of 5 scheduler calls for this pod were answered (the last time: caches not synced).\n",
            id="calls that were not answered",
        ),
    ],
)
def test_what_is_said_beside_it(seen, answers, expected):
    assert expected == shown(blamed(seen, *answers))


def test_other_gates_that_close_a_node_and_orders_in_force_are_named():
    both = {"gpu-03": node("gpu-03", NODES["gpu-03"].node.gates[0], closed("dns", CLOSED_UNHEALTHY, 5.0, "x"))}
    gates = GatesTold(not_answering="", orders=(OrderTold("a", "pause", author="ana"),), cap=CapTold(3, 3, 2))
    text = at(120, blamed(pod(MESSAGE), told(attempt(ONE)), nodes=both, gates=gates))
    assert "          also closed by gate dns\n" in text
    assert "In force: the cap holds 2 open; pause by ana.\n" in text


def test_ten_nodes_are_shown_of_many():
    many = [refused(f"a-node-with-a-name-of-{number:03}", "base", CLOSED_NODE_LOST) for number in range(400)]
    text = at(60, blamed(pod(MESSAGE), told(attempt(*many)), nodes={}))
    assert (True, 10) == ("  ... and 390 more\n" in text, text.count("\n  a-node-with-a-name-of-0"))
    assert [line for line in text.splitlines() if len(line) > 60] == []


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_hostile_text_stays_in_its_line(width):
    evil = "\x1b[2J\u202e" + "x" * 100_000 + "\n\nopens when never"
    nodes = {"gpu-03": node("gpu-03", closed("gpu", CLOSED_UNHEALTHY, 5.0, evil))}
    message = f"0/2 nodes are available: 1 {CLOSED_UNHEALTHY}, 1 {evil}."
    text = at(width, blamed(pod(message), told(attempt(ONE)), nodes=nodes))
    assert [line for line in text.splitlines() if len(line) > width or not line.isprintable()] == []
    assert len(text) < 3000


def test_what_it_advises_can_be_typed_as_it_stands():
    hints = [
        part.partition(": ")[2] for part in AT_120.splitlines() if part.startswith("  ") and ": readygate " in part
    ]
    assert [("why", "gpu-03"), ("exempt", "gpu-03")] == [
        ((typed := parser().parse_args(shlex.split(hint)[1:])).command, typed.node) for hint in hints
    ]


def test_a_name_that_a_shell_would_run_is_quoted():
    evil = refused("x;reboot", "gpu", CLOSED_UNHEALTHY)
    assert "why node 'x;reboot'\n" in at(120, blamed(pod(MESSAGE), told(attempt(evil)), nodes={}))
