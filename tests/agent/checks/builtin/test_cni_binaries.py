"""The check `cni` looks for every binary that the runtime, or a plugin, runs for a pod.

Each row names the report that it is made of, by repository and number.
"""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agent.checks.builtin.cni import Check, Settings
from agent.checks.executables import LEVELS, looked, runtime_of
from agent.checks.state import CheckState, Finding
from tools.kit.cases import cases

PASSED, WARNED, FAILED, UNKNOWN = CheckState.PASSED, CheckState.WARNED, CheckState.FAILED, CheckState.UNKNOWN
HOST_LOCAL = {"type": "host-local", "subnet": "10.1.0.0/24"}
BRIDGE: dict[str, Any] = {"type": "bridge", "ipam": HOST_LOCAL}
PORTMAP = {"type": "portmap", "capabilities": {"portMappings": True}}
CALICO = {"type": "calico", "ipam": {"type": "calico-ipam"}}
FLANNEL = {"type": "flannel", "delegate": {"hairpinMode": True, "isDefaultGateway": True}}
CANAL = {"type": "flannel", "delegate": {"type": "calico", "etcd_endpoints": "http://10.0.0.1:2379"}}


def network(*plugins: object, name: str = "pods") -> dict[str, object]:
    return {"cniVersion": "0.3.1", "name": name, "plugins": list(plugins)}


class Node:
    def __init__(self, root: Path) -> None:
        self.root, self.conf, self.bin = root, root / "etc/cni/net.d", root / "opt/cni/bin"
        self.conf.mkdir(parents=True)
        self.bin.mkdir(parents=True)

    def write(self, name: str, content: object) -> Path:
        file = self.conf / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(content))
        return file

    def find(self, content: object, binaries: str, file: str = "10-net.conflist", **settings: Any) -> Finding:
        self.write(file, content)
        for name in binaries.split():
            (self.bin / name).write_text("#!/bin/sh\n")
            (self.bin / name).chmod(0o755)
        with closing(Check(Settings(str(self.conf), (str(self.bin),), **settings), 60.0)) as check:
            return check()


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


@cases(
    "settings, state",
    ("containerd (rancher/rke2#7981, k0sproject/k0s#582, projectcalico/calico#4308)", {}, FAILED),
    ("containerd by name (aws/amazon-vpc-cni-k8s#64)", {"runtime": "containerd"}, FAILED),
    ("containerd with use_internal_loopback (containerd/containerd#10238)", {"internal_loopback": True}, PASSED),
    ("CRI-O, which raises lo itself (cri-o/ocicni#71, containernetworking/plugins#759)", {"runtime": "crio"}, PASSED),
)
def test_loopback_is_gone(node: Node, settings: dict[str, Any], state: CheckState) -> None:
    """projectcalico/calico#12872, containerd/containerd#8006."""
    found = node.find(network(CALICO, PORTMAP), "calico calico-ipam portmap", **settings)
    gone = f"plugin loopback, which containerd runs for each pod, not found in {node.bin}"
    assert Finding(state, gone if state is FAILED else "10-net.conflist: calico, calico-ipam, portmap") == found


LOOPBACK = "plugin loopback, which containerd runs for each pod,"
MOUNTS = {
    "containerd": "/ / - overlay overlay rw,lowerdir=/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs/1/fs",
    "crio": "/ / - overlay overlay rw,lowerdir=/var/lib/containers/storage/overlay/l/ABC",
    "": "/ / - overlay overlay rw,lowerdir=/var/lib/docker/overlay2/l/ABC",
}


@cases(
    "mounts, runtime",
    ("of containerd", ["containerd"], "containerd"),
    ("of CRI-O", ["crio"], "crio"),
    ("of none that is known", [""], ""),
    ("of both, as where Podman is used beside", ["containerd", "crio"], ""),
    ("that cannot be read", None, ""),
)
def test_which_runtime_it_is_is_seen_by_the_mounts(tmp_path: Path, mounts: list[str] | None, runtime: str) -> None:
    file = tmp_path / "mountinfo"
    if mounts is not None:
        file.write_text("\n".join(MOUNTS[name] for name in mounts))
    assert runtime == runtime_of(str(file))


