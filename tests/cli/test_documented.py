"""`readygate` prints what docs/why.md and the README show. Each command is run, each block compared."""

import re
import shlex
import sys
from pathlib import Path

import msgspec
import pytest

from cli.__main__ import main
from cli.why import command
from extender.policy.reasons import CLOSED_UNHEALTHY
from extender.web.report import (
    CapTold,
    Change,
    DecisionTold,
    GatesTold,
    GateTold,
    HistoryTold,
    Impact,
    ImpactTold,
    NodeTold,
    NodeVerdicts,
    RefusedPod,
)
from tests.cli.served import Extender
from tests.cli.why import test_pod_page, test_unanswered
from tests.cli.why.blaming import LAST, MESSAGE, NODES, WALL, closed, encoded_pod, node, told
from tools.kit import kubeconfig

ROOT = Path(__file__).resolve().parents[2]
WHY = (ROOT / "docs" / "why.md").read_text()
PROGRAM = "$ kubectl readygate "


def shown(text):
    """(command, output) of each documented call of `kubectl readygate`."""
    found = []
    for block in re.findall(r"^```console\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        for part in re.split(r"^(?=\$ )", block, flags=re.MULTILINE):
            command, _, output = part.partition("\n")
            if command.startswith(PROGRAM):
                found.append((command, output))
    return found


SHOWN = [*shown(WHY), *shown((ROOT / "README.md").read_text())]
COMMANDS = {command.removeprefix("$ ") for command, _ in SHOWN}

AGENT = "readygate-system/agent-7xk2p"
GPU_03 = msgspec.structs.replace(NODES["gpu-03"].node.gates[0], pod=AGENT)
BASE = DecisionTold("base", since_seconds=90_000.0, pod=AGENT)
DNS = closed("dns", CLOSED_UNHEALTHY, 720.0, "CheckFailed: dns: 169.254.20.10 timed out")
CLOSED_GPU_11 = Change(28.0, kind="closed", gate="base", node="gpu-11", evidence="kubelet Lease not renewed")
CLOSED_GPU_03 = Change(271.0, kind="closed", gate="gpu", node="gpu-03", evidence='gpu-count: "7 of 8 devices"')
PODS_OF_GPU = "pods that request nvidia.com/gpu"


def answers():
    """The answers of each of two extenders, by path."""
    gpu_03 = node("gpu-03", GPU_03, BASE)
    w_090 = node("w-090", BASE, msgspec.structs.replace(DNS, armed=False)).node
    others = [node(f"w-{number:03}", BASE).node for number in range(9)]
    gates = (
        GateTold(gate="base", nodes=12, open=11, closed=1, refused10m=41, last_change=CLOSED_GPU_11),
        GateTold(gate="gpu", for_=PODS_OF_GPU, nodes=4, open=3, closed=1, refused10m=9, last_change=CLOSED_GPU_03),
        GateTold(gate="dns", armed=False, nodes=12, open=11, closed=1, would_refuse10m=112),
    )
    impact = (
        Impact("base", would_close=1, would_close_most=2, would_refuse_calls=41, pods=3, since_seconds=183_600.0),
        Impact(
            "dns",
            armed=False,
            would_close=1,
            would_close_most=3,
            would_refuse_calls=112,
            pods=37,
            since_seconds=183_600.0,
        ),
    )
    opened = Change(3720.0, kind="opened", gate="base", node="w-101")
    head = {"not_answering": "", "release": "0.1.0", "last_word_seconds": 0.4, "since_start_seconds": 90_000.0}
    return {
        "pods/team-a/train-7": told(LAST),
        "nodes/gpu-03": NodeTold(
            **head,
            node=gpu_03.node,
            transitions=(CLOSED_GPU_03,),
            refused_pods=(RefusedPod("team-a", "train-7", "gpu", 41, 8.0),),
        ),
        "nodes/gpu-11": NODES["gpu-11"],
        "nodes": NodeVerdicts(**head, nodes=[NODES["gpu-11"].node, gpu_03.node, w_090, *others]),
        "gates": GatesTold(**head, gates=gates, cap=CapTold(3, 2)),
        "history": HistoryTold(**head, events=(CLOSED_GPU_11, CLOSED_GPU_03, opened)),
        "impact": ImpactTold(**head, gates=impact),
    }


@pytest.fixture
def documented(cluster, tmp_path, monkeypatch):
    """A terminal of 104 columns at a fixed time, with a cluster named prod-eu1."""
    file = kubeconfig.write(tmp_path / "k", server=cluster.url, user=kubeconfig.token_user("secret"))
    file.write_text(file.read_text().replace("testbed", "prod-eu1"))
    monkeypatch.setenv("KUBECONFIG", str(file))
    monkeypatch.setenv("COLUMNS", "104")
    monkeypatch.setattr(sys, "argv", ["kubectl-readygate"])
    monkeypatch.setattr(command.time, "time", lambda: WALL)
    cluster.objects["/api/v1/namespaces/team-a/pods/train-7"] = encoded_pod(MESSAGE)
    cluster.extenders = [Extender(name) for name in ("readygate-extender-4wq9c", "readygate-extender-x8d2p")]
    for extender in cluster.extenders:
        extender.answers = {path: msgspec.json.encode(answer) for path, answer in answers().items()}
    cluster.extenders[1].answers["pods/team-a/train-7"] = msgspec.json.encode(told())


@pytest.mark.parametrize(("typed", "expected"), SHOWN)
@pytest.mark.usefixtures("documented")
def test_documented_output_is_what_is_printed(capsys, typed, expected):
    main(shlex.split(typed.removeprefix(PROGRAM)))
    written = capsys.readouterr()
    assert (expected, "") == (written.out, written.err)


def test_the_readme_shows_why_pod_first():
    first = re.search(r"^```\w*\n(.*?)\n", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert first is not None
    assert first[1] == "$ kubectl readygate why pod team-a/train-7"


# Two tests of test_pod_page.py put these before each of their rows.
PREFIXES = re.compile(r"^(train-7 has been Pending for 4m12s\. |kube-scheduler has not asked readygate about it: )")


def test_each_documented_answer_is_tested():
    table = WHY.partition("| the answer begins |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| `(.+?)`", table, re.MULTILINE)
    files = "".join(Path(file.__file__).read_text() for file in (test_pod_page, test_unanswered))
    tests = re.sub(r'"\s+f?"', "", files).replace("{BLIND}", test_pod_page.BLIND)
    assert len(rows) == 10
    assert [row for row in rows if PREFIXES.sub("", row) not in tests] == []
