"""The checks that need addresses of the cluster, with those that the role finds on a host and in the inventory."""

from collections import Counter
from typing import Any

import pytest
import yaml

from agent import settings as agent_settings
from agent.checks.builtin import service_path
from agent.checks.catalogue import given_kinds
from tests.playbooks.rendering import filters, plain, render
from tests.playbooks.test_node_addresses import trusted
from tests.playbooks.test_node_plugin import ROLE, host
from tests.test_docs import YAML_FILES

FILTERS = filters(ROLE)
NO_DNS = "without the check dns, because the kubelet names no DNS server"
NO_PATH = "without the check service-path, because the address of the API server's Service is unknown"
NO_PEERS = "without checks of other nodes, because the host has none of its addresses in the inventory"
SEEN = {"dns": "10.96.0.10", "domain": "cluster.local", "services": "10.96.0.1", "own": "yes", "api_port": "6443"}
DNS = {"service": "10.96.0.10", "name": "kubernetes.default.svc.cluster.local"}
CONTROLS = ["192.0.2.1"]
HOSTS = [[name, "", f"192.0.2.{place}", name] for place, name in enumerate("abc", start=1)]
RING = FILTERS["readygate_node_ring"](HOSTS)


def found(seen: dict[str, str], ring: Any = RING, own: str = "192.0.2.2", controls: Any = CONTROLS) -> dict[str, Any]:
    return FILTERS["readygate_node_found"](seen, ring, "b", own, controls)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(["a", "", "192.0.2.1", "a"], "192.0.2.1", id="where Ansible reaches it"),
        pytest.param(["a", "10.0.0.1", "192.0.2.1", "a"], "10.0.0.1", id="kubespray's of the nodes' network first"),
        pytest.param(["a", "", "", "192.0.2.1"], "192.0.2.1", id="a host that is called by its address"),
        pytest.param(["a", "", "[FDAB:0::1]", "a"], "fdab::1", id="of IPv6 as the kernel writes it"),
        pytest.param(["a", "", "a.example.com", "a"], "", id="a name is none"),
        pytest.param(["a", "", "127.0.0.1", "a"], "", id="a port of this machine that leads there is none"),
        pytest.param(["a", "", "fe80::1%eth0", "a"], "", id="one that holds on a link alone is none"),
        pytest.param(["a", None, 7, "a"], "", id="what is no text"),
    ],
)
def test_the_address_of_a_host(given, expected):
    assert expected == FILTERS["readygate_node_address"](given)


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        pytest.param({}, {"dns": DNS}, id="the Service"),
        pytest.param(
            {"domain": "example.org."}, {"dns": DNS | {"name": "kubernetes.default.svc.example.org"}}, id="its domain"
        ),
        pytest.param({"domain": ""}, {"dns": {"service": "10.96.0.10"}}, id="a domain that nobody tells is the usual"),
        pytest.param(
            {"dns": "169.254.25.10"},
            {"dns": {"nodeLocal": "169.254.25.10", "name": DNS["name"]}},
            id="an address of a link is that of a cache on the node",
        ),
        pytest.param(
            {"dns": "169.254.25.10, 10.96.0.10"}, {"dns": DNS | {"nodeLocal": "169.254.25.10"}}, id="a cache, a Service"
        ),
        pytest.param({"dns": "10.96.0.10,10.96.0.11"}, {"dns": DNS}, id="of several the first"),
        pytest.param(
            {"dns": "10.96.0.10,fd00::a"},
            {"dns": DNS, "dns-ipv6": DNS | {"service": "fd00::a", "type": "A"}},
            id="two families, and the API server's Service is of the first",
        ),
        pytest.param(
            {"dns": "fd00::a,10.96.0.10", "services": "fd00::1"},
            {"dns": DNS | {"service": "fd00::a"}, "dns-ipv4": DNS | {"type": "AAAA"}},
            id="the other way round",
        ),
        pytest.param({"dns": ""}, {}, id="a kubelet that names none"),
        pytest.param({"dns": "127.0.0.53,x,::,\x1b[2J"}, {}, id="nothing that pods could ask"),
    ],
)
def test_the_checks_of_dns(seen, expected):
    made = found(SEEN | seen)
    checks = {check["name"]: check["dns"] for check in made["checks"] if "dns" in check}
    assert (expected, [] if expected else [NO_DNS]) == (checks, made["without"])


