"""The built-in check `podNetwork`: do packets of pods on this node get to pods on other nodes, and to Services?

It runs in the network of the health pod. Its peers are the agents in the health pods of three other nodes, chosen by
rendezvous hashing and in more than one zone. Legs: a connection to the peer's agent and a request that fills a packet
of the path MTU, by each family of addresses; the API server through its Service; DNS through its Service, by UDP and
TCP. A run opens three connections at most, in turns. Only where one fails, the same run makes all of them, once more
those that failed, and asks up to 13 further peers, first those that have reached this node lately.

A peer answers how it is itself: which nodes it reaches, whether it reaches those Services, and how many others have
reached it. With that a fault is laid where it is:

| this node | its peers | verdict |
|---|---|---|
| reaches half of its peers or more | | passed |
| reaches none of three or more | | failed |
| reaches none of two, and the API server neither, or both connect and then fall silent | | failed |
| reaches none of two, and the API server | | unknown |
| reaches fewer than half | those reached reach two or more that this node does not | failed |
| reaches fewer than half | most of those reached are cut off as well | shared |
| the same, and not the API server | they all together reach a third or less | failed |
| reaches fewer than half | none is known to reach the others either | warned |
| reaches its peers | two or more do not reach it, and nobody has for a minute | failed |
| does not reach the API server, or DNS | most do | failed |
| does not reach the API server, or DNS | most do not, and they are reached | warned |
| does not reach the API server, or DNS | none answers | unknown |
| has no route for what it sends | | failed |
| has no list of peers, and reaches the API server | | shared |
| has no list of peers | | unknown |
| reaches fewer than half | a NetworkPolicy stops packets between agents | not applicable |
| does not reach the API server, or DNS | a NetworkPolicy stops packets to Services | warned |
| reaches fewer than half | fewer than two are ready, by the API server | shared |
| has fewer than two peers | | not applicable |

So a peer that is dead closes no other node, and a node that is cut off is closed by itself. A peer that refuses a
connection was reached. A finding says where packets went one way only, and where small packets arrive and large ones do
not. The way back is the next run. Where a peer's address is another node's by now, that peer is left out.

The list of peers is that of the EndpointSlices of the agents' Service, read every five minutes (`refreshSeconds`) and
kept beside `stateFile`, and at once when most peers are lost. NetworkPolicies of the namespace are read with it: one of
the operator's that admits no agent is named, and no node fails for it. Policies of other kinds are not read. With the
host's network there is no pod network to examine.

In pods it needs no settings, and the list `default` has it there. A service on the host runs it where its settings name
it: it enters the network of the pod beside it (`node.criSocket`), and is given the addresses of the Services:

    - name: pod-network
      podNetwork: {apiServer: 10.96.0.1, dns: 10.96.0.10}

| cost | of |
|---|---|
| 3 connections and a datagram, 0.5 ms of processor | a run in which nothing fails |
| 0.7 MiB | an agent with 100 peers in its list |
| 33 requests and 0.45 MB a second | the API server of 5,000 nodes |

False alarms of others, and what is done here: nodes that are being shut down (goldpinger#87) are asked last, further
ones are asked, and what is not ready is no witness; nodes that start (cilium#11874) say nothing against others;
addresses of nodes that were replaced (cilium#9103, cilium#33056) are left out by the name that answers; one target
for all nodes (node-problem-detector#991) is compared with what peers reach; no agent holds a watch (goldpinger#165).
"""

import socket
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from agent.checks.peer_answer import LATELY_S
from agent.checks.peer_list import SOON_S, Known, PeerList
from agent.checks.peer_verdict import Answer, Leg, Probe, Seen, Way, judge
from agent.checks.peers import PEERS, Peer, choosers, chosen, further, turn_of
from agent.checks.pod_legs import Outcome, Target, try_all
from agent.checks.rights import Rights
from agent.checks.state import CheckState, Finding
from agent.checks.surroundings import NoPodNetwork, Surroundings, dns_of
from agent.kernel.clocks import Clocks
from agent.kernel.netlink import RouteWatch
from agent.probe.targets import is_address
from agent.wire.setting_types import NonEmpty, Port
from component.settings import Section
from kube import contract

