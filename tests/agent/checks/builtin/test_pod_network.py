"""The check `podNetwork` over real sockets of the loopback: agents at addresses of their own, an API server, DNS."""

import contextlib
import socket
import time
from collections.abc import Callable, Iterator, Sequence

import pytest

from agent.checks.builtin.pod_network import CONNECTIONS, Check, Settings
from agent.checks.catalogue import check_section, check_spec
from agent.checks.peer_answer import LATELY_S, Board
from agent.checks.peer_verdict import Answer
from agent.checks.state import CheckState, Finding
from agent.checks.surroundings import NoPodNetwork, Surroundings, dns_of
from agent.modes.pod_network import answers_of, own_sockets
from agent.report.server import HealthServer
from agent.settings import parse
from agent.wire.endpoint_slice import Endpoint, EndpointConditions, EndpointSlice
from agent.wire.network_policy import NetworkPolicy, PolicySpec
from component.settings import SettingsError
from kube.objects import BareMeta
from tools.fakes.dns import dns_servers
from tools.kit.cases import cases

API, DNS = "127.0.6.100", "127.0.6.101"
WELL = Answer("", "passed", ("node-1", "node-2", "node-3"), (), api=True, dns=True)
AMPLE_S = 20.0
SHORT_S = 2.0


class Cluster:
    """Agents of node-1 to node-N at 127.0.6.N, in slices that a source gives."""

    def __init__(self, dns_port: int) -> None:
        self.stack = contextlib.ExitStack()
        self.port = 0
        self.dns_port = dns_port
        self.boards: dict[str, Board] = {}
        self.nodes: list[str] = []
        self.ready = True
        self.policies_: list[NetworkPolicy] = []
        self.opened: list[tuple[int, int]] = []
        self.board = Board(time.monotonic)
        self.api = self.stack.enter_context(contextlib.closing(socket.create_server((API, 0), backlog=64)))
        self.api_port = self.api.getsockname()[1]

    def agent(self, number: int, answer: Answer = WELL) -> None:
        node = f"node-{number}"
        board = self.boards[node] = Board(time.monotonic)
        board.answer = Answer(node, answer.verdict, answer.reached, answer.lost, answer.api, answer.dns)
        server = HealthServer(f"127.0.6.{number}", self.port, {}, answers=answers_of(board))
        server.start()
        self.port = server.port
        self.stack.callback(server.stop)
        self.nodes.append(node)

    def frozen(self, number: int) -> None:
        """Connections are made, and nobody reads them."""
        server = socket.create_server((f"127.0.6.{number}", self.port), backlog=64)
        self.stack.callback(server.close)
        self.nodes.append(f"node-{number}")

    def check(
        self, timeout_s: float = AMPLE_S, dns: str = DNS, monotonic: Callable[[], float] = time.monotonic
    ) -> Check:
        settings = Settings(port=self.port, api_server=API, api_port=self.api_port, dns=dns, dns_port=self.dns_port)
        around = Surroundings("own", "readygate-system", self.board, lambda _service: self, self.opened_socket)
        made = Check(settings, timeout_s, monotonic).placed(around)
        self.stack.callback(made.close)
        return made

    def opened_socket(self, family: int, kind: int) -> socket.socket:
        self.opened.append((family, kind))
        return socket.socket(family, kind)

    @property
    def connections(self) -> int:
        return sum(kind == socket.SOCK_STREAM for _, kind in self.opened)

    def page(self, _more: str) -> tuple[Sequence[EndpointSlice], str]:
        ends = [
            Endpoint((f"127.0.6.{name.partition('-')[2]}",), EndpointConditions(ready=self.ready), name)
            for name in self.nodes
        ]
        return [EndpointSlice(BareMeta(name="a"), "IPv4", (*ends, Endpoint(("127.0.6.99",), node_name="own")))], ""

    def slice(self, _name: str) -> EndpointSlice:
        return self.page("")[0][0]

    def policies(self) -> Sequence[NetworkPolicy]:
        return self.policies_

    def close(self) -> None:
        pass


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with dns_servers({DNS: "answers"}, {DNS: "answers"}) as port:
        made = Cluster(port)
        with made.stack:
            yield made


def test_three_peers_the_api_server_and_dns_are_reached(cluster: Cluster) -> None:
    for number in (1, 2, 3):
        cluster.agent(number)
    expected = "peers reached; API server reached; DNS reached"
    assert cluster.check()() == Finding(CheckState.PASSED, expected)


