"""The configuration file while the agent runs: what is taken, what is refused, what waits for the next start."""

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import pytest

from agent import settings as reader
from agent.checks.catalogue import check_spec
from agent.checks.engine import CheckEngine
from agent.checks.state import CheckState, CheckStatus, Severity
from agent.modes.node import Counts
from agent.modes.reload import Reloader, needing_restart
from agent.opinion.selection import HealthPods
from component.lifecycle import StartFailed
from tools.kit.cases import cases

CNI = "{name: cni, cni: {confDir: /nowhere}}"
CLOCK = "{name: clock, timeSync: {}}"
OTHER_CNI = "{name: cni, cni: {confDir: /elsewhere}}"


def text_of(*checks: str, more: str = "") -> str:
    return f"mode: pod\nchecks: [{', '.join(checks)}]\n{more}"


class Engine(CheckEngine):
    """Never started: what it would be made of."""

    def __init__(self, settings: reader.Settings) -> None:
        super().__init__([check_spec(check) for check in settings.checks])
        self.sets: list[list[str]] = []

    def replace(self, specs) -> None:  # type: ignore[no-untyped-def]
        self.sets.append([spec.name for spec in specs])


class Agent:
    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        self.path.write_text(text)
        settings = reader.load(str(path))
        self.engine = Engine(settings)
        self.reloader = Reloader(str(path), settings, [self.engine])
        self.look()

    def look(self) -> None:
        """Twice: a change counts when it has settled."""
        self.reloader.look()
        self.reloader.look()

    def write(self, text: str) -> None:
        """As an editor or `kubectl` does: a new file in its place."""
        beside = self.path.with_suffix(".new")
        beside.write_text(text)
        beside.rename(self.path)


@pytest.fixture(autouse=True)
def _level() -> Iterator[None]:
    level = logging.getLogger().level
    yield
    logging.getLogger().setLevel(level)


