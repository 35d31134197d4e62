"""`readygate why pod`: each first sentence, the page at three widths, unknown answers."""

import shlex

import msgspec
import pytest

from cli.__main__ import parser
from cli.shared.layout import text_of
from cli.why import pod_page
from extender.policy.reasons import CLOSED_NODE_LOST, CLOSED_UNHEALTHY
from extender.web.schema import CapTold, DecisionTold, GatesTold, OrderTold
from tests.cli.why.blaming import (
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
from tools.kit.cases import cases


def at(width, blame, problems=()):
    return text_of(pod_page.render(blame, width, problems=problems))


AT_60 = """\
train-7 has been Pending for 4m12s. Two nodes would take it
now; readygate keeps it off both.

  gpu-03  closed for pods that request nvidia.com/gpu 4m31s:
          gpu-count: "7 of 8 devices"
          opens when check gpu-count passes
  gpu-11  closed for every pod 28s: kubelet Lease not
          renewed for 52s
          opens when its kubelet renews its Lease

The other 10 are unrelated to readygate: 7 Insufficient
  nvidia.com/gpu, 3 didn't match Pod's node
  affinity/selector (kube-scheduler, 8s ago)
No cap, pause or storm is in force.
41 of 41 scheduler calls for this pod were answered.

  details: readygate why node gpu-03
  open it anyway: readygate exempt --gate gpu --node gpu-03
    --for 1h --reason WHY
"""
AT_80 = """\
train-7 has been Pending for 4m12s. Two nodes would take it now; readygate keeps
it off both.

  gpu-03  closed for pods that request nvidia.com/gpu 4m31s: gpu-count: "7 of 8
          devices"
          opens when check gpu-count passes
  gpu-11  closed for every pod 28s: kubelet Lease not renewed for 52s
          opens when its kubelet renews its Lease

The other 10 are unrelated to readygate: 7 Insufficient nvidia.com/gpu, 3 didn't
  match Pod's node affinity/selector (kube-scheduler, 8s ago)
No cap, pause or storm is in force.
41 of 41 scheduler calls for this pod were answered.

  details: readygate why node gpu-03
  open it anyway: readygate exempt --gate gpu --node gpu-03 --for 1h --reason
    WHY
"""
AT_120 = """\
train-7 has been Pending for 4m12s. Two nodes would take it now; readygate keeps it off both.

  gpu-03  closed for pods that request nvidia.com/gpu 4m31s: gpu-count: "7 of 8 devices"
          opens when check gpu-count passes
  gpu-11  closed for every pod 28s: kubelet Lease not renewed for 52s
          opens when its kubelet renews its Lease

The other 10 are unrelated to readygate: 7 Insufficient nvidia.com/gpu, 3 didn't match Pod's node affinity/selector
  (kube-scheduler, 8s ago)
No cap, pause or storm is in force.
41 of 41 scheduler calls for this pod were answered.

  details: readygate why node gpu-03
  open it anyway: readygate exempt --gate gpu --node gpu-03 --for 1h --reason WHY
"""


@pytest.mark.parametrize(("width", "expected"), [(60, AT_60), (80, AT_80), (120, AT_120)])
def test_the_page_fits_the_width(width, expected):
    assert expected == at(width, blamed(pod(MESSAGE), told(LAST)))


def first(seen, answers):
    """The exit code and the first sentence."""
    nodes = {
        **NODES,
        "w-014": node("w-014", closed("base", CLOSED_UNHEALTHY, 60.0, "")),
        "w-001": node("w-001", DecisionTold("base")),
    }
    found = blamed(seen, *answers, nodes=nodes)
    return found.code, found.first


JUST_NOW, SAMPLE = attempt(ONE, ago_seconds=0.1), attempt(ONE, TWO, complete=False)
TAKES_ONE = "One node would take it now; readygate keeps it off."
TAKE_FIVE = "Five nodes would take it now; readygate keeps it off all of them."
TAKE_SOME = "At least two nodes would take it now; readygate keeps it off both."
TAKE_TWO = "Two nodes would take it now; readygate keeps it off both."


@cases(
    "seen, answers, expected",
    ("one node", pod(MESSAGE), [told(attempt(ONE))], TAKES_ONE),
    ("five nodes", pod(MESSAGE), [told(attempt(*FIVE))], TAKE_FIVE),
    ("kube-scheduler asked about a sample of the nodes", pod(MESSAGE), [told(SAMPLE)], TAKE_SOME),
    ("one of two has opened since", pod(MESSAGE), [told(attempt(ONE_OPEN, TWO))], TAKES_ONE),
    ("kube-scheduler has not written yet", pod(""), [told(JUST_NOW)], TAKES_ONE),
    ("kube-scheduler wrote about an earlier attempt", pod(NOT_OURS, said_s=60), [told(JUST_NOW)], TAKES_ONE),
    ("the replica that was asked last counts", pod(MESSAGE), [told(), told(LAST), told(EARLIER)], TAKE_TWO),
)
def test_readygate_keeps_a_pod_off_nodes(seen, answers, expected):
    assert (1, f"train-7 has been Pending for 4m12s. {expected}") == first(seen, answers)


NOTHING = "readygate is not the cause: no node that it closed would have taken this pod."
EXEMPT = "readygate is not the cause: the pod is exempt (label readygate.dev/exempt) and is never refused a node."
SOME_PASSED = "readygate does not hold it: 1 node that would take it was let through; two were not."
NO_CLAIM = '0/3 nodes are available: persistentvolumeclaim "x" not found.'


@cases(
    "message, last, expected",
    ("kube-scheduler's own filters pass no node", NOT_OURS, None, NOTHING),
    ("readygate refused nodes in an earlier attempt", NOT_OURS, EARLIER, NOTHING),
    ("readygate lets it through everywhere", MESSAGE, attempt(passed=3), NOTHING),
    ("a plugin that looked at the pod alone", NO_CLAIM, None, NOTHING),
    ("an exempt pod", MESSAGE, attempt(exempt="label readygate.dev/exempt"), EXEMPT),
    ("some nodes were let through", "", attempt(ONE, TWO, passed=1), SOME_PASSED),
)
def test_readygate_does_not_hold_a_pod(message, last, expected):
    assert (0, expected) == first(pod(message), [told(last)])


PAGES = msgspec.structs.replace(attempt(ONE_OPEN), refused_count=700, open_count=700)


@cases(
    "last, expected",
    ("more than one page of nodes", PAGES, "700 nodes would take it now; readygate has opened them since"),
    ("all nodes", attempt(ONE_OPEN), "One node would take it now; readygate has opened it since"),
)
def test_nodes_that_have_opened_since_do_not_block_a_pod(last, expected):
    again = f"train-7 has been Pending for 4m12s. {expected}: kube-scheduler retries the pod."
    assert (0, again) == first(pod(MESSAGE), [told(last)])


def bound(to, seconds=None, phase="Running", **others):
    return pod(node=to, bound_s=seconds, phase=phase, **others)


BEFORE = "It is not Pending: it runs on w-014, bound 3s before w-014 closed."
AFTER = "It is not Pending: it runs on w-014, bound 40s after w-014 closed: exempt, or placed unfiltered."
NOT_STARTED = (
    "It does not wait for a node: it is bound to w-014 and has not started there, bound 3s before w-014 closed."
)
OPEN = "It is not Pending: it runs on w-001, bound 20s ago; w-001 is open."
FINISHED = "It is not Pending: it has finished (Succeeded) on w-014."


@cases(
    "seen, answers, expected",
    ("bound before its node closed", bound("w-014", 63), [told(LAST)], BEFORE),
    ("bound after its node closed", bound("w-014", 20), [told(LAST)], AFTER),
    ("bound to an open node", bound("w-001", 20), [told(LAST)], OPEN),
    ("no extender answers", bound("w-999", 20), [], "It is not Pending: it runs on w-999, bound 20s ago."),
    ("its kubelet is dead: bound, and still called Pending", bound("w-014", 63, "Pending"), [told(LAST)], NOT_STARTED),
    ("a static pod", bound("w-999"), [], "It is not Pending: it runs on w-999."),
    ("finished", bound("w-014", phase="Succeeded"), [], FINISHED),
    ("being deleted", pod(MESSAGE, deleted=True), [], "It is not Pending: it is being deleted."),
)
def test_a_pod_that_does_not_wait_for_a_node_is_not_pending(seen, answers, expected):
    assert (0, expected) == first(seen, answers)


GATED = {"schedulingGates": [{"name": "example.com/quota"}]}


@cases(
    "spec, expected",
    ("scheduling gates of its own", GATED, "it waits for its own scheduling gates (example.com/quota)."),
    ("not tried yet", {}, "it has not tried to place it yet."),
    ("another scheduler", {"schedulerName": "batch"}, "scheduler batch has not tried to place it yet."),
)
def test_kube_scheduler_has_not_asked_about_a_pod(spec, expected):
    assert (0, f"kube-scheduler has not asked readygate about it: {expected}") == first(pod("", **spec), [told()])


OTHER_UID = (
    "Unknown which nodes: kube-scheduler counts readygate's reasons for 2, but the extenders' memory begins 1d1h ago."
)
BLIND = "no word from the API server for 130 s"
STALE = f"The extenders give no verdicts: {BLIND}; pods are placed unfiltered (protect), or wait (enforce)."


@cases(
    "answers, expected",
    ("an earlier pod of the name is remembered", [told(LAST, uid="u-0"), told(attempts=0, uid="")], OTHER_UID),
    ("the extender's data is stale", [told(not_answering=BLIND)], STALE),
    ("no extender answers", [], "Unknown: no extender answers."),
)
def test_which_nodes_is_unknown(answers, expected):
    assert (3, expected) == first(pod(MESSAGE), answers)


def test_an_extender_that_does_not_answer_may_be_the_one_that_was_asked():
    found = blamed(pod(MESSAGE), told(), problems=["e-1 is silent; look at its log"])
    expected = "Unknown which nodes: kube-scheduler counts readygate's reasons for 2, but 1 extender did not answer."
    assert (3, expected) == (found.code, found.first)
    assert "! e-1 is silent; look at its log\n" in at(80, found, problems=("e-1 is silent; look at its log",))


def shown(blame):
    return at(120, blame).partition("\n\n")[2]


OTHER_CAUSES = """\
Other causes: 7 Insufficient nvidia.com/gpu, 3 didn't match Pod's node affinity/selector, 2 Insufficient cpu
  (kube-scheduler, 8s ago)
"""
IN_WORDS = 'Other causes: persistentvolumeclaim "x" not found (kube-scheduler, 8s ago)\n'
IN_SHADOW = attempt(shadow=(refused("a", "dns", "r"), refused("b", "dns", "r")), shadow_count=2)
SHADOW = """\
Gate dns is in shadow: if armed, it would have refused 2 nodes for the pod.
No cap, pause or storm is in force.
41 of 41 scheduler calls for this pod were answered.
"""
TWO_UNANSWERED = {"unanswered": 2, "unanswered_why": "caches not synced"}
UNANSWERED = "3 of 5 scheduler calls for this pod were answered (last failure: caches not synced).\n"


@cases(
    "message, answer, expected",
    ("other causes, in numbers", NOT_OURS, told(), OTHER_CAUSES),
    ("other causes, in words", NO_CLAIM, told(), IN_WORDS),
    ("a gate in shadow", NOT_OURS, told(IN_SHADOW), OTHER_CAUSES + SHADOW),
    ("calls that were not answered", NOT_OURS, told(attempts=3, **TWO_UNANSWERED), OTHER_CAUSES + UNANSWERED),
)
def test_other_causes_follow_the_answer(message, answer, expected):
    assert expected == shown(blamed(pod(message), answer))


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


def test_suggested_commands_are_valid():
    hints = [
        part.partition(": ")[2] for part in AT_120.splitlines() if part.startswith("  ") and ": readygate " in part
    ]
    assert [("why", "gpu-03"), ("exempt", "gpu-03")] == [
        ((typed := parser().parse_args(shlex.split(hint)[1:])).command, typed.node) for hint in hints
    ]


def test_a_name_that_a_shell_would_run_is_quoted():
    evil = refused("x;reboot", "gpu", CLOSED_UNHEALTHY)
    assert "why node 'x;reboot'\n" in at(120, blamed(pod(MESSAGE), told(attempt(evil)), nodes={}))