@pytest.mark.parametrize(
    ("seen", "own", "controls", "expected", "without"),
    [
        pytest.param(
            {},
            "192.0.2.2",
            CONTROLS,
            {"apiServers": CONTROLS, "apiPort": 6443, "peers": ["192.0.2.1", "192.0.2.3"]},
            [],
            id="the Service by the API server, the rest by the inventory",
        ),
        pytest.param(
            {"endpoints": "192.0.2.8,192.0.2.7,"},
            "192.0.2.2",
            [],
            {"apiServers": ["192.0.2.7", "192.0.2.8"], "apiPort": 6443, "peers": ["192.0.2.1", "192.0.2.3"]},
            [],
            id="an inventory without control planes",
        ),
        pytest.param(
            {"own": "no", "endpoints": "192.0.2.7"},
            "203.0.113.2",
            ["203.0.113.1"],
            {"apiServers": ["192.0.2.7"], "apiPort": 6443, "peers": []},
            [NO_PEERS],
            id="an inventory of another network than the nodes'",
        ),
        pytest.param({}, "", CONTROLS, {"apiPort": 6443, "peers": []}, [NO_PEERS], id="an inventory of names"),
        pytest.param(
            {"proxy": "127.0.0.1", "port": "10350"},
            "192.0.2.2",
            CONTROLS,
            {
                "apiServers": CONTROLS,
                "apiPort": 6443,
                "peers": ["192.0.2.1", "192.0.2.3"],
                "peerPort": 10350,
                "proxy": "127.0.0.1",
            },
            [],
            id="with kube-proxy, and the kubelets' port",
        ),
        pytest.param(
            {"services": "fd00::1,10.96.0.1", "api_port": "443; x", "proxy": "x", "port": "0"},
            "192.0.2.2",
            CONTROLS,
            {"apiServers": CONTROLS, "peers": ["192.0.2.1", "192.0.2.3"]},
            [],
            id="of two families the first, and no port and no proxy that is none",
        ),
    ],
)
def test_the_check_of_the_way_to_services_and_peers(seen, own, controls, expected, without):
    made = found(SEEN | seen, own=own, controls=controls)
    (path,) = [check["servicePath"] for check in made["checks"] if "servicePath" in check]
    path["peers"] = sorted(path.get("peers", []))
    assert (expected | {"service": seen.get("services", "10.96.0.1").split(",")[0]}, without) == (path, made["without"])


def test_without_the_api_servers_service_there_is_no_such_check_also_where_there_are_peers():
    """The check would ask at the address of another cluster's."""
    made = found(SEEN | {"services": "None"})
    assert (["dns"], [NO_PATH]) == ([check["name"] for check in made["checks"]], made["without"])


def test_what_is_found_warns():
    assert {"warn"} == {check["severity"] for check in found(SEEN)["checks"]}


@pytest.mark.parametrize(
    ("seen", "controls", "expected"),
    [
        pytest.param(
            {"endpoints": "192.0.2.7"}, CONTROLS, ["services=10.96.0.1", "api_port=6443"], id="not what is not used"
        ),
        pytest.param(
            {"endpoints": "192.0.2.7,"},
            [],
            ["services=10.96.0.1", "api_port=6443", "endpoints=192.0.2.7"],
            id="what is used",
        ),
        pytest.param({"services": ""}, [], [], id="nothing was told"),
        pytest.param(
            {"proxy": "::1"}, CONTROLS, ["services=10.96.0.1", "api_port=6443", "proxy=::1"], id="where kube-proxy is"
        ),
    ],
)
def test_what_the_configuration_keeps_for_when_the_api_server_does_not_answer(seen, controls, expected):
    assert expected == found(SEEN | seen, controls=controls)["seen"]


# Peers


def many(count: int) -> list[list[str]]:
    return [[f"node-{n}", "", f"10.{n // 250}.0.{n % 250 + 1}", f"node-{n}"] for n in range(count)]


def neighbours(hosts: list[list[str]]) -> dict[str, tuple[str, ...]]:
    ring = FILTERS["readygate_node_ring"](hosts)
    made = {name: FILTERS["readygate_node_found"](SEEN, ring, name, own, [])["checks"][-1] for name, _, own, _ in hosts}
    return {name: tuple(check["servicePath"].get("peers", [])) for name, check in made.items()}


