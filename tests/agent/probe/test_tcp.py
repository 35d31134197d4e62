"""tcpSocket: the rows T of kubelet's tcp_test.go, and names that do not resolve in time."""

import socket
import threading
import time

import pytest

from agent.probe import dial, names
from agent.probe.names import Names
from agent.probe.result import HandlerResult, Outcome
from agent.probe.tcp import tcp_connect

FAILURE = HandlerResult.FAILURE


def test_t1_somebody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        assert Outcome(HandlerResult.SUCCESS) == tcp_connect("127.0.0.1", port, 1)
        assert Outcome(HandlerResult.SUCCESS) == tcp_connect("localhost", port, 1)
    expected = Outcome(FAILURE, f"dial tcp 127.0.0.1:{port}: connect: connection refused")
    assert expected == tcp_connect("127.0.0.1", port, 1)


def test_t4_no_host_is_this_machine() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        assert Outcome(HandlerResult.SUCCESS) == tcp_connect("", listener.getsockname()[1], 20.0)


@pytest.mark.parametrize("host", ["::", "0::0", "::%lo", "::%-00 ", "::ffff:127.0.0.1", "[127.0.0.1]"])
def test_t7_what_is_reached_by_ipv4_alone(host: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        assert Outcome(HandlerResult.SUCCESS) == tcp_connect(host, listener.getsockname()[1], 20)


def test_t2_a_port_that_cannot_be() -> None:
    assert Outcome(FAILURE, "dial tcp: address -1: invalid port") == tcp_connect("127.0.0.1", -1, 1)


REFUSED = "connect: connection refused"


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        pytest.param("", f"dial tcp :1: {REFUSED}", id="T5 no host"),
        pytest.param("::1%1", f"dial tcp [::1%1]:1: {REFUSED}", id="T5 a zone"),
        pytest.param("127.0.0.1%lo", "dial tcp: lookup 127.0.0.1%lo: no such host", id="T5 IPv4 has no zones"),
        pytest.param("::ffff:127.0.0.1", f"dial tcp 127.0.0.1:1: {REFUSED}", id="T5 IPv4 as IPv6"),
        pytest.param("[127.0.0.1]", f"dial tcp 127.0.0.1:1: {REFUSED}", id="T6 an IPv4 address in brackets is one"),
        pytest.param("[::1]", "dial tcp: address [[::1]]:1: missing port in address", id="T6 one of IPv6 is none"),
        pytest.param("[a", "dial tcp: address [a:1: missing ']' in address", id="T6 a bracket that stays open"),
        pytest.param("[a]:80:", "dial tcp: address [[a]:80:]:1: too many colons in address", id="T6 colons behind it"),
        pytest.param("a]", "dial tcp: address a]:1: unexpected ']' in address", id="T6 a bracket from nowhere"),
        pytest.param("a[", "dial tcp: address a[:1: unexpected '[' in address", id="T6 one that leads nowhere"),
        pytest.param(".", "dial tcp: lookup .: no such host", id="T8 a dot alone is a name for Go"),
        pytest.param("[[a]", "dial tcp: address [[a]:1: unexpected '[' in address", id="T6 two"),
    ],
)
def test_what_is_said_of_a_host(host: str, expected: str) -> None:
    assert Outcome(FAILURE, expected) == tcp_connect(host, 1, 20)


@pytest.mark.parametrize(
    ("host", "found", "expected"),
    [
        pytest.param("::ffff:1", "::255.255.0.1", "::ffff:1", id="an address that the C library writes with dots"),
        pytest.param("::1.2.3.4", "::1.2.3.4", "::102:304", id="one that was given with them"),
        pytest.param("::ffff:7f00:1", "::ffff:127.0.0.1", "127.0.0.1", id="one of IPv4"),
        pytest.param("fe80::1%lo", "fe80::1%lo", "fe80::1%lo", id="one with a zone"),
        pytest.param("fe80::1%none", "fe80::1", "fe80::1%none", id="one with a zone that nobody has"),
        pytest.param("a.example", "fe80::1%lo", "fe80::1%lo", id="a name"),
        pytest.param("", "127.0.0.1", "", id="nothing"),
    ],
)
def test_an_address_is_named_as_go_names_it(host: str, found: str, expected: str) -> None:
    family = socket.AF_INET6 if ":" in found else socket.AF_INET
    assert expected == dial.as_dialled(host, [(family, socket.SOCK_STREAM, 0, "", (found, 1))])


