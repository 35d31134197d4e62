"""The steps of each selection of tests: `gate` (make test), `whole` (make test-all), and one for each ring and form.

A selection is what is prepared first, one step after another, and lanes: steps of one lane run one after another, the
lanes side by side. Each lane of hosts has a set of hosts of its own.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from tools.kit.scope import WHOLE_VARIABLE
from tools.testbed.hosts.layout import ONE_CONTROL, SECOND, SET_VARIABLE, Layout
from tools.testbed.shared import obstacles

ROOT = Path(__file__).resolve().parents[2]
PYTHON = sys.executable
BIN = Path(PYTHON).parent
CONTROLS, IPV6, CHART = "tests/hosts/controls", "tests/hosts/ipv6", "tests/hosts/chart"
NETWORK = "tests/hosts/network"
WAY, DEPLOYMENT = "tests/hosts/path", "tests/hosts/deployment"
KILLED_CONTROLS = f"{CONTROLS}/test_controls_kills.py"
# They need none of the hosts: the image as a file, and a start that is killed.
WITHOUT_HOSTS = tuple(f"tests/hosts/test_hosts_{name}.py" for name in ("archive", "crash", "snapshot"))
EMULATED = "tests/hosts/test_hosts_arm64.py"
SURVIVAL = tuple(f"{DEPLOYMENT}/test_{name}.py" for name in ("survival", "survival_site", "undo_static"))
POLICY = f"{DEPLOYMENT}/test_network_policy.py"
OTHERS = (WAY, DEPLOYMENT, CONTROLS, IPV6, CHART, NETWORK, *WITHOUT_HOSTS, EMULATED)


@dataclass(frozen=True)
class Step:
    """One child process.

    needs: an earlier step without which this one cannot run. folder: where it runs, below the checkout.
    environ: added to the environment. humble: it takes the processor time that no other step wants.
    root: it needs what ring 3 needs. pytest: `--gate` may be added to its command.
    """

    name: str
    command: tuple[str, ...]
    what: str
    needs: str = ""
    folder: str = "."
    environ: dict[str, str] = field(default_factory=dict)
    humble: bool = False
    root: bool = False
    pytest: bool = False


@dataclass(frozen=True)
class Selection:
    """obstacles: what keeps this machine from running it, in words; found before anything is built."""

    prepare: tuple[Step, ...] = ()
    lanes: tuple[tuple[Step, ...], ...] = ()
    obstacles: Callable[[], list[str]] = list

    @property
    def steps(self) -> list[Step]:
        return [*self.prepare, *(step for lane in self.lanes for step in lane)]


def pytest_step(name: str, arguments: tuple[str, ...], what: str, needs: str = "", *, root: bool = False) -> Step:
    cache = ROOT / "build" / "pytest" / name
    command = (PYTHON, "-m", "pytest", "-o", f"cache_dir={cache}", *arguments)
    # A ring that is asked for and cannot run has failed; by hand, pytest skips it with a red line.
    return Step(name, command, what, needs, root=root, environ={"CI": "true"} if root else {}, pytest=True)


def hosts_step(name: str, tests: tuple[str, ...], what: str, on: Layout, needs: str = "packages") -> Step:
    """on: the set of hosts. Another lane may test on another set at the same time."""
    step = pytest_step(name, ("-v", *tests), what, needs, root=True)
    return replace(step, environ={**step.environ, SET_VARIABLE: on.network.name})


def ignoring(*paths: str) -> tuple[str, ...]:
    return tuple(f"--ignore={path}" for path in paths)


LINT = (
    Step("ruff", (str(BIN / "ruff"), "check", "."), "style and mistakes"),
    Step("format", (str(BIN / "ruff"), "format", "--check", "."), "formatting"),
    Step("mypy", (PYTHON, "-m", "tools.lint", "types"), "types, strict"),
    Step("imports", (str(BIN / "lint-imports"),), "which package may import which"),
    Step("playbooks", (PYTHON, "-m", "tools.lint", "playbooks"), "playbooks, strictest profile"),
    Step("words", (PYTHON, "-m", "tools.lint", "words"), "no retired word in what operators read"),
)
TOOLS = Step("tools", (PYTHON, "-m", "tools.testbed.shared.tools"), "helm and the like, built once and cached")
OLDEST = Step(
    "ansible", (PYTHON, "-m", "tools.testbed.shared.oldest_ansible"), "the oldest ansible-core, fetched once and cached"
)
SOURCES = Step(
    "sources", (PYTHON, "-m", "tools.testbed.shared.binaries", "--fetch"), "the sources of Kubernetes, unless cached"
)
BINARIES = Step(
    "binaries", (PYTHON, "-m", "tools.testbed.shared.binaries"), "Kubernetes, built once and cached", needs="sources"
)
PACKAGES = Step("packages", (PYTHON, "-m", "tools.testbed.hosts.packages"), "system packages of ring 3", root=True)
ROUTER = Step(
    "kube-router",
    (PYTHON, "-m", "tools.testbed.shared.tools", "kube-router"),
    "enforces NetworkPolicies, built once and cached",
)
COREDNS = Step("coredns", (PYTHON, "-m", "tools.testbed.shared.tools", "coredns"), "DNS, built once and cached")

RING_0 = pytest_step(
    "ring-0",
    ("-q", "-n", "3", "--dist", "worksteal", "tests", *ignoring("tests/scripted", "tests/plane", "tests/hosts")),
    "pure tests",
    "tools",
)
# They wait more than they compute.
RING_1 = pytest_step("ring-1", ("-q", "-n", "3", "--dist", "worksteal", "tests/scripted"), "scripted tests", "tools")
# Each process has a control plane of its own; most of them wait most of the time.
RING_2 = pytest_step(
    "ring-2",
    ("-v", "-n", "4", "--dist", "loadfile", "--no-loadscope-reorder", "tests/plane"),
    "real control plane on loopback",
    "binaries",
)
RING_3 = hosts_step(
    "ring-3", (WAY, DEPLOYMENT, *ignoring(*SURVIVAL, POLICY)), "readygate deployed to systemd hosts", ONE_CONTROL
)
SERVICE = hosts_step(
    "ring-3-service", ("tests/hosts", *ignoring(*OTHERS)), "the agent on systemd hosts, as a service and else", SECOND
)
ARCHIVE = hosts_step("archive", WITHOUT_HOSTS, "the image as a file", SECOND)
ARM64 = hosts_step("arm64", (EMULATED,), "the image for arm64, run by an emulator", SECOND)
SHORT_DIFFERENTIAL = Step(
    "differential",
    (PYTHON, "-m", "tools.differential", "--gate"),
    "the agent beside the kubelet's own packages, few histories",
    needs="sources",
)
DIFFERENTIAL = Step(
    "differential",
    (PYTHON, "-m", "tools.differential", "--planted", "--fixes"),
    "the agent beside the kubelet's own packages",
    needs="sources",
    humble=True,
)
THREE_CONTROLS = hosts_step("controls", (CONTROLS, *ignoring(KILLED_CONTROLS)), "three control planes", ONE_CONTROL)
FORMS = hosts_step("chart", (CHART,), "every form of the chart, by helm", ONE_CONTROL)
ENFORCED = hosts_step("policy", (POLICY,), "NetworkPolicies that are enforced", ONE_CONTROL)
POD_NETWORK = hosts_step("network", (NETWORK,), "the pod network between five hosts", ONE_CONTROL)
IPV6_ALONE = hosts_step("ipv6", (IPV6,), "a cluster that speaks IPv6 alone", ONE_CONTROL)
KILLS = hosts_step("kills", SURVIVAL, "Ansible killed after each of its tasks, and a host without power", ONE_CONTROL)
KILLS_OF_THREE = hosts_step("kills-3", (KILLED_CONTROLS,), "the same with three control planes", ONE_CONTROL)
EACH_TASK = {"READYGATE_EVERY_TASK": "1"}


def in_gate(step: Step) -> Step:
    """The step without the tests of tests/whole_only.txt."""
    return replace(step, command=(*step.command, "--gate")) if step.pytest else step


def in_whole(step: Step) -> Step:
    """The step with many draws, a fresh seed and true timeouts."""
    return replace(step, environ={**step.environ, WHOLE_VARIABLE: "1"})


def on(layout: Layout, *steps: Step) -> tuple[Step, ...]:
    """The steps on another set of hosts."""
    return tuple(replace(step, environ={**step.environ, SET_VARIABLE: layout.network.name}) for step in steps)


def _of_ring_3() -> list[str]:
    return [*obstacles.of_hosts(), *obstacles.disk_space(hosts=True)]


def hosts_selection(*steps: Step, prepare: tuple[Step, ...] = ()) -> Selection:
    return Selection((PACKAGES, SOURCES, BINARIES, *prepare), (steps,), _of_ring_3)


_KILLS = tuple(replace(step, environ={**step.environ, **EACH_TASK}) for step in (KILLS, KILLS_OF_THREE))
# What comes over the network comes first: it fails first.
_PREPARE = (PACKAGES, SOURCES, BINARIES, TOOLS, OLDEST)
GATE = Selection(
    _PREPARE,
    tuple(
        tuple(map(in_gate, lane))
        for lane in (
            (RING_3,),
            (SERVICE, ARCHIVE),
            (RING_2,),
            (RING_1, SHORT_DIFFERENTIAL),
            (*LINT, RING_0),
        )
    ),
    obstacles.disk_space,
)
WHOLE = Selection(
    (*_PREPARE, ROUTER, COREDNS),
    tuple(
        tuple(map(in_whole, lane))
        for lane in (
            (RING_3, THREE_CONTROLS, *_KILLS),
            (SERVICE, ARCHIVE, ARM64, *on(SECOND, FORMS, ENFORCED, IPV6_ALONE, POD_NETWORK)),
            (RING_1, RING_2),
            (*LINT, RING_0, DIFFERENTIAL),
        )
    ),
    obstacles.disk_space,
)
SELECTIONS = {
    "gate": GATE,
    "whole": WHOLE,
    "lint": Selection(lanes=(LINT,)),
    "fast": Selection((TOOLS, OLDEST), ((in_gate(RING_0),), (in_gate(RING_1),))),
    "plane": Selection((SOURCES, BINARIES), ((RING_2,),), obstacles.disk_space),
    "hosts": replace(hosts_selection(), lanes=((RING_3,), (SERVICE, ARCHIVE, ARM64))),
    "controls": hosts_selection(THREE_CONTROLS),
    "ipv6": hosts_selection(IPV6_ALONE),
    "network": hosts_selection(POD_NETWORK, prepare=(TOOLS, COREDNS)),
    "policy": hosts_selection(ENFORCED, prepare=(ROUTER,)),
    "kills": hosts_selection(*_KILLS),
    "chart": hosts_selection(FORMS, prepare=(TOOLS,)),
}
# These leave out what needs root where it cannot run, unless CI is set.
MAY_LEAVE_OUT = ("gate", "whole")