@cases(
    "mounts, expected",
    ("containerd", "containerd", {"broken": f"{LOOPBACK} not found in {{bin}}"}),
    ("CRI-O", "crio", {"binaries": ["bridge", "host-local"], "doubts": []}),
    (
        "nobody knows",
        "",
        {
            "binaries": ["bridge", "host-local"],
            "doubts": [
                f"{LOOPBACK} not found in {{bin}}: which runtime this node has is not known",
            ],
        },
    ),
)
def test_a_ready_made_check_closes_no_node_of_another_runtime(
    node: Node, mounts: str, expected: dict[str, Any]
) -> None:
    node.find(network(BRIDGE), "bridge host-local")
    file = node.root / "mountinfo"
    file.write_text(MOUNTS[mounts])
    found = looked("auto", str(node.conf), (str(node.bin),), None, False, str(file))
    wanted = json.loads(json.dumps(expected).replace("{bin}", str(node.bin)))
    assert wanted == {key: found.get(key) for key in wanted}


@cases(
    "plugin, binaries, gone",
    ("bridge (projectcalico/calico#12872)", BRIDGE, "bridge", "plugin host-local, which bridge runs,"),
    ("calico", CALICO, "calico", "plugin calico-ipam, which calico runs,"),
    (
        "calico with another one (k8snetworkplumbingwg/multus-cni#402)",
        {"type": "calico", "ipam": {"type": "custom-ipam"}},
        "calico",
        "plugin custom-ipam, which calico runs,",
    ),
    (
        "macvlan (hashicorp/nomad#9534)",
        {"type": "macvlan", "master": "enp1s0f1", "ipam": {"type": "dhcp"}},
        "macvlan",
        "plugin dhcp, which macvlan runs,",
    ),
    (
        "ovs (k8snetworkplumbingwg/ovs-cni#168)",
        {"type": "ovs", "bridge": "b", "ipam": HOST_LOCAL},
        "ovs",
        "plugin host-local, which ovs runs,",
    ),
    (
        "keys in other case (Azure/azure-container-networking#918 has such)",
        {"type": "azure-vnet", "IPAM": {"Type": "azure-vnet-ipam"}, "dns": {"Nameservers": ["10.0.0.10"]}},
        "azure-vnet",
        "plugin azure-vnet-ipam, which azure-vnet runs,",
    ),
    ("flannel's default (flannel-io/flannel#1847)", FLANNEL, "flannel", "plugin bridge, which flannel runs,"),
    ("flannel's own (projectcalico/cni-plugin#321)", CANAL, "flannel bridge", "plugin calico, which flannel runs,"),
    ("flannel's IPAM plugin", FLANNEL, "flannel bridge", "plugin host-local, which bridge runs,"),
    (
        "flannel with another one",
        {**FLANNEL, "ipam": {"type": "whereabouts"}},
        "flannel bridge host-local",
        "plugin whereabouts, which bridge runs,",
    ),
    ("a plugin after it (flannel-io/flannel#1730)", PORTMAP, "", "plugin portmap not found"),
)
def test_what_a_plugin_runs_is_gone(node: Node, plugin: dict[str, Any], binaries: str, gone: str) -> None:
    found = node.find(network(plugin), f"{binaries} loopback")
    assert (FAILED, True) == (found.state, found.output.startswith(gone)), found


@cases(
    "plugin, binaries",
    ("none is named: the host's own addresses (multus-cni#10)", {"type": "bridge"}, "bridge"),
    ("empty", {"type": "macvlan", "ipam": {}}, "macvlan"),
    (
        "a service (Azure/azure-container-networking#2281)",
        {"type": "azure-vnet", "ipam": {"type": "azure-cns"}},
        "azure-vnet",
    ),
    (
        "Azure's, where it is not asked",
        {"type": "azure-vnet", "multiTenancy": True, "ipam": {"type": "azure-vnet-ipam"}},
        "azure-vnet",
    ),
    ("Antrea's, which its agent brings", {"type": "antrea", "ipam": {"type": "host-local"}}, "antrea"),
    ("Amazon's, switched off", {"type": "egress-cni", "enabled": "false", "ipam": HOST_LOCAL}, "egress-cni"),
    ("Cilium's agent", {"type": "cilium-cni", "enable-debug": False}, "cilium-cni"),
)
def test_no_ipam_plugin_is_run(node: Node, plugin: dict[str, Any], binaries: str) -> None:
    assert PASSED is node.find(network(plugin), f"{binaries} loopback").state


