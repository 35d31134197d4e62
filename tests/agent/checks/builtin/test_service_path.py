"""The check `servicePath` tells a node that is cut off from others that are."""

import contextlib
import errno
import json
import os
import socket
import ssl
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from agent.checks.builtin import service_path
from agent.checks.builtin.service_path import Check, Place, Settings, Way, judge, neighbours, places, proxy_way
from agent.checks.state import CheckState, Finding
from agent.settings import parse
from component.settings import SettingsError
from tests.agent.probe.http_target import self_signed
from tools.kit.cases import cases
from tools.kit.ports import free_port

AMPLE_S = 20.0
SHORT_S = 1.0  # where waiting for nothing is what is tried
PORTS = {"service": 443, "apiServer": 6443, "proxy": 10256, "peer": 10250}


def way(kind: service_path.Kind, said: str, number: int = 1) -> Way:
    return Way(Place(kind, f"10.0.0.{number}", PORTS[kind]), said)


def ways(text: str) -> list[Way]:
    """`service silent, 2 peer reached, ...`"""
    parts = [part if part[0].isdigit() else f"1 {part}" for part in text.split(", ")]
    told = [part.replace("stalled", service_path.STALLED).split(" ", 2) for part in parts]
    return [way(kind, said) for times, kind, said in told for _ in range(int(times))]


VERDICTS = [
    ("all is well", "service reached, apiServer reached, proxy reached, peer reached", "passed"),
    ("the Service's address alone leads nowhere", "service silent, apiServer reached", "failed"),
    ("the Service's address is refused, no server is", "service refused, apiServer reached", "failed"),
    ("the API servers may be down", "service silent, apiServer silent", "unknown"),
    ("no API server listens", "service silent, apiServer refused, apiServer refused", "shared"),
    ("one does not, one is silent", "service silent, apiServer refused, apiServer silent", "unknown"),
    ("the API servers are down for all", "service silent, apiServer silent, peer reached, peer refused", "shared"),
    ("one peer proves little", "service silent, apiServer silent, peer reached", "unknown"),
    ("perhaps only its rules are missing here", "service silent, peer reached, peer reached", "unknown"),
    ("nothing to compare with", "service silent", "unknown"),
    ("who answers speaks no TLS", "service no TLS", "unknown"),
    ("no route at all", "service cannot be sent", "failed"),
    ("kube-proxy is gone too", "service silent, proxy refused", "failed"),
    ("kube-proxy is gone, its rules still lead there", "service reached, proxy refused", "failed"),
    ("kube-proxy stands still", "service reached, proxy its rules are too old", "failed"),
    ("perhaps those two are gone", "service reached, peer silent, peer silent, peer reached", "warned"),
    ("both are, and no further one is known", "service reached, peer silent, peer silent", "warned"),
    ("the further are not", "service reached, 2 peer silent, 1 peer reached, 6 peer reached", "warned"),
    ("half of them are not", "service reached, 3 peer silent, 3 peer reached, 3 peer silent", "warned"),
    ("one further proves little", "service reached, 3 peer silent, 1 peer silent", "warned"),
    ("no peer at all is reached, of five", "service reached, 3 peer silent, 2 peer silent", "failed"),
    ("most peers", "service reached, 2 peer silent, 1 peer reached, 4 peer silent, 2 peer reached", "failed"),
    ("most peers, and the Service as well", "service silent, 2 peer silent, 1 peer reached", "failed"),
    ("the Service alone, by further peers", "service silent, 2 peer silent, 1 peer reached, 6 peer reached", "unknown"),
    ("the API servers and some nodes", "service silent, apiServer silent, 3 peer silent, 6 peer reached", "shared"),
    ("full-size packets to one of three", "service reached, 2 peer stalled, 1 peer reached", "warned"),
    ("full-size packets to the further", "service reached, 3 peer stalled, 6 peer reached", "warned"),
    ("one is gone, one is strange", "service reached, 1 peer silent, 1 peer stalled", "warned"),
    ("no full-size packet arrives", "service reached, peer stalled, peer stalled, peer stalled", "failed"),
    ("nobody at all is reached", "service silent, peer silent, peer silent", "failed"),
    ("one peer is not reached", "service reached, peer silent, peer reached, peer reached", "warned"),
    ("half of the peers are not most", "service reached, peer silent, peer reached", "warned"),
    ("peers that refuse have been reached", "service reached, peer refused, peer refused", "passed"),
    ("the only peer", "service reached, peer silent", "unknown"),
    ("an API server is down", "service reached, apiServer silent, apiServer reached", "warned"),
]


@cases("seen, state", *VERDICTS)
def test_whose_fault_it_is(seen: str, state: str) -> None:
    assert CheckState(state) is judge(ways(seen)).state


def test_what_fails_is_named_with_what_belongs_to_it() -> None:
    seen = ways("service silent, apiServer reached, peer silent, peer reached, peer reached")
    assert Finding(CheckState.FAILED, "service 10.0.0.1:443: silent") == judge(seen)


# The ring

