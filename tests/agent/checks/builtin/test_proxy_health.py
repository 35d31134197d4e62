"""What kube-proxy answers by release, and how the check `servicePath` reads it: kubernetes pkg/proxy/healthcheck.

Reported where the answer was misread: kubernetes/node-problem-detector#1176 (fixed by #1306), gardener/gardener#11858,
zalando-incubator/kubernetes-on-aws#9515. What the answers are: kubernetes/kubernetes#83498 (1.17), #116470 (1.28),
#129271; cilium/cilium#11733, antrea-io/antrea#4196 and ovn-kubernetes/ovn-kubernetes#3469 in kube-proxy's place.
"""

import contextlib
import json
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from agent.checks.builtin.service_path import Check, Place, Settings, Way, look_all, proxy_way
from agent.checks.proxy_health import needs_livez
from agent.checks.state import CheckState
from tools.kit.cases import cases

NOW, ZERO = (12, 31, 0.5), (0, 0, 0.0)
FRESH, OLD = (12, 30, 50.25), (12, 0, 0.0)
MAX_AGE_S = 120


@dataclass(frozen=True)
class Proxy:
    """A kube-proxy at 12:31:00.5. `updated`: its last sync (h, m, s). `late`: a change has waited for too long."""

    updated: tuple[int, int, float] = OLD
    late: bool = False
    deleted: bool = False


def printed(time: tuple[int, int, float]) -> str:
    """As Go prints a time, with the monotonic clock."""
    if time == ZERO:
        return "0001-01-01 00:00:00 +0000 UTC"
    return f"2026-09-01 {time[0]:02}:{time[1]:02}:{time[2]:09.6f} +0000 UTC m=+{time[0] * 3600 + time[1] * 60}.1"


def as_json(time: tuple[int, int, float]) -> str:
    return "0001-01-01T00:00:00Z" if time == ZERO else f"2026-09-01T{time[0]:02}:{time[1]:02}:{time[2]:09.6f}Z"


def reply(code: int, body: str) -> bytes:
    head = "Content-Type: application/json\r\nX-Content-Type-Options: nosniff\r\nConnection: close"
    return f"HTTP/1.1 {code} {'OK' if code == 200 else 'Service Unavailable'}\r\n{head}\r\n\r\n{body}".encode()


NONE = b"HTTP/1.1 404 Not Found\r\nConnection: close\r\n\r\n404 page not found\n"


def until_1_16(path: str, proxy: Proxy) -> bytes:
    """It syncs each 30 s, changes or not, and has failed after a minute without; `late` has no meaning yet."""
    if path != "/healthz":
        return NONE
    body = f'{{"lastUpdated": "{printed(proxy.updated)}","currentTime": "{printed(NOW)}"}}'
    return reply(503 if proxy.updated == OLD else 200, body)


def until_1_27(path: str, proxy: Proxy) -> bytes:
    if path != "/healthz":
        return NONE
    updated = proxy.updated if proxy.late else NOW
    body = f'{{"lastUpdated": "{printed(updated)}","currentTime": "{printed(NOW)}"}}'
    return reply(503 if proxy.late else 200, body)


def from_1_28(path: str, proxy: Proxy) -> bytes:
    well = not proxy.late and not (proxy.deleted and path == "/healthz")
    updated = NOW if well else proxy.updated
    eligible = f', "nodeEligible": {str(not proxy.deleted).lower()}' if path == "/healthz" else ""
    body = f'{{"lastUpdated": "{printed(updated)}","currentTime": "{printed(NOW)}"{eligible}}}'
    return reply(200 if well else 503, body)


def newest(path: str, proxy: Proxy) -> bytes:
    well = not proxy.late and not (proxy.deleted and path == "/healthz")
    body: dict[str, object] = {"lastUpdated": as_json(NOW if well else proxy.updated), "currentTime": as_json(NOW)}
    body |= {"nodeEligible": not proxy.deleted} if path == "/healthz" else {}
    body |= {"healthy": not proxy.late}
    if proxy.updated != ZERO:
        body["status"] = {"IPv4": {"lastUpdated": as_json(proxy.updated), "healthy": not proxy.late}}
    return reply(200 if well else 503, json.dumps(body))


RELEASES = {"1.16": until_1_16, "1.17 to 1.27": until_1_27, "1.28 to 1.32": from_1_28, "with #129271": newest}
NEXT_TO_DELETED = ("1.28 to 1.32", "with #129271")  # the earlier ones do not look at their Node

# The answer of each release, in the order of RELEASES: what is made of it, "-" for what does not happen there.
TABLE = [
    ("well", Proxy(FRESH), "reached", "reached", "reached", "reached"),
    ("well, quiet for half an hour", Proxy(OLD), "-", "reached", "reached", "reached"),
    ("it has just started", Proxy(ZERO), "reached", "reached", "reached", "reached"),
    ("a change waits", Proxy(FRESH, late=True), "-", "not healthy", "not healthy", "not healthy"),
    ("no sync for half an hour", Proxy(OLD, late=True), *["its rules are too old"] * 4),
    ("it never could sync", Proxy(ZERO, late=True), "-", "not healthy", "not healthy", "not healthy"),
    ("deleted soon", Proxy(FRESH, deleted=True), "-", "-", "reached", "reached"),
    ("deleted soon, quiet for half an hour", Proxy(OLD, deleted=True), "-", "-", "reached", "reached"),
    ("deleted soon, just started", Proxy(ZERO, deleted=True), "-", "-", "reached", "reached"),
    ("deleted soon, a change waits", Proxy(FRESH, late=True, deleted=True), "-", "-", *["not healthy"] * 2),
    ("deleted soon, no sync", Proxy(OLD, late=True, deleted=True), "-", "-", *["its rules are too old"] * 2),
]