@cases(
    "plugin",
    (
        "Cilium's, by its agent's configuration (cilium/cilium#19219)",
        {"type": "cilium-cni", "ipam": {"type": "azure-ipam"}},
    ),
    ("of a plugin that is not known", {"type": "lyft-ipvlan", "ipam": {"type": "azure-ipam"}}),
)
def test_an_ipam_plugin_that_may_not_be_run_only_warns(node: Node, plugin: dict[str, Any]) -> None:
    kind = plugin["type"]
    said = f"plugin azure-ipam, which {kind} names, not found in {node.bin}: whether it is run is not known"
    assert Finding(WARNED, said) == node.find(network(plugin), f"{kind} loopback")
    assert PASSED is node.find(network(plugin), "azure-ipam").state


@cases(
    "plugin, wrong",
    ("ptp names none (containernetworking/cni#52)", {"type": "ptp"}, "plugin ptp: names no IPAM plugin"),
    ("an empty name (lyft/cni-ipvlan-vpc-k8s#7)", {"type": "vlan", "ipam": {"type": ""}}, "plugin vlan: names no IPAM"),
    ("a path", {"type": "bridge", "ipam": {"type": "../x"}}, "invalid plugin type ../x"),
    ("flannel's delegate is a text", {"type": "flannel", "delegate": "bridge"}, "plugin flannel: delegate: a text"),
    ("flannel's delegate has a name", {"type": "flannel", "delegate": {"name": "x"}}, "delegate must not have name"),
    ("nothing for multus (multus-cni#1099)", {"type": "multus"}, "neither delegates nor clusterNetwork is set"),
    ("multus' delegates are no list", {"type": "multus", "delegates": {}}, "plugin multus: delegates: an object"),
    ("a delegate without a type", {"type": "multus", "delegates": [{"name": "x"}]}, "lists no plugins"),
    ("a delegate of a wrong type", {"type": "multus", "delegates": [{"name": 1}]}, "name is no text"),
)
def test_what_a_plugin_refuses_each_pod_for(node: Node, plugin: dict[str, Any], wrong: str) -> None:
    kind = plugin["type"]
    found = node.find(network(plugin), f"{kind} bridge loopback passthru")
    assert (FAILED, True) == (found.state, wrong in found.output), found


def thin(*delegates: object, **more: object) -> dict[str, object]:
    return {"cniVersion": "0.3.1", "name": "multus-cni-network", "type": "multus", "delegates": list(delegates), **more}


DEMO = ({"type": "macvlan", "ipam": HOST_LOCAL}, FLANNEL)  # k8snetworkplumbingwg/multus-cni#432


@cases(
    "delegates, binaries, gone",
    ("a list (projectcalico/calico#8138)", [network(CALICO, PORTMAP)], "", "plugin calico, which multus runs,"),
    ("its IPAM plugin", [network(CALICO, PORTMAP)], "calico portmap", "plugin calico-ipam, which calico runs,"),
    ("its second plugin", [network(CALICO, PORTMAP)], "calico calico-ipam", "plugin portmap, which multus runs,"),
    ("the second delegate (#432)", DEMO, "macvlan host-local", "plugin flannel, which multus runs,"),
    ("what that one runs (#432)", DEMO, "macvlan host-local flannel", "plugin bridge, which flannel runs,"),
    ("multus in multus", [thin(BRIDGE)], "", "plugin bridge, which multus runs,"),
)
def test_delegates_that_stand_in_multus_file(node: Node, delegates: list[Any], binaries: str, gone: str) -> None:
    found = node.find(thin(*delegates), f"multus loopback {binaries}", "00-multus.conf")
    assert (FAILED, True) == (found.state, found.output.startswith(gone)), found
    everything = "calico calico-ipam portmap macvlan host-local flannel bridge"
    assert PASSED is node.find(thin(*delegates), everything, "00-multus.conf").state