DOC = (
    "pods of this node reach those of three others with packets of full size, and the API server and DNS through their "
    "Services; what most of the peers lack as well only warns"
)
RIGHTS = Rights(pod_network=True, lists_peers=True)
CONNECTIONS = 3  # of a run in which nothing fails
USABLE = 0.9  # of the timeout: what is left is for the verdict
PATIENCE = 0.4  # of that: then what has not answered is asked once more, and others are asked
ALIVE_S = 30.0  # a node that came so lately is asked first
POLICIES_S = 10.0  # how long a verdict waits for the NetworkPolicies where the API server is reached
LABELS = {contract.LABEL_NAME: contract.NAME_AGENT, "app.kubernetes.io/part-of": "readygate"}
AUTO, NONE = "auto", "none"
_LEG_NAMES = {"api": "API server", "dns-udp": "DNS by UDP", "dns-tcp": "DNS by TCP"}


class Settings(Section, frozen=True):
    """`service`: of the agents, by its name in their namespace. `labels`: of their pods, by which NetworkPolicies
    select them. `apiServer`, `dns`: addresses of the Services; auto: as the pod has them; none: not asked. `name`:
    asked of DNS; empty: the API server's."""

    service: NonEmpty = contract.NAME_AGENT
    labels: dict[str, str] = msgspec.field(default_factory=lambda: dict(LABELS))
    port: Port = 9375
    api_server: NonEmpty = AUTO
    api_port: Port = 443
    dns: NonEmpty = AUTO
    dns_port: Port = 53
    name: str = ""
    refresh_seconds: Annotated[int, Meta(ge=60, le=3600, description="whole seconds, 60 to 3600")] = 300
    copy_file: str = ""

    def __post_init__(self) -> None:
        for key, address in (("apiServer", self.api_server), ("dns", self.dns)):
            if address not in (AUTO, NONE) and not is_address(address):
                raise ValueError(f"{key}: is {address[:64]!r}, allowed: auto, none or an IP address")