def test_of_5000_nodes_each_has_as_many_peers_as_the_check_looks_at_and_is_the_peer_of_as_many():
    count = service_path.PEERS + service_path.FURTHER
    hosts = many(5000)
    peers = neighbours(hosts)
    named = Counter(address for some in peers.values() for address in some)
    assert {count} == {len(set(some)) for some in peers.values()} == set(named.values())
    assert not any(own in peers[name] for name, _, own, _ in hosts)


def test_a_node_that_comes_is_another_neighbour_for_few():
    """And so changes few configurations."""
    count = service_path.PEERS + service_path.FURTHER
    before, after = neighbours(many(500)), neighbours(many(501))
    assert count == sum(before[name] != after[name] for name in before)


def test_peers_are_of_the_family_of_the_node():
    hosts = [["a", "", "192.0.2.1", ""], ["b", "", "fd00::2", ""], ["c", "", "192.0.2.3", ""], ["d", "", "fd00::4", ""]]
    assert {"a": ("192.0.2.3",), "b": ("fd00::4",), "c": ("192.0.2.1",), "d": ("fd00::2",)} == neighbours(hosts)


# Beside those of the user

KINDS = ["dns", "exec", "servicePath"]
FOUND = [
    {"name": "dns", "dns": DNS, "severity": "warn"},
    {"name": "service-path", "servicePath": {}, "severity": "warn"},
]
OWN = {"name": "mine", "dns": {"service": "192.0.2.53"}}


@pytest.mark.parametrize(
    ("own", "leave_out", "expected"),
    [
        pytest.param([], [], FOUND, id="none of the user's"),
        pytest.param([], ["dns"], FOUND[1:], id="one is left out"),
        pytest.param([OWN], [], [OWN, FOUND[1]], id="one of the user's of that kind takes its place"),
        pytest.param(
            [{"name": "dns", "exec": {}}], [], [{"name": "dns", "exec": {}}, FOUND[1]], id="so does one of that name"
        ),
        pytest.param(
            [{"name": "dns", "severity": "gate"}],
            [],
            [FOUND[0] | {"severity": "gate"}, FOUND[1]],
            id="one of that name without a kind has what was found, and closes where it says so",
        ),
        pytest.param([{"name": "dns-ipv6", "severity": "gate"}], [], FOUND, id="what was not found is left out"),
        pytest.param(
            [{"name": "x"}], [], [{"name": "x"}, *FOUND], id="another without a kind is for the agent to refuse"
        ),
    ],
)
def test_checks_of_the_user_go_first(own, leave_out, expected):
    assert expected == FILTERS["readygate_node_joined"](own, FOUND, leave_out, KINDS)


# In the role

INVENTORY = {
    "groups": {"control_plane": ["a"], "workers": ["b", "c"]},
    "hostvars": {name: {"ansible_host": address} for name, _, address, _ in HOSTS},
    "inventory_hostname": "b",
    "ansible_host": "192.0.2.2",
}


def configuration(**given: Any) -> agent_settings.Settings:
    """Of the host b, which says what SEEN says."""
    known = host(**SEEN) | INVENTORY | given
    places = plain(render(ROLE, known)("__readygate_node_inventory_places"))
    value = render(ROLE, known | {"__readygate_node_places": places})
    assert [] == plain(value("__readygate_node_mistakes"))
    return agent_settings.parse(value("__readygate_node_configuration").encode())


def severities(settings: agent_settings.Settings) -> dict[str, str]:
    wanted = [check for check in settings.checks if {"dns", "servicePath"}.intersection(given_kinds(check))]
    return {check.name: check.severity for check in wanted}