def cluster(name: str, kind: str = "multus-shim", **more: object) -> dict[str, object]:
    return {"cniVersion": "0.3.1", "name": "multus-cni-network", "type": kind, "clusterNetwork": name, **more}


@pytest.mark.parametrize("kind", ["multus-shim", "multus"])
@cases(
    "name, file",
    ("as multus' daemon sees it (multus-cni#1276)", "/host/etc/cni/net.d/10-calico.conflist", "10-calico.conflist"),
    ("its path on the host", "/etc/cni/net.d/10-calico.conflist", "10-calico.conflist"),
    ("its path here", "{conf}/10-calico.conflist", "10-calico.conflist"),
    (
        "another folder of the host",
        "/host/run/multus/cni/net.d/10-x.conflist",
        "../../../run/multus/cni/net.d/10-x.conflist",
    ),
    ("a folder, whose first file counts", "/run/multus/cni/net.d/", "../../../run/multus/cni/net.d/10-x.conflist"),
    ("with plugins that lie beside it", "/etc/cni/net.d/10-calico.conflist", "10-calico.conflist"),
)
def test_the_cluster_network_is_read_where_it_lies(node: Node, kind: str, name: str, file: str) -> None:
    node.write(file, network(CALICO))
    content = cluster(name.format(conf=node.conf), kind)
    found = node.find(content, f"{kind} loopback", "00-multus.conf")
    assert Finding(FAILED, f"plugin calico, which {kind} runs, not found in {node.bin}") == found
    found = node.find(content, "calico calico-ipam", "00-multus.conf")
    assert Finding(PASSED, f"00-multus.conf: {kind}, calico, calico-ipam, loopback") == found


@pytest.mark.parametrize("conf_dir", ["host/etc/kubernetes/cni/net.d", "rancher/agent/etc/cni/net.d", "x/net.d"])
def test_the_folder_of_the_runtime_has_another_name_here(tmp_path: Path, conf_dir: str) -> None:
    """k3s, OpenShift, and one that is mounted at any place."""
    node = Node(tmp_path)
    node.conf = tmp_path / conf_dir
    node.write("10-calico.conflist", network(CALICO))
    host = "/" + conf_dir.removeprefix("host/") if conf_dir != "x/net.d" else "/etc/cni/net.d"
    found = node.find(cluster(f"/host{host}/10-calico.conflist"), "multus-shim loopback", "00-multus.conf")
    assert (FAILED, True) == (found.state, found.output.startswith("plugin calico, which multus-shim runs,")), found


def test_default_networks_and_the_chain_beside_the_cluster_network_are_run_too(node: Node) -> None:
    node.write("10-calico.conflist", network(CALICO))
    node.write("20-bridge.conf", {"name": "more", **BRIDGE})
    more = {"defaultNetworks": ["/etc/cni/net.d/20-bridge.conf"], "auxiliaryCNIChainName": "vendor"}
    content = cluster("/etc/cni/net.d/10-calico.conflist", "multus", **more)
    found = node.find(content, "multus calico calico-ipam loopback", "00-multus.conf")
    assert found.output.startswith("plugin bridge, which multus runs,")
    assert PASSED is node.find(content, "bridge host-local", "00-multus.conf").state
    node.write("vendor/10-tuning.conf", {"type": "tuning"})
    found = node.find(content, "tuning", "00-multus.conf")
    assert found.output.startswith("plugin passthru, which multus runs,")
    assert PASSED is node.find(content, "passthru", "00-multus.conf").state
    (node.conf / "vendor/20-broken.conf").write_text("{")
    (node.bin / "tuning").unlink()
    assert PASSED is node.find(content, "", "00-multus.conf").state, "multus leaves the chain out then"


OUTSIDE = "which is not seen from here"