class Check:
    DOUBTS = True

    def __init__(self, settings: Settings, timeout_s: float, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._settings = settings
        self._limit_s = USABLE * timeout_s
        self._monotonic = monotonic
        self._began = monotonic()
        self._routes = RouteWatch()
        self._runs = 0
        self._is_unvisited = False  # for a minute, though others should have come
        self._doubt_since: float | None = None
        self._first: frozenset[str] = frozenset()  # names of the peers that runs ask
        self._reached: dict[str, bool] = {}  # of them, by the last run that asked each
        self._asking: tuple[Sequence[Peer], list[Peer]] | None = None  # peers, and those that ask this node
        self._alive: dict[str, float] = {}  # when each peer was reached last (monotonic)
        self._around: Surroundings | None = None
        self._list: PeerList | None = None

    def placed(self, around: Surroundings) -> "Check":
        settings = self._settings
        self._around = around
        self._list = PeerList(
            lambda: around.connect(settings.service),
            around.node,
            labels=settings.labels,
            namespace=around.namespace,
            port=settings.port,
            every_s=float(settings.refresh_seconds),
            copy=Path(settings.copy_file) if settings.copy_file else None,
            clocks=Clocks(monotonic=self._monotonic),
        )
        return self

    def __call__(self) -> Finding:
        self._routes.taken()
        around, listed = self._around, self._list
        if around is None or listed is None:
            raise RuntimeError("a check of the pod network needs the agent around it")
        try:
            around.open_socket(socket.AF_INET, socket.SOCK_DGRAM).close()  # whether there is a pod network
        except NoPodNetwork as e:
            return Finding(CheckState.NOT_APPLICABLE, str(e))
        listed.start()
        known = self._known(listed)
        others = [peer for peer in known.peers or () if peer.node != around.node]
        if known.peers is None or len(others) < 2:
            reached = self._tried(around, self._api(around), PATIENCE * self._limit_s) if known.peers is None else {}
            self._say(around, finding := judge(self._seen(around, known, reached, [])), {})
            return finding
        outcomes = self._asked(around, listed, others)
        finding = self._judged(around, listed, outcomes)
        self._say(around, finding, outcomes)
        return finding

    def descriptor(self) -> int | None:
        return self._routes.descriptor()

    def close(self) -> None:
        self._routes.close()
        if self._list is not None:
            self._list.stop()

    def _known(self, listed: PeerList) -> Known:
        """The first run waits for the list: unknown would close a node that has just started."""
        if listed.now.peers is None:
            listed.wait_first((1 - PATIENCE) * self._limit_s)
        return listed.now

    def _asked(self, around: Surroundings, listed: PeerList, others: Sequence[Peer]) -> Mapping[Target, Outcome]:
        began = self._monotonic()
        first = chosen(around.node, others, PEERS)
        if around.is_asked and began - self._began > LATELY_S and not around.board.visitors(began - LATELY_S):
            asking = self._choosers(around.node, others)
            first += [peer for peer in asking if peer not in first][:PEERS]
            self._is_unvisited = bool(asking)
        else:
            self._is_unvisited = False
        self._first = frozenset(peer.node for peer in first)
        everything = [*self._services(around), *self._peers(first)]
        asked = self._tried(around, self._turn(everything), PATIENCE * self._limit_s)
        lost = [target for target, outcome in asked.items() if not _got_there(target, outcome)]
        self._runs += 1
        if not lost:
            self._doubt_since = None
            return asked
        begins = self._doubt_since is None
        self._doubt_since = self._doubt_since or began
        more = [target for target in everything if target not in asked or target in lost]
        peers_lost = sum(target.kind == "peer" for target in lost)
        most = 2 * peers_lost >= sum(target.kind == "peer" for target in asked)
        if peers_lost:
            listed.refresh(at_once=begins and most)
        if peers_lost and most:
            more += self._peers(further(around.node, others, first, around.board.visitors(began - ALIVE_S)))
        stalled = [target for target in lost if target.kind == "peer" and asked[target].way is Way.STALLED]
        left_s = began + self._limit_s - self._monotonic()
        again = self._tried(around, more, left_s, small=stalled)
        return {**asked, **{t: _only_small(o) if t in stalled else o for t, o in again.items()}}

    def _choosers(self, own: str, others: Sequence[Peer]) -> list[Peer]:
        """Those that ask this node; worked out once for each list."""
        if self._asking is None or self._asking[0] != others:
            self._asking = others, choosers(own, [*others, Peer(own)])
        return self._asking[1]

    def _turn(self, everything: Sequence[Target]) -> list[Target]:
        """What this run asks first: all while something is in doubt, or nobody comes who should; else at most
        CONNECTIONS connections."""
        if self._doubt_since is not None or self._is_unvisited:
            return list(everything)
        always = [target for target in everything if target.kind in ("api", "dns-udp")]
        inturn = [target for target in everything if target not in always]
        room = CONNECTIONS - sum(target.opens_connection for target in always)
        return [*always, *turn_of(self._runs, inturn, room)]

    def _tried(
        self, around: Surroundings, targets: Sequence[Target], limit_s: float, small: Sequence[Target] = ()
    ) -> Mapping[Target, Outcome]:
        domain = dns_of(around.resolv_conf)[1] or "svc.cluster.local"
        name = self._settings.name or f"kubernetes.default.{domain}"
        found = try_all(targets, around.open_socket, around.node, name, max(0.0, limit_s), small)
        for target, outcome in found.items():
            if outcome.answer is not None and not outcome.moved:
                self._alive[target.node] = self._monotonic()
            around.board.tried(target.kind, f"IPv{target.family}", str(outcome.way), outcome.seconds)
        return found

    def _api(self, around: Surroundings) -> list[Target]:
        settings = self._settings
        if settings.api_server == AUTO:
            return [] if around.service is None else [Target("api", *around.service)]
        return [] if settings.api_server == NONE else [Target("api", settings.api_server, settings.api_port)]

    def _services(self, around: Surroundings) -> list[Target]:
        settings = self._settings
        found = self._api(around)
        dns = dns_of(around.resolv_conf)[0] if settings.dns == AUTO else settings.dns
        if dns not in ("", NONE):
            found += [Target("dns-udp", dns, settings.dns_port), Target("dns-tcp", dns, settings.dns_port)]
        return found

    def _peers(self, peers: Sequence[Peer]) -> list[Target]:
        """So that two in a row are of different peers, and of different families where there are two."""
        rounds = range(max((len(peer.addresses) for peer in peers), default=0))
        return [
            Target("peer", peer.addresses[(turn + place) % len(peer.addresses)], self._settings.port, peer.node)
            for turn in rounds
            for place, peer in enumerate(peers)
            if turn < len(peer.addresses)
        ]

    def _judged(self, around: Surroundings, listed: PeerList, outcomes: Mapping[Target, Outcome]) -> Finding:
        known, since = listed.now, self._doubt_since  # it may have been read again
        lately = self._monotonic() - LATELY_S if since is None else since
        is_young = self._monotonic() - self._began < LATELY_S
        unknown = not around.is_asked or (is_young and since is None)
        visitors = None if unknown else around.board.visitors(lately)
        finding = judge(self._seen(around, known, outcomes, visitors))
        api_open = any(outcome.open for target, outcome in outcomes.items() if target.kind == "api")
        unread = since is not None and (known.read_at is None or known.read_at < since - SOON_S)
        waits = since is not None and self._monotonic() - since < POLICIES_S
        if finding.state is CheckState.FAILED and api_open and unread and waits and not known.trouble:
            listed.refresh(at_once=True)
            text = f"whether a NetworkPolicy stops packets is being read: {finding.output}"
            return Finding(CheckState.UNKNOWN, text)
        return finding

    def _seen(
        self, around: Surroundings, known: Known, outcomes: Mapping[Target, Outcome], visitors: Sequence[str] | None
    ) -> Seen:
        # Also what has answered just now: the list may be of a time when all agents started.
        since = self._monotonic() - LATELY_S
        self._alive = {node: at for node, at in self._alive.items() if at >= since}
        ready = {*self._alive, *(peer.node for peer in known.peers or () if peer.ready)}
        others = None if known.peers is None else sum(peer.node != around.node for peer in known.peers)
        probes = [
            Probe(target.node, target.family, outcome.way, outcome.answer, outcome.detail, target.node in ready)
            for target, outcome in outcomes.items()
            if target.kind == "peer" and not outcome.moved
        ]
        legs = [
            Leg("api" if target.kind == "api" else "dns", _LEG_NAMES[target.kind], outcome.way, outcome.detail)
            for target, outcome in outcomes.items()
            if target.kind != "peer"
        ]
        return Seen(
            around.node,
            others,
            probes,
            legs,
            visitors,
            known.peers_denied,
            known.services_denied,
            list_trouble=known.trouble,
            list_forbidden=known.forbidden,
        )

    def _say(self, around: Surroundings, finding: Finding, outcomes: Mapping[Target, Outcome]) -> None:
        """To peers, of this run and of peers that it did not ask."""
        peers = [(t.node, _got_there(t, o)) for t, o in outcomes.items() if t.kind == "peer"]
        asked = {node: all(is_open for name, is_open in peers if name == node) for node, _ in peers}
        before = {node: is_open for node, is_open in self._reached.items() if node in self._first}
        self._reached = {**(before if self._doubt_since is None else {}), **asked}
        around.board.answer = Answer(
            around.node,
            str(finding.state),
            tuple(sorted(node for node, is_open in self._reached.items() if is_open)),
            tuple(sorted(node for node, is_open in self._reached.items() if not is_open)),
            api=_state_of(outcomes, ("api",)),
            dns=_state_of(outcomes, ("dns-udp", "dns-tcp")),
        )


def _got_there(target: Target, outcome: Outcome) -> bool:
    """A peer that refuses has been reached, a Service that does leads nowhere."""
    return outcome.open or (target.kind == "peer" and outcome.way is Way.REFUSED)


def _only_small(outcome: Outcome) -> Outcome:
    """Of a second try with a small packet, where a full one was lost."""
    return Outcome(Way.SMALL_ONLY, outcome.answer) if outcome.open else outcome


def _state_of(outcomes: Mapping[Target, Outcome], kinds: Sequence[str]) -> bool | None:
    found = [outcome.open for target, outcome in outcomes.items() if target.kind in kinds]
    return all(found) if found else None
