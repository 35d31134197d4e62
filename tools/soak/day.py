"""R31: a day's work in half an hour. What both processes take must not grow by it."""

import json
import math
import os
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from extender.why.history import EVENTS_MAX
from extender.why.journal import STEPS_MAX
from extender.why.pods import PODS_MAX
from tests.extender.builders import pod_json
from tests.scripted.extender_process import ExtenderProcess
from tests.scripted.status_api_process import StatusApiProcess
from tools.bench.figures import median
from tools.fakes.api_server import FakeApiServer
from tools.soak import stage
from tools.soak.rows import Progress, Trial

MINUTES = 30.0  # for 24 hours of a cluster
DAY_S = MINUTES * 60
HOUR_S = DAY_S / 24
NODES = 100
# Of a day. kube-apiserver ends a watch after five to ten minutes and says where it is every minute; a token lives for
# an hour and is renewed earlier.
WATCH_ENDS, BOOKMARKS, TOKENS, FLIPS, CALLS = 288, 1440, 30, 100_000, 1_000_000
LOOK_EVERY_S = 1.0
STATUS_API_EVERY_S = 5.0
TURN_PAUSE_S = 0.05  # between two turns of all nodes, so that each is decided on by itself
LATE = 3  # times as long as a row lasts: what is not done by then is missing
GROWTH_LIMIT_MIB = 1.0  # an hour of the day
TRUE_WITHIN_S = 5.0
PAGES = ("/api/v1/nodes", "/api/v1/gates", "/api/v1/history", "/metrics")


@dataclass
class Duty:
    """Something that is done again and again. wanted: how often; every_s: how far apart."""

    what: str
    wanted: int
    every_s: float
    do: Callable[[], None]
    due: float = 0.0
    done: int = 0


def duty(what: str, of_a_day: int, part: float, do: Callable[[], None]) -> Duty:
    return Duty(what, max(1, round(of_a_day * part)), DAY_S / of_a_day, do)


def fulfil(duties: Sequence[Duty], *, limit_s: float, progress: Callable[[str], None]) -> None:
    """Each at its times; one that comes late is made up for. Ends when all are done, or at the limit."""
    began = time.monotonic()
    for one in duties:
        one.due = began + one.every_s
    while (left := [one for one in duties if one.done < one.wanted]) and time.monotonic() < began + limit_s:
        first = min(left, key=lambda one: one.due)
        if (early_s := first.due - time.monotonic()) > 0:
            time.sleep(early_s)
        first.do()
        first.done += 1
        first.due += first.every_s
        progress(", ".join(f"{one.done:,} {one.what}" for one in duties))


class Look(NamedTuple):
    """What some processes take together. at: monotonic seconds."""

    at: float
    rss_mib: float
    descriptors: int
    threads: int


def look(pids: Sequence[int]) -> Look:
    rss_mib, descriptors, threads = 0.0, 0, 0
    for pid in pids:
        with suppress(OSError):
            pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
            rss_mib += pages * os.sysconf("SC_PAGE_SIZE") / 2**20
            descriptors += sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())
            threads += sum(1 for _ in Path(f"/proc/{pid}/task").iterdir())
    return Look(time.monotonic(), rss_mib, descriptors, threads)


def slope(points: Sequence[tuple[float, float]]) -> float:
    """By least squares: how much y grows while x grows by one. 0 for fewer than two points."""
    if len(points) < 2:
        return 0.0
    middle_x = sum(x for x, _ in points) / len(points)
    middle_y = sum(y for _, y in points) / len(points)
    wide = sum((x - middle_x) ** 2 for x, _ in points)
    return sum((x - middle_x) * (y - middle_y) for x, y in points) / wide if wide else 0.0


