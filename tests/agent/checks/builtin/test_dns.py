"""The check `dns` tells this node's own faults from those of the servers, over real sockets of the loopback."""

import errno
import os
import socket
import time
from collections.abc import Iterator

import pytest

from agent.checks.builtin import dns
from agent.checks.builtin.dns import Check, Leg, Reply, Settings, Way, judge
from agent.checks.peer_answer import Board
from agent.checks.peer_list import Source
from agent.checks.state import CheckState, Finding
from agent.checks.surroundings import Surroundings
from agent.probe.dns_message import query_of, said_in
from agent.settings import parse
from component.settings import SettingsError
from tools.fakes.dns import CLOSES, GARBAGE, HALF, LOST, NOBODY, SILENT, STRANGER, dns_servers
from tools.kit.cases import cases

LOCAL, SERVICE, FIRST, SECOND = "127.0.5.1", "127.0.5.2", "127.0.5.3", "127.0.5.4"
AMPLE_S = 20.0  # where all that is asked says something
SHORT_S = 2.0  # where waiting for nothing is what is tried


def check(udp: str, tcp: str = "", *, of: str = "lsab", timeout_s: float = AMPLE_S) -> Finding:
    """`udp`, `tcp`: behaviours of node-local, Service, first and second server; `of`: the legs that are asked."""
    legs = dict(zip("lsab", (LOCAL, SERVICE, FIRST, SECOND), strict=True))
    tables = [
        dict(zip((legs[leg] for leg in of), told.split(", "), strict=True)) if told else {} for told in (udp, tcp)
    ]
    with dns_servers(*tables) as port:
        settings = Settings(
            node_local=LOCAL if "l" in of else "",
            service=SERVICE if "s" in of else "",
            servers=tuple(legs[leg] for leg in of if leg in "ab"),
            port=port,
            protocols=("udp", "tcp") if tcp else ("udp",),
        )
        return Check(settings, timeout_s)()


# A letter each for the node-local cache, the Service and two servers.
WORDS = {"a": "answers", "c": CLOSES, "s": "SERVFAIL", "t": "truncated", "x": "NXDOMAIN", "0": "no record", "-": NOBODY}
OWN_FAULT = "the servers' own fault: Service 127.0.5.2 udp: SERVFAIL; server 127.0.5.4 udp: SERVFAIL"


@cases(
    "udp, tcp, state, output",
    ("all ways answer", "aaaa", "aaaa", "passed", "answered on 8 ways"),
    ("a truncated answer is one", "tttt", "aaaa", "passed", "answered on 8 ways"),
    ("no node-local cache", "-aaa", "", "failed", "node-local 127.0.5.1 udp: refused"),
    ("the node-local cache closes connections", "aaaa", "caaa", "failed", "node-local 127.0.5.1 tcp: no DNS message"),
    ("only the node-local cache answers SERVFAIL", "saaa", "", "failed", "node-local 127.0.5.1 udp: SERVFAIL"),
    ("the Service leads nowhere, its servers answer", "a-aa", "", "failed", "Service 127.0.5.2 udp: refused"),
    ("the Service leads nowhere, its servers answer SERVFAIL", "a-ss", "", "failed", "Service 127.0.5.2 udp: refused"),
    ("neither the Service nor a server answers", "a---", "", "unknown", "perhaps the servers' own fault: Service"),
    ("SERVFAIL everywhere is shared", "ssss", "ssss", "shared", "all 8 ways: SERVFAIL; not of this node alone"),
    ("an unknown name everywhere", "xxxx", "", "shared", "all 4 ways: NXDOMAIN"),
    ("a name without such a record everywhere", "0000", "", "shared", "all 4 ways: no such record"),
    ("the Service leads to a server that answers SERVFAIL", "asas", "", "shared", OWN_FAULT),
    ("one server of two is gone", "aaa-", "", "warned", "answered, but server 127.0.5.4 udp: refused"),
    ("both servers are gone", "aa--", "", "warned", "answered, but server 127.0.5.3 udp: refused"),
)
def test_what_is_put_down_to_this_node(udp: str, tcp: str, state: str, output: str) -> None:
    found = check(*(", ".join(WORDS[letter] for letter in ways) for ways in (udp, tcp)))
    assert (state, True) == (found.state, output in found.output), found


WAITED_FOR = (SILENT, GARBAGE, STRANGER, LOST)
ONE_WAY = [
    pytest.param("FORMERR", "unknown", "all 1 ways: FORMERR", id="a server that does not understand"),
    pytest.param("REFUSED", "unknown", "all 1 ways: REFUSED by the server", id="a server that refuses"),
    pytest.param(SILENT, "failed", "udp: silent", id="silence"),
    pytest.param(GARBAGE, "failed", "udp: no DNS message", id="bytes that are no message"),
    pytest.param(STRANGER, "failed", "udp: no DNS message", id="answers to other questions"),
    pytest.param(NOBODY, "failed", "udp: refused", id="no socket"),
    pytest.param(LOST, "passed", "answered on 1 ways", id="a datagram that is lost is sent again"),
]