@cases(
    "content, said",
    ("a file that is not there", cluster("/host/run/multus/10-x.conf"), f"/host/run/multus/10-x.conf, {OUTSIDE}"),
    ("a link that leads nowhere", cluster("/etc/cni/net.d/dangling.conf"), f"/etc/cni/net.d/dangling.conf, {OUTSIDE}"),
    ("itself", cluster("/etc/cni/net.d/00-multus.conf"), f"more than {LEVELS} networks delegate one to another"),
)
def test_a_delegate_that_cannot_be_read_is_unknown(node: Node, content: dict[str, object], said: str) -> None:
    node.write("10-calico.conflist", network(CALICO))
    (node.conf / "dangling.conf").symlink_to("gone")
    found = node.find(content, "multus multus-shim calico calico-ipam loopback", "00-multus.conf")
    assert (UNKNOWN, True) == (found.state, said in found.output), found
    (node.bin / "loopback").unlink()
    assert FAILED is node.find(content, "", "00-multus.conf").state, "what is missing for sure comes first"


@cases(
    "content, said",
    (
        "by name (multus-cni#302)",
        cluster("flannel.1", "multus"),
        "multus runs the network flannel.1, which may be one of the API server's: its binaries are not checked",
    ),
    (
        "by name, thick",
        cluster("default-cni-network"),
        "multus-shim runs the network default-cni-network, which may be",
    ),
    (
        "a default network",
        cluster("/etc/cni/net.d/10-calico.conflist", defaultNetworks=["sidecar"]),
        "multus-shim runs the network sidecar, which may be",
    ),
    ("nothing: its daemon knows", {"name": "m", "type": "multus-shim"}, "is in the configuration of its daemon"),
)
def test_a_delegate_that_is_not_on_the_host_warns_and_keeps_no_node_closed(
    node: Node, content: dict[str, object], said: str
) -> None:
    node.write("10-calico.conflist", network(CALICO))
    found = node.find(content, "multus multus-shim calico calico-ipam loopback", "00-multus.conf")
    assert (WARNED, True) == (found.state, said in found.output), found
    (node.bin / "loopback").unlink()
    assert FAILED is node.find(content, "", "00-multus.conf").state, "what is missing for sure comes first"


@cases(
    "text",
    ("half of it", '{"name": "x", "plugins": ['),
    ("no plugins", '{"name": "x", "plugins": []}'),
    ("a byte order mark", '\ufeff{"name": "x", "plugins": [{"type": "bridge"}]}'),
)
def test_a_delegate_that_multus_cannot_read_fails(node: Node, text: str) -> None:
    (node.conf / "10-x.conflist").write_text(text)
    content = cluster("/host/etc/cni/net.d/10-x.conflist")
    found = node.find(content, "multus-shim bridge loopback", "00-multus.conf")
    assert (FAILED, True) == (found.state, f"{node.conf}/10-x.conflist" in found.output), found


K3S = "/var/lib/rancher/k3s/data/current/bin"  # k8snetworkplumbingwg/multus-cni#1276


def test_a_folder_of_binaries_of_multus_own(node: Node) -> None:
    """What it may have in a folder that is not seen from here is unknown; what it has in one that is counts."""
    own = node.root / "own"
    for folder in (K3S, str(own)):
        found = node.find(thin(BRIDGE, bindir=folder), "multus loopback", "00-multus.conf")
        assert UNKNOWN is found.state
        assert found.output.endswith(f"its folder {folder} is not seen from here")
    own.mkdir()
    for name in ("bridge", "host-local"):
        (own / name).write_text("#!/bin/sh\n")
        (own / name).chmod(0o755)
    assert PASSED is node.find(thin(BRIDGE, binDir=str(own)), "", "00-multus.conf").state
    for folder in ("/opt/cni/bin", "/opt/cni/bin/"):
        assert FAILED is node.find(thin(BRIDGE, binDir=folder), "", "00-multus.conf").state


def test_crio_takes_a_file_whose_plugins_are_there_and_then_looks_for_what_they_run(node: Node) -> None:
    node.write("00-a.conflist", network({"type": "gone"}, name="a"))
    found = node.find(network(BRIDGE), "bridge", runtime="crio")
    assert Finding(FAILED, f"plugin host-local, which bridge runs, not found in {node.bin}") == found
    assert Finding(PASSED, "10-net.conflist: bridge, host-local") == node.find(
        network(BRIDGE), "host-local", runtime="crio"
    )