@pytest.fixture
def agent(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Agent:
    caplog.set_level(logging.INFO)
    return Agent(tmp_path / "agent.yaml", text_of(CNI))


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    facts = ("error", "keys", "mode", "added", "changed", "gone", "moved", "health_pods_added", "health_pods_gone")
    return [
        " ".join([record.message, *(f"{fact}={vars(record)[fact]}" for fact in facts if vars(record).get(fact))])
        for record in caplog.records
        if record.name == "agent.modes.reload"
    ]


AGAIN = "configuration read again"
LATER = "settings were changed that count at the next start keys="
REFUSED = "configuration refused, the old one stays in force error=PATH: "
LISTEN = "listen: {port: 1234}"
OTHER_MODE = "mode: kubelet\nkubelet: {nodeName: a, podCIDR: 127.20.1.0/24, rootDir: /x}"


@cases(
    "text, sets, said",
    ("the same again is nothing", text_of(CNI), [], []),
    ("nor is a comment", text_of(CNI) + "# a comment", [], []),
    ("a check more", text_of(CNI, CLOCK), [["cni", "clock"]], [f"{AGAIN} added=clock"]),
    ("one changed", text_of(OTHER_CNI), [["cni"]], [f"{AGAIN} changed=cni"]),
    ("another one", text_of(CLOCK), [["clock"]], [f"{AGAIN} added=clock gone=cni"]),
    (
        "an unknown key",
        text_of("{name: cni, cny: {}}"),
        [],
        [f"{REFUSED}line 2: checks[0].cny: unknown key, allowed: ..."],
    ),
    ("no checks", "mode: pod\n", [], [f"{REFUSED}checks: missing, allowed: ..."]),
    ("listen and stateFile", text_of(CNI, more=f"{LISTEN}\nstateFile: /x"), [], [f"{LATER}listen, stateFile", AGAIN]),
    ("both", text_of(CNI, CLOCK, more=LISTEN), [["cni", "clock"]], [f"{LATER}listen", f"{AGAIN} added=clock"]),
    ("another mode", OTHER_MODE, [], ["another mode counts at the next start, nothing was changed mode=kubelet"]),
)
def test_a_file_that_changed(
    agent: Agent, caplog: pytest.LogCaptureFixture, text: str, sets: list[list[str]], said: list[str]
) -> None:
    agent.write(text)
    agent.look()
    agent.look()
    found = [line.replace(str(agent.path), "PATH").partition("allowed: ") for line in lines(caplog)]
    assert (sets, said) == (agent.engine.sets, [f"{a}{b}..." if b else a for a, b, _ in found])


def test_a_bad_file_is_refused_once_and_a_good_one_taken_after_it(
    agent: Agent, caplog: pytest.LogCaptureFixture
) -> None:
    agent.path.write_text("checks: [")
    for _ in range(5):
        agent.look()
    assert 1 == len(lines(caplog))
    agent.path.unlink()
    agent.look()
    agent.look()
    assert 2 == len(lines(caplog))
    agent.write(text_of(CNI, CLOCK))
    agent.look()
    assert [["cni", "clock"]] == agent.engine.sets


def test_a_file_that_is_still_being_written_waits(agent: Agent) -> None:
    """Half of it is a valid one, and would take a check away."""
    agent.path.write_text(text_of(CLOCK))
    agent.reloader.look()
    agent.path.write_text(text_of(CLOCK, CNI))
    agent.reloader.look()
    assert [] == agent.engine.sets
    agent.reloader.look()
    assert [["clock", "cni"]] == agent.engine.sets


def test_a_config_map_whose_link_is_swapped_is_seen(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """As the kubelet's atomic writer: FILE -> ..data/FILE, ..data -> a folder named by the time."""

    def write(name: str, text: str) -> None:
        (tmp_path / name).mkdir()
        (tmp_path / name / "agent.yaml").write_text(text)
        (tmp_path / "..data_tmp").symlink_to(name)
        (tmp_path / "..data_tmp").rename(tmp_path / "..data")

    caplog.set_level(logging.INFO)
    write("..2026_01", text_of(CNI))
    (tmp_path / "agent.yaml").symlink_to("..data/agent.yaml")
    settings = reader.load(str(tmp_path / "agent.yaml"))
    engine = Engine(settings)
    reloader = Reloader(str(tmp_path / "agent.yaml"), settings, [engine])
    for _ in range(3):
        reloader.look()
    write("..2026_02", text_of(CNI, CLOCK))
    for _ in range(3):
        reloader.look()
    assert [["cni", "clock"]] == engine.sets


def test_asked_it_reads_at_once_and_says_so(agent: Agent, caplog: pytest.LogCaptureFixture) -> None:
    agent.reloader.request()
    agent.reloader.look()
    assert ["configuration read again"] == lines(caplog)
    agent.write(text_of(CNI, CLOCK))
    agent.reloader.request()
    agent.reloader.look()
    assert [["cni", "clock"]] == agent.engine.sets


def test_the_level_of_the_log_is_taken(agent: Agent) -> None:
    agent.write(text_of(CNI, more="log: {level: error}"))
    agent.look()
    assert logging.ERROR == logging.getLogger().level


def test_what_waits_is_named_for_as_long_as_it_differs_from_the_start(
    agent: Agent, caplog: pytest.LogCaptureFixture
) -> None:
    agent.write(text_of(CNI, more="stateFile: /x"))
    agent.look()
    agent.write(text_of(CNI, CLOCK, more="stateFile: /x"))
    agent.look()
    later = "settings were changed that count at the next start keys=stateFile"
    assert 2 == lines(caplog).count(later)
    agent.write(text_of(CNI))
    agent.look()
    assert 2 == lines(caplog).count(later)


def test_every_section_is_taken_or_waits() -> None:
    """A section that is new has to be one or the other."""
    known = {"mode", "listen", "kubernetes", "stateFile", "condition", "kubelet", "node"}
    one = reader.parse(text_of(CNI).encode(), {})
    assert [] == needing_restart(one, one)
    assert known | {"checks", "profile", "log"} == {
        field.encode_name for field in msgspec.structs.fields(reader.Settings)
    }


BASE = "{namespace: a, labelSelector: app=base}"
TWO_CHECKS = "checks: [{name: disk, tcpSocket: {port: 1}}, {name: gpu, gpu: {}}]"


def node_text(*pods: str, checks: str = TWO_CHECKS) -> str:
    return f"mode: node\nnode: {{name: n, server: 'https://h', healthPods: [{', '.join(pods)}]}}\n{checks}\n"


def gpu_pods(*names: str) -> str:
    return f"{{namespace: g, labelSelector: app=gpu, checks: {list(names) or 'null'}}}"


class Node:
    """An agent in mode node, as far as it follows the file. `closed`: whose pods a failing check closes."""

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        self.path.write_text(text)
        settings = reader.load(str(path))
        self.woken: list[None] = []
        self.watched: list[Sequence[HealthPods]] = []
        self.threads = True
        self.counts = Counts(settings, lambda: self.woken.append(None), self.follow)
        self.engine = Engine(settings)
        self.reloader = Reloader(str(path), settings, [self.counts, self.engine])
        self.reloader.look()
        self.reloader.look()

    def follow(self, entries: Sequence[HealthPods]) -> None:
        if not self.threads:
            raise StartFailed("no watch for health pods: can't start new thread")
        self.watched.append(entries)

    def reads(self, text: str) -> None:
        self.path.write_text(text)
        self.reloader.request()
        self.reloader.look()

    def closed(self, check: str) -> list[str]:
        failing = [CheckStatus(check, Severity.GATE, 0.0, CheckState.FAILED)]
        labels = {"base": HealthPods("a", "app=base", "readygate-agent"), "gpu": GPU_PODS}
        found = {label: self.counts.now.health(failing, {pods}) for label, pods in labels.items()}
        return [label for label, health in found.items() if health is not None and health.problems]


GPU_PODS = HealthPods("g", "app=gpu", "readygate-agent")


UNKNOWN = f"{REFUSED}line 2: node.healthPods[1].checks[0]: NAME is no check of this file, allowed: ..."
NO_GPU = node_text(BASE, gpu_pods("gpu"), checks="checks: [{name: disk, tcpSocket: {port: 1}}]")
ONE_MORE = node_text(BASE, gpu_pods("gpu"), "{namespace: b, labelSelector: app=b, checks: [disk]}")


@cases(
    "text, disk, gpu, said",
    ("another check counts at once", node_text(BASE, gpu_pods("disk")), "gpu", "base", f"{AGAIN} moved=disk, gpu"),
    ("no check: as without names", node_text(BASE, gpu_pods()), "base gpu", "base gpu", f"{AGAIN} moved=gpu"),
    ("a misspelled check", node_text(BASE, gpu_pods("gpuu")), "base", "gpu", UNKNOWN.replace("NAME", "gpuu")),
    ("a check that is removed and still named", NO_GPU, "base", "gpu", UNKNOWN.replace("NAME", "gpu")),
    ("an entry less", node_text(BASE), "base", "base", f"{AGAIN} moved=gpu health_pods_gone=g/app=gpu"),
    ("an entry more", ONE_MORE, "", "gpu", f"{AGAIN} moved=disk health_pods_added=b/app=b"),
)
def test_which_pods_a_check_counts_for_is_taken_without_a_restart(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str, disk: str, gpu: str, said: str
) -> None:
    caplog.set_level(logging.INFO)
    node = Node(tmp_path / "node.yaml", node_text(BASE, gpu_pods("gpu")))
    node.reads(text)
    found = [line.replace(str(node.path), "PATH").partition("allowed: ") for line in lines(caplog)]
    assert [said] == [f"{a}{b}..." if b else a for a, b, _ in found]
    assert (disk.split(), gpu.split()) == (node.closed("disk"), node.closed("gpu"))
    assert (not said.startswith("configuration refused")) == bool(node.woken)


ENTRIES = {BASE: HealthPods("a", "app=base", "readygate-agent"), gpu_pods("gpu"): GPU_PODS}
OTHER = "{namespace: b, labelSelector: app=b, daemonSet: null}"


@cases(
    "entries, expected",
    ("the same", [BASE, gpu_pods("gpu")], [*ENTRIES.values()]),
    ("in another order", [gpu_pods("gpu"), BASE], [*reversed(ENTRIES.values())]),
    ("one less", [BASE], [ENTRIES[BASE]]),
    ("one more, of any owner", [BASE, gpu_pods("gpu"), OTHER], [*ENTRIES.values(), HealthPods("b", "app=b", "")]),
)
def test_which_pods_are_health_pods_is_taken_without_a_restart(
    tmp_path: Path, entries: list[str], expected: list[HealthPods]
) -> None:
    node = Node(tmp_path / "node.yaml", node_text(*ENTRIES))
    node.watched.clear()
    node.reads(node_text(*entries))
    assert [expected] == node.watched


def test_where_the_pods_cannot_be_watched_nothing_of_the_file_is_taken(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    node = Node(tmp_path / "node.yaml", node_text(BASE, gpu_pods("gpu")))
    node.threads = False
    more = node_text(BASE, gpu_pods("gpu"), OTHER, checks=f"{TWO_CHECKS[:-1]}, {CLOCK}]")
    node.reads(more)
    refused = [f"{REFUSED}no watch for health pods: can't start new thread".replace("PATH: ", "")]
    assert (refused, [], (["base"], ["gpu"])) == (
        lines(caplog),
        node.engine.sets,
        (node.closed("disk"), node.closed("gpu")),
    )
    node.threads = True
    node.reads(more)
    assert [["disk", "gpu", "clock"]] == node.engine.sets, "asked again it is taken"
    assert ["configuration read again added=clock health_pods_added=b/app=b"] == lines(caplog)[1:]


def test_what_else_of_the_node_differs_waits_and_its_pods_do_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    node = Node(tmp_path / "node.yaml", node_text(BASE, gpu_pods("gpu")))
    node.watched.clear()
    node.reads(node_text(BASE).replace("https://h", "https://other"))
    assert [[ENTRIES[BASE]]] == node.watched
    assert "settings were changed that count at the next start keys=node" == lines(caplog)[0]


def test_checks_that_count_for_no_pod_are_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    Node(tmp_path / "node.yaml", node_text(gpu_pods("gpu")))
    warned = [(record.message, vars(record)["checks"]) for record in caplog.records if record.levelname == "WARNING"]
    assert [("checks count for no health pod, as each of node.healthPods names others", "disk")] == warned