def test_a_run_opens_three_connections_at_most_and_reaches_all_in_turn(cluster: Cluster) -> None:
    for number in (1, 2, 3, 4, 5):
        cluster.agent(number)
    check = cluster.check()
    for _ in range(2):
        del cluster.opened[:]
        check()
        assert cluster.connections == CONNECTIONS
    tried = {one.leg: count for one, count in cluster.board.counts().items()}
    assert tried == {"api": 2, "dns-udp": 2, "dns-tcp": 1, "peer": 3}


def test_peers_know_that_they_were_reached(cluster: Cluster) -> None:
    for number in (1, 2, 3):
        cluster.agent(number)
    check = cluster.check()
    check()
    check()
    assert [board.visitors(0.0) for board in cluster.boards.values()] == [["own"]] * 3


def test_packets_of_full_size_are_asked_for_both_ways(cluster: Cluster) -> None:
    for number in (1, 2, 3):
        cluster.agent(number)
    sizes: list[int] = []
    page = Board.page

    def seen(board: Board, request: bytes) -> str:
        sizes.extend([len(request), len(answer := page(board, request))])
        return answer

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Board, "page", seen)
        cluster.check()()
    assert min(sizes) > 9000  # as much as a loopback's packets may have


def test_a_peer_that_is_frozen_closes_no_other_node(cluster: Cluster) -> None:
    for number in (1, 2, 3, 4):
        cluster.agent(number)
    cluster.frozen(5)
    check = cluster.check(SHORT_S)
    assert {check().state for _ in range(3)} == {CheckState.PASSED}


def test_where_all_peers_connect_and_fall_silent_it_is_this_node(cluster: Cluster) -> None:
    cluster.agent(9)
    cluster.nodes.clear()
    for number in (1, 2, 3):
        cluster.frozen(number)
    found = cluster.check(SHORT_S)()
    assert found == Finding(
        CheckState.FAILED, "0 of 3 peers reached over IPv4: node-1, node-2, node-3 connected, then silent"
    )


def test_peers_that_have_answered_are_witnesses_also_where_the_list_is_older(cluster: Cluster) -> None:
    """It may be of the time when all agents started, and was none of them ready."""
    cluster.ready = False
    for number in (1, 2, 3):
        cluster.agent(number)
    check = cluster.check(SHORT_S)
    states = [check().state for _ in range(2)]
    whole = HealthServer._read

    def silent(server: HealthServer, client: object) -> None:
        whole(server, client)  # type: ignore[arg-type]
        client.reply = None  # type: ignore[attr-defined]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(HealthServer, "_read", silent)
        states.append(check().state)
    assert states == [CheckState.PASSED, CheckState.PASSED, CheckState.FAILED]


def test_large_packets_that_are_lost_are_told_from_a_dead_network(cluster: Cluster) -> None:
    """As where the MTU of this node is larger than that of the path, and nobody says so."""
    for number in (1, 2, 3):
        cluster.agent(number)
    whole = HealthServer._read

    def small(server: HealthServer, client: object) -> None:
        whole(server, client)  # type: ignore[arg-type]
        if len(client.request) > 1400:  # type: ignore[attr-defined]
            client.reply = None  # type: ignore[attr-defined]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(HealthServer, "_read", small)
        check = cluster.check(SHORT_S)
        check()
        found = check()  # the first run has not asked all of them twice
    assert found == Finding(
        CheckState.FAILED, "0 of 3 peers reached over IPv4: node-1, node-2, node-3 large packets lost"
    )


def test_a_policy_that_came_since_is_named(cluster: Cluster) -> None:
    """It is read at once where most peers are lost: a default-deny policy closes no node."""
    cluster.agent(9)
    cluster.nodes.clear()
    for number in (1, 2, 3):
        cluster.frozen(number)
    check = cluster.check(SHORT_S)
    cluster.policies_.append(NetworkPolicy(BareMeta(name="deny-all"), PolicySpec()))
    assert check().output.startswith("NetworkPolicy deny-all stops packets between agents: 0 of 3")


def test_an_agent_of_an_earlier_version_counts_as_reached(cluster: Cluster) -> None:
    cluster.agent(1)
    for number in (2, 3):
        server = HealthServer(f"127.0.6.{number}", cluster.port, {})
        server.start()
        cluster.stack.callback(server.stop)
        cluster.nodes.append(f"node-{number}")
    assert cluster.check()().state is CheckState.PASSED


def test_an_address_that_is_another_nodes_by_now_is_left_out(cluster: Cluster) -> None:
    """As the list is minutes old (cilium#9103)."""
    for number in (1, 2, 3):
        cluster.agent(number)
        cluster.boards[f"node-{number}"].answer = Answer(f"other-{number}")
    assert cluster.check()().output == "API server reached; DNS reached"