NODES = [f"10.0.0.{number}" for number in range(1, 101)]


def test_each_node_has_three_others_and_is_looked_at_by_about_as_many() -> None:
    chosen = {node: neighbours(node, NODES) for node in NODES}
    assert {3} == {len(set(peers) - {node}) for node, peers in chosen.items()}
    assert {3} == set(Counter(peer for peers in chosen.values() for peer in peers).values())


def test_a_node_that_goes_changes_the_peers_of_three() -> None:
    changed = [node for node in NODES[1:] if neighbours(node, NODES) != neighbours(node, NODES[1:])]
    assert 3 == len(changed)


def test_a_node_does_not_look_at_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """The list of peers is the same on all nodes, and which of them this is does not have to be said."""
    mine = neighbours("node-7", NODES, 100)[1]
    monkeypatch.setattr(service_path, "is_ours", lambda address: address == mine)
    chosen = [place.address for place in places(Settings(peers=tuple(NODES), node="node-7")) if place.kind == "peer"]
    assert (9, False) == (len(set(chosen)), mine in chosen)


def test_few_nodes() -> None:
    assert ([], ["b"], ["b"]) == (neighbours("a", ["a"]), neighbours("a", ["a", "b"]), neighbours("c", ["b", "b"]))


# kube-proxy

OLD, NEW = "2026-01-01T00:00:00.123456789Z", "2026-01-01T00:03:00.123456789Z"
PRINTED = "2026-01-01 00:03:00.123456789 +0000 UTC"


def proxy(code: int, **body: object) -> bytes:
    return f"HTTP/1.1 {code} X\r\nContent-Type: application/json\r\n\r\n{json.dumps(body)}".encode()


PROXIES = [
    ("well", proxy(200, lastUpdated=NEW, currentTime=NEW, healthy=True), "reached"),
    ("three minutes old", proxy(200, lastUpdated=OLD, currentTime=NEW), "its rules are too old"),
    ("not healthy", proxy(503, lastUpdated=NEW, currentTime=NEW, healthy=False), "not healthy"),
    ("a node soon deleted", proxy(503, lastUpdated=OLD, currentTime=NEW, healthy=True, nodeEligible=False), "reached"),
    (
        "an earlier release of kube-proxy",
        proxy(200, lastUpdated=f"{PRINTED} m=+60.1", currentTime=f"{PRINTED} m=+60.1", nodeEligible=True),
        "reached",
    ),
    ("Cilium in its place", proxy(200, lastUpdated=PRINTED, currentTime=PRINTED), "reached"),
    (
        "an earlier release in another zone, an hour old",
        proxy(200, lastUpdated="2026-01-01 00:00:00.5 +0100 CET", currentTime=f"{PRINTED} m=+4000.1"),
        "its rules are too old",
    ),
    ("nothing", b"", "no answer of kube-proxy's"),
    ("somebody else", b"HTTP/1.1 200 OK\r\n\r\nok", "no answer of kube-proxy's"),
    ("no time", proxy(200, lastUpdated="x", currentTime=NEW), "no answer of kube-proxy's"),
    ("never updated", proxy(200, lastUpdated=None, currentTime=NEW), "no answer of kube-proxy's"),
]


@cases("answer, said", *PROXIES)
def test_what_kube_proxy_says(answer: bytes, said: str) -> None:
    assert said == proxy_way(Place("proxy", "10.0.0.1", 10256), answer, 120).said


# Over the loopback


@cache
def certificate() -> ssl.SSLContext:
    with tempfile.TemporaryDirectory() as folder:
        return self_signed(Path(folder))


