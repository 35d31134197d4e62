"""What the agent holds while virtual hours go by: as many threads and descriptors at their end as before."""

import gc
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
from agent.checks.catalogue import check_spec
from agent.checks.changes import Changes
from agent.checks.engine import CheckEngine
from agent.checks.events import Events
from agent.checks.routes import Routes
from agent.model import ProbeType
from agent.prober.manager import ProberManager
from agent.prober.results import Results
from agent.semantics import Semantics
from agent.wire.pod import parse_pod
from tests.bench.agent.peer import Peer
from tests.fakes.cri import Runtime
from tests.fakes.dns import dns_servers
from tests.kit.clock import Clock

PERIOD_S, VIRTUAL_S = 100.0, 10_000.0
SELDOM_S = 500.0  # of what costs a process, or waits
SOON_S = 20.0  # in which a library closes what it has let go
GRPC_HELD = """
import sys
from agent.probe.grpc import grpc_check
from tests.agent.checks.test_long_run import held_over
from tests.differential.scripted import Script, Scripted
from tests.differential.fixed.answering import GRPC
from tests.kit.clock import Clock
given = GRPC["G5: SERVING"]["script"]
server = Scripted()
server.script = Script(given["greeting"].encode("latin-1"), given["reply"].encode("latin-1"))
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
    kind: Mapping[str, object], before_each: Callable[[], None] = lambda: None, period_s: float = PERIOD_S
) -> None:
    """What a check holds that is due at each turn; `before_each` changes what it looks at. Nothing is to be more."""
    check = {"name": "it", **kind, "periodSeconds": int(period_s)}
    (read,) = settings.parse(json.dumps({"mode": "pod", "checks": [check]}).encode()).checks
    clock = Clock(0.0)
    engine = CheckEngine([check_spec(read)], wall=clock, monotonic=clock)

    def turn() -> None:
        before_each()
        engine._workers[0]._turn()
        engine._turn()

    assert (0, []) == held_over(turn, clock, period_s)
    assert VIRTUAL_S / period_s == sum(count for _, _, count in engine.runs())


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


def test_the_news_of_the_kernel_are_read_by_one_descriptor(tmp_path: Path) -> None:
    """Routes and folders: each look follows what it finds, again and again."""
    folder, clock, events = tmp_path / "folder", Clock(0.0), Events()
    changes, routes = Changes((str(folder),)), Routes()

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