def test_a_service_that_peers_reach_is_this_nodes_fault(cluster: Cluster) -> None:
    """As where kube-proxy's rules are gone."""
    for number in (1, 2, 3):
        cluster.agent(number)
    check = cluster.check(SHORT_S)
    cluster.api.close()
    assert check() == Finding(CheckState.FAILED, "API server refused; reached from 3 of 3 peers")


def test_dns_that_is_down_for_all_only_warns(cluster: Cluster) -> None:
    down = Answer("", "shared", ("node-1", "node-2"), (), api=True, dns=False)
    for number in (1, 2, 3):
        cluster.agent(number, down)
    found = cluster.check(SHORT_S, dns="127.0.6.200")()
    assert (found.state, found.output.startswith("not of this node alone, reached from 0 of 3 peers: DNS by UDP")) == (
        CheckState.WARNED,
        True,
    )


def test_one_other_node_is_too_few(cluster: Cluster) -> None:
    cluster.agent(1)
    assert (cluster.check()().state, cluster.connections) == (CheckState.NOT_APPLICABLE, 0)


def test_peers_that_refuse_are_no_reason_to_ask_more(cluster: Cluster) -> None:
    """As health pods that are not readygate's own."""
    cluster.agent(9)
    cluster.nodes[:] = [f"node-{number}" for number in range(20, 40)]
    check = cluster.check()
    for _ in range(3):
        del cluster.opened[:]
        assert (check().state, cluster.connections) == (CheckState.PASSED, CONNECTIONS)


def test_a_node_that_nobody_reaches_asks_those_who_should(cluster: Cluster) -> None:
    """Packets go out and come back, and no connection comes in."""
    gone_s = [0.0]

    def monotonic() -> float:
        return time.monotonic() + gone_s[0]

    cluster.board = Board(monotonic)
    for number in (1, 2, 3):
        cluster.agent(number, Answer("", "passed", ("node-8", "node-9"), ("own",), api=True, dns=True))
    check = cluster.check(monotonic=monotonic)
    states = [check().state]
    gone_s[0] = LATELY_S + 1
    states.append(check().state)
    assert states == [CheckState.PASSED, CheckState.FAILED]


def test_its_own_state_is_told_to_peers(cluster: Cluster) -> None:
    for number in (1, 2, 3):
        cluster.agent(number)
    check = cluster.check()
    check()
    check()
    answer = cluster.board.answer
    assert (answer.node, answer.verdict, answer.reached, answer.api, answer.dns) == (
        "own",
        "passed",
        ("node-1", "node-2", "node-3"),
        True,
        True,
    )


def test_the_hosts_network_is_no_pods() -> None:
    opened = own_sockets({"POD_IP": "192.0.2.1", "HOST_IP": "192.0.2.1"})
    with pytest.raises(NoPodNetwork, match="the agent runs in the host's network"):
        opened(socket.AF_INET, socket.SOCK_STREAM)


def test_with_the_hosts_network_it_is_not_applicable(cluster: Cluster) -> None:
    around = Surroundings(
        "own", "ns", cluster.board, lambda _: cluster, own_sockets({"POD_IP": "::1", "HOST_IP": "::1"})
    )
    check = Check(Settings(), AMPLE_S).placed(around)
    found = {check() for _ in range(3)}
    check.close()
    assert found == {Finding(CheckState.NOT_APPLICABLE, "the agent runs in the host's network, which is no pod's")}


def test_the_catalogue_places_it(cluster: Cluster) -> None:
    around = Surroundings("own", "ns", cluster.board, lambda _: cluster, cluster.opened_socket)
    section = check_section()(name="pods", podNetwork=Settings())  # type: ignore[arg-type]
    spec = check_spec(section, around=around, state_file=None)
    found = spec.run()
    spec.close()
    assert found.state is CheckState.NOT_APPLICABLE


@cases(
    "text, expected",
    (
        "a pod's own file",
        "search a.svc.c.test svc.c.test c.test\nnameserver 10.96.0.10\n",
        ("10.96.0.10", "svc.c.test"),
    ),
    ("the file of a host", "search example.com\nnameserver fd00::a\n", ("fd00::a", "")),
    ("nothing", "", ("", "")),
)
def test_dns_is_what_the_pod_has(text: str, expected: tuple[str, str]) -> None:
    assert dns_of(text) == expected


def test_names_are_no_addresses() -> None:
    with pytest.raises(
        SettingsError, match=r"checks\[0\].podNetwork.*apiServer: is 'api', allowed: auto, none or an IP"
    ):
        parse(b"{mode: pod, checks: [{name: a, podNetwork: {apiServer: api}}]}", {})