@pytest.mark.parametrize(("behaviour", "state", "output"), ONE_WAY)
def test_what_one_server_says_by_udp(behaviour: str, state: str, output: str) -> None:
    found = check(behaviour, of="l", timeout_s=SHORT_S if behaviour in WAITED_FOR else AMPLE_S)
    assert (state, True) == (found.state, output in found.output), found


@pytest.mark.parametrize("behaviour", [SILENT, GARBAGE, STRANGER, HALF, CLOSES, NOBODY])
def test_a_server_that_speaks_no_dns_by_tcp_has_not_answered(behaviour: str) -> None:
    found = check("answers", behaviour, of="l", timeout_s=SHORT_S)
    assert (CheckState.FAILED, True) == (found.state, found.output.startswith("node-local 127.0.5.1 tcp: ")), found


def test_ipv6() -> None:
    with dns_servers({"::1": "answers"}, {"::1": "answers"}) as port:
        assert CheckState.PASSED is Check(Settings(type="AAAA", node_local="::1", port=port), AMPLE_S)().state


@cases(
    "settings, expected",
    ("IPv4", Settings(service="10.96.0.10"), "A"),
    ("IPv6: the cluster's own names have no A record there", Settings(service="fd00:10:96::a"), "AAAA"),
    ("by the Service's address", Settings(node_local="169.254.20.10", service="fd00:10:96::a"), "AAAA"),
    ("or the node-local cache's", Settings(node_local="fd00::53"), "AAAA"),
    ("or the first server's", Settings(servers=("fd00::1", "10.0.0.1")), "AAAA"),
    ("what is given holds", Settings(type="A", service="fd00:10:96::a"), "A"),
)
def test_the_record_that_is_asked_for(settings: Settings, expected: str) -> None:
    assert expected == dns.record_type(settings)


def test_what_this_machine_cannot_send_has_failed() -> None:
    """A route to a broadcast address is refused by the kernel itself."""
    found = Check(Settings(service="255.255.255.255"), SHORT_S)()
    assert CheckState.FAILED is found.state
    assert "Service 255.255.255.255 udp: cannot be sent (" in found.output


def test_a_cache_whose_link_is_gone_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its address was this machine's own: what is sent to it now goes somewhere else, and is lost without a word."""
    found = []
    with dns_servers({LOCAL: SILENT, SERVICE: "answers"}, {}) as port:
        check = Check(Settings(node_local=LOCAL, service=SERVICE, port=port, protocols=("udp",)), SHORT_S)
        for ours in (False, True, False, True):
            monkeypatch.setattr(dns, "is_ours", lambda _, ours=ours: ours)
            found.append(check())
    silent = Finding(CheckState.FAILED, f"node-local {LOCAL} udp: silent")
    gone = Finding(CheckState.FAILED, f"node-local {LOCAL} udp: cannot be sent ({dns.NOT_OURS})")
    assert [silent, silent, gone, silent] == found


def reply(leg: Leg, said: str, protocol: dns.Protocol = "udp", address: str = "10.0.0.1") -> Reply:
    return Reply(Way(leg, address, protocol), said)


def test_a_server_that_is_heard_by_udp_says_nothing_of_the_service_by_tcp() -> None:
    found = judge([reply(Leg.SERVICE, dns.SILENT, "tcp"), reply(Leg.SERVER, dns.ANSWERED, "udp")])
    assert CheckState.UNKNOWN is found.state


QUERY = query_of("a.example", "A", 7)
MESSAGES = [
    pytest.param(b"", id="nothing"),
    pytest.param(QUERY, id="the question itself"),
    pytest.param(b"\0\7\x81\x80", id="less than a header"),
    pytest.param(b"\0\7\x81\x80\0\1\0\1\0\0\0\0", id="an answer without the question"),
    pytest.param(b"\0\7\x81\x80\0\0\0\1\0\0\0\0" + QUERY[12:], id="an answer to no question"),
    pytest.param(b"\0\x08\x81\x80\0\1\0\1\0\0\0\0" + QUERY[12:], id="another number"),
]


@pytest.mark.parametrize("message", MESSAGES)
def test_what_is_no_answer(message: bytes) -> None:
    assert said_in(message, QUERY) is None


def test_a_name_is_the_same_in_capitals() -> None:
    assert said_in(b"\0\7\x81\x80\0\1\0\1\0\0\0\0" + QUERY[12:].upper()[:-4] + QUERY[-4:], QUERY) == "answered"