@cases(
    "release, proxy, said",
    *[
        (f"{name}, {release}", release, proxy, said)
        for name, proxy, *all_said in TABLE
        for release, said in zip(RELEASES, all_said, strict=True)
        if said != "-"
    ],
)
def test_each_release_is_read_by_what_it_means(release: str, proxy: Proxy, said: str) -> None:
    healthz, livez = (RELEASES[release](path, proxy) for path in ("/healthz", "/livez"))
    asked = livez if needs_livez(healthz) else b""
    way = proxy_way(Place("proxy", "10.0.0.1", 10256), healthz, MAX_AGE_S, asked)
    assert (said, said == "reached") == (way.said, way.open), way


def test_livez_is_asked_only_where_healthz_leaves_it_open() -> None:
    asked = [
        (release, proxy.deleted)
        for _, proxy, *_ in TABLE
        for release, answer in RELEASES.items()
        if needs_livez(answer("/healthz", proxy))
    ]
    assert {("1.28 to 1.32", True)} == set(asked)


DELETED = from_1_28("/healthz", Proxy(OLD, deleted=True))


@cases(
    "livez, said",
    ("no answer", b"", "reached"),
    ("a server without that path", NONE, "reached"),
    ("a server that answers each path alike", DELETED, "reached"),
    (
        "another status",
        reply(500, '{"lastUpdated": "2026-09-01T00:00:00Z", "currentTime": "2026-09-01T00:00:00Z"}'),
        "reached",
    ),
    ("half an answer", from_1_28("/livez", Proxy(OLD, late=True))[:90], "reached"),
    ("it is not well", from_1_28("/livez", Proxy(OLD, late=True)), "its rules are too old"),
)
def test_a_503_that_the_deletion_explains_is_no_fault_unless_livez_reports_one(livez: bytes, said: str) -> None:
    """The worst that a guess could do is to close a node while its pods are moved away."""
    assert said == proxy_way(Place("proxy", "10.0.0.1", 10256), DELETED, MAX_AGE_S, livez).said


def test_no_age_is_made_of_the_time_before_the_first_sync() -> None:
    way = proxy_way(Place("proxy", "10.0.0.1", 10256), until_1_16("/healthz", Proxy(ZERO)), MAX_AGE_S)
    assert "it has not set rules yet" == way.detail


def test_what_stands_in_for_kube_proxy_is_read_by_its_own_word() -> None:
    """Cilium and OVN-Kubernetes have no key that says why: their 503 stays a fault."""
    body = f'{{"lastUpdated": "{printed(OLD)}","currentTime": "{printed(NOW)}"}}'
    ways = [proxy_way(Place("proxy", "10.0.0.1", 10256), reply(code, body), 3600, NONE) for code in (200, 503)]
    assert ["reached", "not healthy"] == [way.said for way in ways]


@contextlib.contextmanager
def serving(release: str, proxy: Proxy, asked: list[str], *, livez: bool = True) -> Iterator[int]:
    """A kube-proxy on loopback, by its port; `livez`: whether it answers there."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        held = []

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    link, _ = server.accept()
                    path = link.recv(4096).split()[1].decode()
                    asked.append(path)
                    if path == "/livez" and not livez:
                        held.append(link)
                        continue
                    link.sendall(RELEASES[release](path, proxy))
                    link.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
        thread.join(20)
        for link in held:
            link.close()


def settings(port: int) -> Settings:
    return Settings(service="127.0.0.1", service_port=1, proxy="127.0.0.1", proxy_port=port)


def seen(port: int, within_s: float) -> Way:
    return next(way for way in look_all(settings(port), within_s) if way.to.kind == "proxy")


@pytest.mark.parametrize("release", NEXT_TO_DELETED)
def test_over_the_loopback_a_node_about_to_be_deleted_is_reached(release: str) -> None:
    asked: list[str] = []
    with serving(release, Proxy(OLD, deleted=True), asked) as port:
        way = seen(port, 20.0)
    assert (True, "of a node that is about to be deleted") == (way.open, way.detail)
    assert (["/healthz", "/livez"] if release == "1.28 to 1.32" else ["/healthz"]) == asked


def test_over_the_loopback_a_proxy_of_such_a_node_that_is_not_well_has_failed() -> None:
    with serving("1.28 to 1.32", Proxy(OLD, late=True, deleted=True), []) as port:
        found = Check(settings(port), 20.0)()
    assert (CheckState.FAILED, True) == (found.state, "its rules are too old (1860 s)" in found.output), found


def test_a_livez_that_never_answers_takes_no_longer_than_the_run_and_closes_no_node() -> None:
    with serving("1.28 to 1.32", Proxy(OLD, deleted=True), [], livez=False) as port:
        assert seen(port, 0.5).open