def test_t3_a_full_backlog_costs_the_timeout() -> None:
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        port = full.getsockname()[1]
        waiting = []
        for _ in range(3):
            client = socket.socket()
            client.setblocking(False)
            client.connect_ex(("127.0.0.1", port))
            waiting.append(client)
        begun = time.monotonic()
        assert Outcome(FAILURE, f"dial tcp 127.0.0.1:{port}: i/o timeout") == tcp_connect("127.0.0.1", port, 0.2)
        assert time.monotonic() - begun < 10
        for client in waiting:
            client.close()


def test_a_name_server_that_does_not_answer_costs_the_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    release = threading.Event()

    def hang(*_arguments: object, **_more: object) -> list[object]:
        release.wait(5)
        return []

    monkeypatch.setattr(dial.socket, "getaddrinfo", hang)
    monkeypatch.setattr(dial, "_names", Names(at_once=2))
    begun = time.monotonic()
    outcomes = [tcp_connect(f"slow-{number}.example", 80, 0.1) for number in range(4)]
    expected = [Outcome(FAILURE, f"dial tcp slow-{number}.example:80: i/o timeout") for number in range(4)]
    assert expected == outcomes, "also when no thread is free"
    assert time.monotonic() - begun < 10
    release.set()


def test_a_dead_name_asked_for_again_and_again_does_not_keep_another_from_being_looked_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    release = threading.Event()
    asked: list[object] = []
    real = socket.getaddrinfo

    def look_up(host: str, *arguments: object, **more: object) -> object:
        asked.append(host)
        if host == "dead.example":
            release.wait(20)
            raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
        return real("127.0.0.1", *arguments, **more)

    monkeypatch.setattr(names.socket, "getaddrinfo", look_up)
    monkeypatch.setattr(dial, "_names", Names(at_once=2))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        for _ in range(20):
            assert tcp_connect("dead.example", port, 0.01).result is FAILURE
        assert Outcome(HandlerResult.SUCCESS) == tcp_connect("alive.example", port, 20)
    assert ["dead.example", "alive.example"] == asked, "one look-up a name at a time"
    release.set()


def test_all_who_wait_for_a_name_get_its_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    release, asked = threading.Event(), []

    def look_up(host: str, *_arguments: object, **_more: object) -> object:
        asked.append(host)
        release.wait(20)
        return [(2, 1, 6, "", ("192.0.2.7", 0))]

    monkeypatch.setattr(names.socket, "getaddrinfo", look_up)
    made, found = Names(), []
    waiting = [
        threading.Thread(target=lambda: found.append(made.addresses("a.example", lambda: 20.0))) for _ in range(3)
    ]
    for thread in waiting:
        thread.start()
    release.set()
    for thread in waiting:
        thread.join(20)
    assert [[(2, 1, 6, "", ("192.0.2.7", 0))]] * 3 == found
    assert len(asked) <= 3


def test_a_name_nobody_has(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_arguments: object, **_more: object) -> list[object]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(dial.socket, "getaddrinfo", none)
    assert Outcome(FAILURE, "dial tcp: lookup no.example: no such host") == tcp_connect("no.example", 80, 1)


@pytest.mark.parametrize(
    "host", ["127.1", "0", "2130706433", "0x7f.1", "0177.0.0.1", "127.0.0.01", "127.0.0.1\0", "0x7f000001"]
)
def test_what_only_looks_like_an_address_is_a_name_that_nobody_has(host: str) -> None:
    """The C library takes these for addresses; Go asks the name server, which has none such."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        outcome = tcp_connect(host, listener.getsockname()[1], 20)
    assert Outcome(FAILURE, f"dial tcp: lookup {host}: no such host") == outcome


def test_an_address_may_name_its_zone() -> None:
    number = socket.if_nametoindex("lo")
    given = ("::1%lo", "::1", "fe80::1%7", "fe80::1%nobody", "fe80::1%7nobody", "fe80::1%99999999999")
    expected = [f"::1%{number}", "::1", "fe80::1%7", "fe80::1", "fe80::1%7", "fe80::1%16777215"]
    assert expected == [dial._with_zone_number(host) for host in given]