class Scheduler:
    """Calls about one pod after the other, over a kept connection. failures: what came instead of an answer.

    pods: how many there are; then it begins again.
    """

    def __init__(self, port: int, names: Sequence[str], *, pods: float = math.inf) -> None:
        self.failures: list[str] = []
        self.calls = 0
        self._port, self._pods = port, pods
        self._names = json.dumps(list(names), separators=(",", ":")).encode()
        self._sock: socket.socket | None = None

    def ask(self) -> dict[str, object]:
        """About the next pod; {} where there was no answer."""
        pod = int(self.calls % self._pods)
        self.calls += 1
        meta = b'{"name":"train-%d","namespace":"team-a","uid":"%036d"}' % (pod, pod)
        body = b'{"Pod":{"metadata":%b,"spec":{}},"Nodes":null,"NodeNames":%b}' % (meta, self._names)
        head = b"POST /filter HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\n" % len(body)
        try:
            if self._sock is None:
                self._sock = socket.create_connection(("127.0.0.1", self._port), timeout=stage.SCHEDULER_TIMEOUT_S)
            self._sock.sendall(head + body)
            answer: dict[str, object] = json.loads(self._read(self._sock))
        except (OSError, ValueError) as e:
            self.close()
            self.failures.append(repr(e))
            return {}
        if answer.get("Error"):
            self.failures.append(str(answer["Error"]))
        return answer

    @staticmethod
    def _read(sock: socket.socket) -> bytes:
        data = b""
        while b"\r\n\r\n" not in data:
            if not (piece := sock.recv(65536)):
                raise ConnectionError("closed")
            data += piece
        head, _, body = data.partition(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200"):
            raise ValueError(head.splitlines()[0].decode("latin-1"))
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
        while len(body) < length:
            if not (piece := sock.recv(65536)):
                raise ConnectionError("closed")
            body += piece
        return body

    def close(self) -> None:
        if self._sock is not None:
            self._sock.close()
            self._sock = None


class Cluster:
    """The objects, and what changes of them. closed: nodes whose health pod is not Ready."""

    def __init__(self, api: FakeApiServer, token: Path) -> None:
        self.names = stage.fill(api, NODES)
        self.closed = set(self.names[::4])
        self._api, self._token = api, token
        self._tokens = self._flips = 0
        self.renew()

    def renew(self) -> None:
        """Another token: only that one is taken from now on."""
        self._tokens += 1
        part = self._token.with_suffix(".part")
        part.write_text(f"token-{self._tokens}")
        part.rename(self._token)  # as the kubelet puts it there
        self._api.tokens = {f"token-{self._tokens}"}

    def flip(self) -> None:
        """The next node's health pod turns over."""
        name = self.names[self._flips % NODES]
        self._flips += 1
        self.closed ^= {name}
        self._api.put(pod_json(name, Ready="False" if name in self.closed else "True"))


@contextmanager
def _both(folder: Path) -> Iterator[tuple[FakeApiServer, Cluster, ExtenderProcess, StatusApiProcess]]:
    with FakeApiServer() as api:
        token = folder / "token"
        cluster = Cluster(api, token)
        kubeconfig = api.write_kubeconfig(folder / "kubeconfig-token", user={"tokenFile": str(token)})
        config = {"kubernetes": {"kubeconfig": str(kubeconfig)}}
        with ExtenderProcess(api, folder, config=config) as extender:
            extender.wait_ready(30.0)
            with StatusApiProcess(extender.settings, folder) as status_api:
                status_api.process.wait_ready(status_api.ready, timeout_s=20)
                yield api, cluster, extender, status_api


def hold(trial: Trial) -> None:
    with _both(trial.folder) as (api, cluster, extender, status_api):
        part = trial.seconds / DAY_S
        # In a whole day each pod is a new one, and as many as are remembered came before; a shorter row has its part of
        # them, again and again: then the warm-up is shorter, too.
        pods = round(PODS_MAX * min(1.0, part) * 1.02)
        scheduler = Scheduler(extender.port, cluster.names, pods=math.inf if part >= 1 else pods)
        _warm_up(trial, cluster, scheduler, pods)
        looks: dict[str, list[Look]] = {"extender": [], "status-api": []}

        def take_a_look() -> None:
            looks["extender"].append(look(stage.pids(extender)))
            looks["status-api"].append(look(stage.pids(status_api)))

        def read_a_page() -> None:
            page = PAGES[asked.done % len(PAGES)]
            if status_api.get(page)[0] != 200:
                scheduler.failures.append(f"no {page}")

        asked = Duty("pages", max(1, int(trial.seconds / STATUS_API_EVERY_S)), STATUS_API_EVERY_S, read_a_page)
        duties = [
            duty("calls", CALLS, part, lambda: scheduler.ask() and None),
            duty("flips", FLIPS, part, cluster.flip),
            duty("bookmarks", BOOKMARKS, part, api.bookmark),
            duty("ended watches", WATCH_ENDS, part, api.end_watches),
            duty("tokens", TOKENS, part, cluster.renew),
            asked,
            Duty("looks", max(2, int(trial.seconds / LOOK_EVERY_S)), LOOK_EVERY_S, take_a_look),
        ]
        before = scheduler.calls
        fulfil(duties, limit_s=LATE * trial.seconds, progress=Progress(trial.say))
        trial.tell("of a day", part * 100, "%")
        for one in duties:
            trial.at_least(one.wanted, one.what, one.done, "")
        trial.tell("filter calls of the warm-up", before, "")
        _judge(trial, looks)
        trial.at_most(0, "answers that were wrong at the end", _wrong(cluster, scheduler), "")
        trial.at_most(0, "calls and pages that failed", len(scheduler.failures), "")
        trial.at_most(0, "tracebacks", stage.tracebacks(extender) + stage.tracebacks(status_api), "")
        scheduler.close()
        for text in scheduler.failures[:5]:
            trial.say(text)


def _warm_up(trial: Trial, cluster: Cluster, scheduler: Scheduler, pods: int) -> None:
    """What is remembered is bounded: as much history, as many pods and steps as there may be."""
    progress = Progress(trial.say)
    for turn in range(round(EVENTS_MAX / NODES * 1.1)):
        for _ in range(NODES):
            cluster.flip()
        time.sleep(TURN_PAUSE_S)
        progress(f"warm-up: {turn * NODES:,} flips")
    while scheduler.calls < max(pods, STEPS_MAX * 1.1):
        scheduler.ask()
        progress(f"warm-up: {scheduler.calls:,} calls")


def _judge(trial: Trial, looks: Mapping[str, Sequence[Look]]) -> None:
    """By what was seen after a quarter of it: until then allocators and tables still find their size."""
    for who, those in looks.items():
        these = those[len(those) // 4 :]
        hours = [(one.at / HOUR_S, one.rss_mib) for one in these]
        trial.tell(f"{who}: memory at the end", these[-1].rss_mib if these else 0.0, "MiB")
        trial.at_most(GROWTH_LIMIT_MIB, f"{who}: growth an hour of the day", slope(hours), "MiB")
        for what, limit in (("descriptors", 2), ("threads", 0)):
            found = [getattr(one, what) for one in these]
            quarter = max(1, len(found) // 4)  # a watch that is just opened anew moves one look, not the middle one
            before, after = median(found[:quarter]), median(found[-quarter:])
            trial.at_most(limit, f"{who}: {what} more or less than the {before:g}", abs(after - before), "")


def _wrong(cluster: Cluster, scheduler: Scheduler) -> int:
    """How many nodes are told wrongly when nothing changes any more."""
    until = time.monotonic() + TRUE_WITHIN_S
    while True:
        told = scheduler.ask().get("FailedAndUnresolvableNodes") or {}
        wrong = len(cluster.closed ^ set(told))  # type: ignore[call-overload]
        if not wrong or time.monotonic() > until:
            return wrong
        time.sleep(0.05)