@contextlib.contextmanager
def serving(address: str, behaviour: str, port: int) -> Iterator[None]:
    """`tls`, `http`: answers a whole request; `deaf`: takes connections and never answers; `closes`."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.create_server((address, port), family=family) as server:
        if behaviour != "deaf":
            threading.Thread(target=_serve, args=(server, behaviour), daemon=True).start()
        yield
        with contextlib.suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)


def _serve(server: socket.socket, behaviour: str) -> None:
    with contextlib.suppress(OSError):
        while True:
            peer, _ = server.accept()
            with contextlib.suppress(OSError), peer:
                link = certificate().wrap_socket(peer, server_side=True) if behaviour == "tls" else peer
                received = b""
                while behaviour != "closes" and not received.endswith(b"\r\n\r\n"):
                    if not (block := link.recv(65536)):
                        break
                    received += block
                    if not received.startswith(b"GET"):
                        break
                if behaviour != "closes":
                    link.sendall(f"HTTP/1.1 401 X\r\n\r\n{len(received)}".encode())
                link.close()


ALONE = {"service": "127.0.6.1", "service_port": 1}  # where nobody listens: refused
SEEN = [
    pytest.param("http", {"peer_tls": False}, "reached", id="a peer"),
    pytest.param("tls", {}, "reached", id="a peer with TLS"),
    pytest.param("http", {}, "reached", id="a peer that speaks no TLS"),
    pytest.param("closes", {"peer_tls": False}, "reached", id="a peer that closes without a word"),
    pytest.param("deaf", {"peer_tls": False}, "connected, then silent", id="a peer that never answers"),
    pytest.param("deaf", {}, "connected, then silent", id="a peer that does not shake hands"),
    pytest.param(None, {}, "refused", id="a peer without a server"),
]


def seen(settings: Settings, timeout_s: float) -> dict[str, str]:
    return {str(way.to).partition(" ")[0]: way.said for way in service_path.look_all(settings, timeout_s)}


@pytest.mark.parametrize(("behaviour", "more", "said"), SEEN)
def test_what_is_seen_of_a_peer(behaviour: str | None, more: dict[str, bool], said: str) -> None:
    port = free_port("127.0.6.2")
    settings = Settings(**ALONE, peers=("127.0.6.2",), peer_port=port, **more)
    with serving("127.0.6.2", behaviour, port) if behaviour else contextlib.nullcontext():
        assert said == seen(settings, SHORT_S if behaviour == "deaf" else AMPLE_S)["peer"]


@pytest.mark.parametrize(
    ("behaviour", "said"), [("tls", "reached"), ("http", "no TLS"), ("deaf", "connected, then silent")]
)
def test_what_is_seen_of_the_service(behaviour: str, said: str) -> None:
    port = free_port("127.0.6.3")
    with serving("127.0.6.3", behaviour, port):
        found = seen(Settings(service="127.0.6.3", service_port=port), SHORT_S if behaviour == "deaf" else AMPLE_S)
    assert {"service": said} == found


RINGS = [
    pytest.param([], 3, id="all of three are reached: the others are left in peace"),
    pytest.param([1], 3, id="most of three are"),
    pytest.param([1, 2], 9, id="two of three are not: all are asked"),
    pytest.param([1, 2, 3, 4, 5, 6, 7, 8, 9], 9, id="nobody is"),
]


@pytest.mark.parametrize(("silent", "asked"), RINGS)
def test_further_nodes_are_asked_only_where_most_of_three_are_not_reached(silent: list[int], asked: int) -> None:
    port = free_port("127.0.7.1")
    peers = neighbours("", [f"127.0.7.{number}" for number in range(1, 13)], 12)
    settings = Settings(**ALONE, peers=tuple(peers), peer_port=port, peer_tls=False, node="none")
    ring = neighbours("none", peers, 9)
    with contextlib.ExitStack() as stack:
        for number, address in enumerate(ring, 1):
            stack.enter_context(serving(address, "deaf" if number in silent else "http", port))
        found = [way for way in service_path.look_all(settings, 2.0) if way.to.kind == "peer"]
    assert (ring[:asked], len(silent)) == ([way.to.address for way in found], sum(not way.open for way in found))


def test_a_machine_that_comes_to_nothing_asks_no_further_ones() -> None:
    peers = tuple(f"127.0.7.{number}" for number in range(1, 13))
    assert 3 == sum(way.to.kind == "peer" for way in service_path.look_all(Settings(**ALONE, peers=peers), 0.0))


def test_ipv6() -> None:
    port = free_port("127.0.0.1")
    with serving("::1", "tls", port):
        assert CheckState.PASSED is Check(Settings(service="::1", service_port=port), AMPLE_S)().state


def test_what_this_machine_cannot_send_has_failed() -> None:
    found = Check(Settings(service="255.255.255.255"), SHORT_S)()
    assert (CheckState.FAILED, True) == (found.state, "255.255.255.255:443: cannot be sent (" in found.output), found


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        pytest.param(errno.ENETUNREACH, CheckState.FAILED, id="for want of a route"),
        pytest.param(errno.EPERM, CheckState.UNKNOWN, id="a Service without endpoints, by kube-proxy"),
        pytest.param(errno.EHOSTUNREACH, CheckState.UNKNOWN, id="the same by Cilium"),
    ],
)
def test_why_this_machine_refuses_at_once(monkeypatch: pytest.MonkeyPatch, error: int, expected: CheckState) -> None:
    def refused(*_anything: object) -> Iterator[None]:
        raise OSError(error, os.strerror(error))
        yield

    monkeypatch.setattr(service_path, "connect", refused)
    assert expected is Check(Settings(service="10.96.0.1"), SHORT_S)().state


def test_a_proxy_that_is_somebody_else() -> None:
    port = free_port("127.0.6.4")
    with serving("127.0.6.4", "http", port):
        assert (
            "no answer of kube-proxy's" == seen(Settings(**ALONE, proxy="127.0.6.4", proxy_port=port), AMPLE_S)["proxy"]
        )


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ("{service: kubernetes}", "service: is 'kubernetes', allowed: an IP address"),
        ("{peers: [10.0.0.1, node-2]}", "peers[1]: is 'node-2', allowed: an IP address"),
    ],
)
def test_what_is_wrong_with_the_settings(settings: str, expected: str) -> None:
    with pytest.raises(SettingsError) as caught:
        parse(f"mode: pod\nchecks: [{{name: x, servicePath: {settings}}}]\n".encode(), {})
    assert expected in str(caught.value)