def test_the_agent_takes_what_is_found():
    made = configuration(readygate_node_check_profile="default")
    path = next(check.servicePath for check in made.checks if check.name == "service-path")
    assert {"dns": "warn", "service-path": "warn"} == severities(made)
    assert ("10.96.0.1", ("192.0.2.1",)) == (path.service, path.api_servers)
    assert {"192.0.2.1", "192.0.2.3"} == set(path.peers)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({}, {"dns": "warn", "service-path": "warn"}, id="without settings"),
        pytest.param({"readygate_node_check_profile": ""}, {}, id="without a ready-made list"),
        pytest.param({"readygate_node_check_profile": "minimal"}, {}, id="the smallest"),
        pytest.param(
            {"readygate_node_check_profile": "gpu", "readygate_node_find_addresses": False}, {}, id="where not wanted"
        ),
        pytest.param(
            {"readygate_node_find_addresses": True}, {"dns": "warn", "service-path": "warn"}, id="where wanted"
        ),
        pytest.param(
            {"readygate_node_check_profile": "default", "readygate_node_leave_out": ["dns", "kernel-log"]},
            {"service-path": "warn"},
            id="one of them is left out",
        ),
        pytest.param(
            trusted(yaml.safe_load(YAML_FILES["close.yml"])),
            {"dns": "gate", "service-path": "gate"},
            id="as documented for who has them close",
        ),
    ],
)
def test_which_of_them_the_agent_runs(given, expected):
    assert expected == severities(configuration(**given))


def test_what_is_kept_is_in_the_configuration_where_the_next_look_finds_it():
    known = host(**SEEN) | INVENTORY | {"readygate_node_find_addresses": True}
    lines = render(ROLE, known)("__readygate_node_configuration").splitlines()
    assert ["# Seen: services=10.96.0.1", "# Seen: api_port=6443", "mode: node"] == lines[:3]


def test_another_host_of_the_inventory_that_is_no_neighbour_is_the_same_revision():
    def revision(count: int) -> str:
        hosts = many(count)
        inventory = {
            "groups": {"workers": [name for name, *_ in hosts]},
            "hostvars": {name: {"ansible_host": address} for name, _, address, _ in hosts},
            "inventory_hostname": "node-3",
            "ansible_host": hosts[3][2],
            "readygate_node_find_addresses": True,
        }
        known = host(**SEEN) | inventory
        places = plain(render(ROLE, known)("__readygate_node_inventory_places"))
        return render(ROLE, known | {"__readygate_node_places": places})("__readygate_node_revision")

    assert neighbours(many(60))["node-3"] == neighbours(many(61))["node-3"], "else choose another number"
    assert revision(60) == revision(61)


READY_MADE = {"pressure": {"name": "pressure", "pressure": {"folder": "/host/x"}, "severity": "gate"}}


@pytest.mark.parametrize(
    ("root", "ready_made", "expected"),
    [
        pytest.param("/kubelet", READY_MADE, {"folder": "/host/x", "cgroupRoot": "/kubelet"}, id="another root"),
        pytest.param("/", READY_MADE, None, id="the usual one"),
        pytest.param("", READY_MADE, None, id="none"),
        pytest.param("/a: {b}", READY_MADE, None, id="what is no path"),
        pytest.param("/kubelet", {}, None, id="a list without the check"),
        pytest.param("/kubelet", None, None, id="no list"),
    ],
)
def test_the_check_pressure_is_given_the_kubelets_cgroup_root(root, ready_made, expected):
    """Its severity stays that of the list."""
    made = FILTERS["readygate_node_found"](SEEN | {"cgroup_root": root}, RING, "b", "192.0.2.2", CONTROLS, ready_made)
    of_pressure = [check for check in made["checks"] if check["name"] == "pressure"]
    assert ([] if expected is None else [{"name": "pressure", "pressure": expected}]) == of_pressure


def test_a_check_pressure_of_the_users_without_a_kind_keeps_what_is_found_and_stays_where_nothing_is():
    own = [{"name": "pressure", "severity": "gate"}]
    known = [{"name": "pressure", "pressure": {"cgroupRoot": "/kubelet"}}]
    joined = FILTERS["readygate_node_joined"]
    assert [{**known[0], **own[0]}] == joined(own, known, [], ["pressure"])
    assert own == joined(own, [], [], ["pressure"])
    of_kind = [{"name": "pressure", "pressure": {}}]
    assert of_kind == joined(of_kind, known, [], ["pressure"])
    assert [] == joined([], known, ["pressure"], ["pressure"])


@pytest.mark.parametrize("dns", ["", "10.96.0.10"], ids=["in the only file", "in one of several"])
def test_a_configuration_that_is_not_understood_is_not_one_without_a_server(dns: str) -> None:
    made = found(SEEN | {"dns": dns, "unread": "/x: line 3: no key"})
    assert ["without some of the kubelet's settings: /x: line 3: no key"] == made["without"]
