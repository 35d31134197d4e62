"""What the agent holds while virtual hours go by: as many threads and descriptors at their end as before."""

import gc
import itertools
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import msgspec
import pytest

from agent import settings
from agent.checks.catalogue import KINDS, check_spec
from agent.checks.engine import CheckEngine
from agent.checks.kernel_events import KernelEvents
from agent.checks.state import CheckState, Finding, Severity
from agent.checks.surroundings import Surroundings
from agent.kernel.inotify import FolderWatch
from agent.kernel.netlink import RouteWatch
from agent.kubelet.prober.manager import ProberManager
from agent.kubelet.prober.results import Results
from agent.wire.model import ProbeType
from agent.wire.pod import parse_pod
from agent.wire.semantics import Semantics
from tests.agent.checks.builtin import (
    test_certificates,
    test_connection_tables,
    test_gpu,
    test_kernel_log,
    test_link,
    test_pod_addresses,
    test_pod_network,
    test_pressure,
    test_reader,
    test_service_path,
    test_systemd_unit,
)
from tools.bench.agent.peer import Peer
from tools.fakes.cri import Runtime
from tools.fakes.dns import dns_servers
from tools.fakes.system_bus import FakeBus
from tools.kit.clock import Clock
from tools.kit.ports import free_port

PERIOD_S, VIRTUAL_S = 100.0, 10_000.0
SELDOM_S = 500.0  # of what costs a process, or waits
SOON_S = 20.0  # in which a library closes what it has let go
Looked = tuple[Mapping[str, object], Callable[[], None]]
"""A check's kind with its settings, and what changes before each look."""
GRPC_HELD = """
import sys
from agent.probe.grpc import grpc_check
from tests.agent.checks.test_long_run import held_over
from tools.differential.scripted import Script, Scripted
from tools.differential.fixed.answering import GRPC
from tools.kit.clock import Clock
given = GRPC["G5: SERVING"]["script"]
server = Scripted()
server.script = Script(given["greeting"].encode("latin-1"), "".join(given["reply"]).encode("latin-1"))
port, limit_s = (server.port, 30.0) if sys.argv[1] == "heard" else (1, 0.05)
results = set()
print(held_over(lambda: results.add(str(grpc_check("127.0.0.1", port, "s", limit_s).result)), Clock(0.0), 500.0))
assert results == ({"success"} if sys.argv[1] == "heard" else {"failure"}), results
"""


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def threads() -> set[threading.Thread]:
    return set(threading.enumerate())


@pytest.fixture
def peer() -> Iterator[Peer]:
    with Peer() as made:
        yield made


def held_over(turn: Callable[[], None], clock: Clock, period_s: float = PERIOD_S) -> tuple[int, list[str]]:
    """How many descriptors, and which threads, came while 10,000 s went by, after the first 1,000 s."""
    gc.collect()
    for _ in range(int(1_000 / period_s)):
        clock.time += period_s
        turn()
    before, alive = descriptors(), threads()
    while clock.time < VIRTUAL_S:
        clock.time += period_s
        turn()

    def held() -> tuple[int, list[str]]:
        # Fewer, where a thread of a test before has ended in the middle: what leaks here leaks at each turn.
        return max(0, descriptors() - before), [thread.name for thread in threads() - alive]

    deadline = time.monotonic() + SOON_S
    while held() != (0, []) and time.monotonic() < deadline:
        time.sleep(0.05)
    return held()


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param({"exec": {"command": ["true"]}}, id="a command"),
        pytest.param({"exec": {"command": ["/none"]}}, id="a command that is not there"),
        pytest.param({"httpGet": {"path": "/"}}, id="a request"),
        pytest.param({"httpGet": {"port": 1}}, id="a request that is refused"),
        pytest.param({"httpGet": {"host": "localhost"}}, id="a request to a name"),
        pytest.param({"tcpSocket": {}}, id="a connection"),
        pytest.param({"cni": {"confDir": "/none", "binDirs": ["/none"]}}, id="a look at files"),
    ],
)
def test_a_check_holds_no_more_after_hours(kind: dict[str, dict[str, object]], peer: Peer) -> None:
    ((word, keys),) = kind.items()
    if word in ("httpGet", "tcpSocket"):
        keys = {"port": peer.port, **keys}
    held_by({word: keys})