WRONG = [
    pytest.param("{}", "dns: asks nobody, allowed: one of nodeLocal, service, servers", id="nobody to ask"),
    pytest.param("{service: kube-dns}", "service: is 'kube-dns', allowed: an IP address", id="a name"),
    pytest.param("{servers: [10.0.0.1, x]}", "servers[1]: is 'x', allowed: an IP address", id="a server by its name"),
    pytest.param("{service: 10.0.0.1, name: a..b}", "name: is 'a..b', allowed: a DNS name", id="an empty label"),
    pytest.param("{service: 10.0.0.1, protocols: []}", "protocols: is an empty list", id="no protocol"),
]


@pytest.mark.parametrize(("settings", "expected"), WRONG)
def test_what_is_wrong_with_the_settings(settings: str, expected: str) -> None:
    with pytest.raises(SettingsError) as caught:
        parse(f"mode: pod\nchecks: [{{name: x, dns: {settings}}}]\n".encode(), {})
    assert expected in str(caught.value)


@pytest.mark.parametrize(
    "error",
    [pytest.param(errno.EPERM, id="kube-proxy's rule"), pytest.param(errno.EHOSTUNREACH, id="Cilium")],
)
def test_a_service_without_endpoints_is_no_fault_of_this_node(monkeypatch: pytest.MonkeyPatch, error: int) -> None:
    """In the host's network the kernel refuses at once what is sent."""

    def refused(*_anything: object) -> Iterator[None]:
        raise OSError(error, os.strerror(error))
        yield

    monkeypatch.setattr(dns, "connect", refused)
    found = Check(Settings(service="10.96.0.10"), SHORT_S)()
    assert (CheckState.UNKNOWN, True) == (found.state, "refused" in found.output), found


POD = "search a.svc.c.test svc.c.test c.test\nnameserver {}\noptions ndots:5\n"


@cases(
    "resolv_conf, api_server, expected",
    ("the Service", POD.format("10.96.0.10"), "10.96.0.1", ("10.96.0.10", "", "kubernetes.default.svc.c.test", "A")),
    ("IPv6 alone", POD.format("fd00::a"), "fd00::1", ("fd00::a", "", "kubernetes.default.svc.c.test", "AAAA")),
    (
        "the API server of the other family",
        POD.format("10.96.0.10"),
        "fd00::1",
        ("10.96.0.10", "", "kubernetes.default.svc.c.test", "AAAA"),
    ),
    (
        "a cache on the node",
        POD.format("169.254.20.10"),
        "10.96.0.1",
        ("", "169.254.20.10", "kubernetes.default.svc.c.test", "A"),
    ),
    ("one of IPv6", POD.format("fe80::1%eth0"), "", ("", "fe80::1%eth0", "kubernetes.default.svc.c.test", None)),
    ("the host's own file", "search example.com\nnameserver 192.0.2.53\n", "10.96.0.1", ("auto", "", dns.NAME, None)),
    ("a host whose search list is empty", "nameserver 127.0.0.53\n", "10.96.0.1", ("auto", "", dns.NAME, None)),
    ("no server", "search svc.c.test\n", "10.96.0.1", ("auto", "", dns.NAME, None)),
    ("no file", "", "", ("auto", "", dns.NAME, None)),
)
def test_auto_takes_what_the_pod_has(
    resolv_conf: str, api_server: str, expected: tuple[str, str, str, str | None]
) -> None:
    found = dns.as_the_pod_has_it(Settings(service="auto"), resolv_conf, api_server)
    assert (found.service, found.node_local, found.name, found.type) == expected


def test_auto_keeps_the_name_and_the_type_that_are_given() -> None:
    given = Settings(service="auto", name="a.test", type="A")
    found = dns.as_the_pod_has_it(given, POD.format("fd00::a"), "fd00::1")
    assert (found.service, found.name, found.type) == ("fd00::a", "a.test", "A")


def no_source(_service: str) -> Source:
    raise AssertionError("this check reads no list of peers")


@cases(
    "resolv_conf, state",
    (
        "with the host's network there is no DNS of the cluster",
        "search example.com\nnameserver 127.0.5.9\n",
        "not applicable",
    ),
    ("in a pod the server of its file is asked", POD.format(SERVICE), "passed"),
)
def test_the_default_check_asks_the_dns_of_the_pod_alone(resolv_conf: str, state: str) -> None:
    with dns_servers({SERVICE: "answers"}, {SERVICE: "answers"}) as port:
        around = Surroundings("a", "ns", Board(time.monotonic), no_source, socket.socket, resolv_conf)
        checked = Check(Settings(service="auto", port=port), AMPLE_S).placed(around)
        found = checked()
        checked.close()
    assert found.state == state, found