def held_by(
    kind: Mapping[str, object],
    before_each: Callable[[], None] = lambda: None,
    period_s: float = PERIOD_S,
    around: Surroundings | None = None,
) -> None:
    """What a check holds that is due at each turn; `before_each` changes what it looks at. Nothing is to be more."""
    check = {"name": "it", **kind, "periodSeconds": int(period_s)}
    (read,) = settings.parse(json.dumps({"mode": "pod", "checks": [check]}).encode()).checks
    clock = Clock(0.0)
    engine = CheckEngine([check_spec(read, around=around)], wall=clock, monotonic=clock)

    def turn() -> None:
        before_each()
        engine._workers[0]._turn()
        engine._turn()

    assert (0, []) == held_over(turn, clock, period_s)
    assert VIRTUAL_S / period_s == sum(count for _, _, count in engine.runs())
    return frozenset(str(state) for _, state, count in engine.runs() if count)


@pytest.mark.parametrize(
    ("udp", "tcp"),
    [
        pytest.param("answers", "closes", id="that answer, and close a connection"),
        pytest.param("nobody", "nobody", id="that are not there"),
    ],
)
def test_dns_servers(udp: str, tcp: str) -> None:
    with dns_servers({"127.0.6.1": udp}, {"127.0.6.1": tcp}) as port:
        held_by({"dns": {"service": "127.0.6.1", "port": port}})


def test_folders_that_come_and_go_are_followed_anew(tmp_path: Path) -> None:
    folder = tmp_path / "net.d"

    def come_or_go() -> None:
        if folder.exists():
            folder.rmdir()
        else:
            folder.mkdir()

    held_by({"cni": {"confDir": str(folder), "binDirs": [str(tmp_path)]}}, come_or_go, SELDOM_S)


def test_sockets_of_plugins_that_were_killed(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(tmp_path / "left.sock"))
    held_by({"kubeletPlugins": {"folder": str(tmp_path)}}, period_s=SELDOM_S)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param({"runtimeName": "fake", "runtimeVersion": "1.0", "runtimeApiVersion": "v1"}, id="that answers"),
        pytest.param("garbage", id="that answers garbage"),
    ],
)
def test_a_runtime(answer: object, tmp_path: Path) -> None:
    runtime = Runtime(tmp_path)
    ready = [{"type": kind, "status": True} for kind in ("RuntimeReady", "NetworkReady")]
    runtime.says(**{"*": "do"}, Version=answer, Status={"status": {"conditions": ready}})
    runtime.start()
    try:
        held_by({"runtime": {"socket": runtime.socket}})
    finally:
        runtime.process.kill()


def by_turns(*changes: Callable[[], object]) -> Callable[[], None]:
    """One after the other, a turn each, so that a check goes through what it finds good and bad again and again."""
    turns = itertools.cycle(changes)
    return lambda: (next(turns)(), None)[1]


def certificates(root: Path) -> Looked:
    file = test_certificates.made(root, days=90)
    away = root / "away"
    kind = {"certificates": {"folder": str(root), "files": [file.name]}}
    return kind, by_turns(lambda: file.rename(away), lambda: away.rename(file))


def connection_tables(root: Path) -> Looked:
    node = test_connection_tables.Node(root)
    drops = itertools.count(0, 10**6)

    def drop() -> None:
        node.conntrack(262144, drop=next(drops))

    kind = {"connectionTables": {"proc": str(root)}}
    return kind, by_turns(drop, drop, (root / "sys/net/netfilter/nf_conntrack_count").unlink)


def filesystem(root: Path) -> Looked:
    folder = root / "mount"
    return {"filesystem": {"mounts": [str(folder)]}}, by_turns(folder.mkdir, folder.rmdir)


def gpu(root: Path) -> Looked:
    machine, listed = test_gpu.Machine(root), root / "gpus" / test_gpu.A
    machine.function(test_gpu.A)
    machine.driver.mkdir()
    kind = {"gpu": {"sysfs": str(machine.sysfs), "driverList": str(machine.driver)}}
    return kind, by_turns(listed.mkdir, listed.rmdir)


def kernel_log(root: Path) -> Looked:
    node = test_kernel_log.Node(root)
    files = {"path": "kmsg", "bootId": "boot_id", "mountinfo": "mountinfo", "sys": "sys", "positionFile": "position"}
    hide, away = node.log.rename, root / "away"
    seen = by_turns(
        lambda: node.say(test_kernel_log.IO.format("sda"), 5), lambda: hide(away), lambda: away.rename(node.log)
    )
    return {"kernelLog": {key: str(root / file) for key, file in files.items()}}, seen


def link(root: Path) -> Looked:
    ports, flag = test_link.Sys(root), itertools.cycle(["up", "down"])
    kind = {"link": {"ports": ["eth0"], "sys": str(root)}}
    return kind, lambda: ports.interface(operstate=next(flag), rx_errors="3")


def pod_addresses(root: Path) -> Looked:
    node, count = test_pod_addresses.Node(root), itertools.count()
    node.configured(test_pod_addresses.bridge([{"subnet": "10.1.0.0/28"}]))
    kind = {"podAddresses": {"confDir": str(node.conf), "dataDir": str(node.data)}}
    return kind, lambda: node.given_out("10.1.0.0/28", next(count) % 14)


def pressure(root: Path) -> Looked:
    node, folder = test_pressure.Node(root), root / "folder"
    trees = {"proc": str(root / "proc"), "cgroup": str(root / "cgroup")}
    return {"pressure": {"folder": str(folder), **trees}}, by_turns(
        folder.mkdir, lambda: node.group("kubepods.slice", 450), lambda: node.group("kubepods.slice"), folder.rmdir
    )


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        pytest.param(certificates, {"passed", "unknown"}, id="certificates, that come and go"),
        pytest.param(connection_tables, {"passed", "warned", "failed"}, id="tables of connections, full and gone"),
        pytest.param(filesystem, {"passed", "failed"}, id="a folder to write to, that comes and goes"),
        pytest.param(gpu, {"passed", "failed"}, id="a GPU, that the driver has and has not"),
        pytest.param(kernel_log, {"passed", "failed"}, id="the kernel's log, with errors, taken away and back"),
        pytest.param(link, {"passed", "failed"}, id="a port, up and down"),
        pytest.param(pod_addresses, {"passed", "warned", "failed"}, id="addresses, given out and given back"),
        pytest.param(pressure, {"passed", "warned", "unknown"}, id="threads and syncs, many and without a folder"),
    ],
)
def test_a_look_at_what_changes(made: Callable[[Path], Looked], expected: set[str], tmp_path: Path) -> None:
    kind, before_each = made(tmp_path)
    assert expected == held_by(kind, before_each, SELDOM_S)


def test_a_look_at_the_clock() -> None:
    assert {"unknown"}.isdisjoint(held_by({"timeSync": {}}))


def test_a_reader() -> None:
    failed = Finding(CheckState.FAILED, "soft lockup on CPU 3")
    with test_reader.reading(log=(Severity.GATE, failed)) as port:
        assert {"failed"} == held_by({"reader": {"port": port}})


def test_a_reader_that_is_not_there() -> None:
    assert {"unknown"} == held_by({"reader": {"port": free_port()}})


@pytest.mark.parametrize(
    ("behaviour", "expected"),
    [
        pytest.param("tls", {"passed"}, id="that answer"),
        pytest.param("closes", {"unknown"}, id="that close each connection"),
    ],
)
def test_the_way_to_the_service_and_to_other_nodes(behaviour: str, expected: set[str]) -> None:
    port = free_port("127.0.6.5")
    keys = {"service": "127.0.6.5", "servicePort": port, "peers": ["127.0.6.6", "127.0.6.7"], "peerPort": port}
    with (
        test_service_path.serving("127.0.6.5", behaviour, port),
        test_service_path.serving("127.0.6.6", behaviour, port),
    ):
        assert expected == held_by({"servicePath": keys}, period_s=SELDOM_S)


def test_the_way_to_peers() -> None:
    api, dns = test_pod_network.API, test_pod_network.DNS
    with dns_servers({dns: "answers"}, {dns: "answers"}) as dns_port:
        cluster = test_pod_network.Cluster(dns_port)
        with cluster.stack:
            for number in (1, 2, 3):
                cluster.agent(number)
            keys = {"port": cluster.port, "apiServer": api, "apiPort": cluster.api_port}
            keys |= {"dns": dns, "dnsPort": dns_port}
            around = Surroundings("own", "ns", cluster.board, lambda _service: cluster, cluster.opened_socket)
            assert {"passed"} == held_by({"podNetwork": keys}, period_s=SELDOM_S, around=around)


def test_units_of_systemd_and_a_bus_that_comes_and_goes(tmp_path: Path) -> None:
    bus, away = tmp_path / "bus", tmp_path / "away"
    systemd = FakeBus(bus, test_systemd_unit.properties())
    kind = {"systemdUnit": {"units": [test_systemd_unit.UNIT], "socket": str(bus)}}
    try:
        seen = by_turns(lambda: None, lambda: bus.rename(away), lambda: away.rename(bus))
        assert {"passed", "unknown"} == held_by(kind, seen)
    finally:
        systemd.stop()


def test_each_kind_is_tried_here() -> None:
    here = Path(__file__).read_text()
    assert [] == [kind for kind in KINDS if f'{{"{kind}": ' not in here]


def test_the_news_of_the_kernel_are_read_by_one_descriptor(tmp_path: Path) -> None:
    """Routes and folders: each look follows what it finds, again and again."""
    folder, clock, events = tmp_path / "folder", Clock(0.0), KernelEvents()
    changes, routes = FolderWatch((str(folder),)), RouteWatch()

    def turn() -> None:
        folder.mkdir() if not folder.exists() else folder.rmdir()
        changes.taken()
        changes.follow()
        routes.taken()
        for followed in (changes, routes):
            events.follow(followed.descriptor(), lambda: None)
        events._unblock()
        events._turn()

    assert (0, []) == held_over(turn, clock)
    changes.close()
    routes.close()


@pytest.mark.parametrize("heard", [pytest.param(True, id="of a server"), pytest.param(False, id="that is refused")])
def test_a_grpc_probe(*, heard: bool) -> None:
    """In a process of its own: gRPC's threads would hang the children that other tests fork."""
    argv = [sys.executable, "-c", GRPC_HELD, "heard" if heard else "refused"]
    assert "(0, [])" == subprocess.run(argv, capture_output=True, text=True, timeout=110).stdout.strip()


def test_pods_that_come_and_go_leave_no_probe_behind() -> None:
    probe = {"exec": {"command": ["true"]}, "periodSeconds": 1}
    container = {"name": "c", "readinessProbe": probe, "livenessProbe": probe, "startupProbe": probe}
    clock, number = Clock(0.0), iter(range(10**6))
    results = {kind: Results(lambda _update: None) for kind in ProbeType}
    manager = ProberManager(
        get_pod_status=lambda _uid: None,
        probe=lambda *_of: None,
        readiness=results[ProbeType.READINESS],
        liveness=results[ProbeType.LIVENESS],
        startup=results[ProbeType.STARTUP],
        semantics=Semantics(),
        wall=clock,
        monotonic=clock,
        random=lambda: 0.0,
        start_wall=0.0,
    )

    def turn() -> None:
        spec = {"metadata": {"uid": f"u{next(number)}", "name": "p"}, "spec": {"containers": [container]}}
        pod = parse_pod(msgspec.json.encode(spec))
        manager.add_pod(pod)
        workers = list(manager._workers.values())
        assert 3 == len(workers)
        manager.remove_pod(pod)
        for worker in workers:
            worker.join(20)

    assert (0, []) == held_over(turn, clock)
