"""What only a real container runtime can tell: addresses that leaked, a network that it has not loaded, and commands of
readiness probes that the agent has it run (off by default)."""

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from agent.opinion.verdict import PROBE_NOT_MADE
from agent.wire.condition import ANNOTATION_SPEAKER
from kube import contract
from tests.hosts.deployment.probing import PODS, pod
from tests.hosts.service.conftest import HEALTH_PODS, Service
from tests.hosts.service.node_mode import FOLDER, NS, Node, Verdicts, ours_in
from tests.hosts.waiting import wait_until
from tools.faults.cni import CONF
from tools.faults.registry import FAULTS
from tools.kit.programs import Program
from tools.testbed.hosts.images import PAUSE

SOCKET = "/host/run/containerd/containerd.sock"
NETWORKS = "/var/lib/cni/networks"
GIVEN = {
    "readygate_node_profile": "fast",
    "readygate_node_cni_bin_dirs": ["/usr/lib/cni"],
    "readygate_node_checks": [
        {
            "name": "addresses",
            "podAddresses": {"confDir": f"/host{CONF}", "dataDir": f"/host{NETWORKS}", "socket": SOCKET},
        },
        {"name": "runtime", "runtime": {"socket": SOCKET, "confDir": f"/host{CONF}"}},
    ],
}
KEPT = "/var/tmp/readygate-test-address"
# Beside the folder, not in it: what is renamed within it the runtime sees.
MOVED, OTHER = f"{CONF}/05-other.conflist", "/etc/cni/05-other.conflist"
COMMANDS = "command-health"
SAYS_YES = f"{FOLDER}/yes"
COMMAND_PODS = {"namespace": NS, "labelSelector": f"app={COMMANDS}", "daemonSet": COMMANDS}


@pytest.fixture(scope="module")
def checked(service: Service) -> Service:
    service.play(**GIVEN)
    return service


def says(node: Node, name: str, state: str, words: str) -> Callable[[], bool]:
    def look() -> bool:
        check = node.checks().get(name, {})
        return check.get("state") == state and words in check.get("output", "")

    return look


def settle(node: Node, name: str, state: str, words: str = "") -> str:
    """What it says then."""
    wait_until(says(node, name, state, words), lambda: f"{name} {state}: {node.checks()}")
    return str(node.checks()[name]["output"])


def test_an_address_whose_sandbox_the_runtime_does_not_know_is_told_and_those_in_use_are_not(
    checked: Service, extender: Program
) -> None:
    """The file that host-local has written for a real sandbox, and that is there when that is gone: as after a loss of
    power."""
    node, name = checked.nodes[0], "readygate-test-leaks"
    api = node.api
    with Verdicts(extender, node.name).asked() as verdicts:
        settle(node, "addresses", "passed")
        api.create(PODS, pod(name, node.name, PAUSE))
        try:
            wait_until(lambda: api.get(f"{PODS}/{name}")["status"].get("podIP"), "an address")
            address = api.get(f"{PODS}/{name}")["status"]["podIP"]
            node.ssh(f"cp -p {NETWORKS}/*/{address} {KEPT}; ls -d {NETWORKS}/*/ > {KEPT}.folder")
        finally:
            api.delete(f"{PODS}/{name}", grace_s=0)
        place, owner = f"$(head -n 1 {KEPT}.folder){address}", node.ssh(f"head -n 1 {KEPT}").strip()
        # While the runtime has the sandbox still, ended, its kubelet removes it and gives the address back once more.
        wait_until(
            lambda: owner not in node.ssh("ctr --namespace k8s.io containers list --quiet"),
            lambda: f"{owner} is gone",
        )
        try:
            node.ssh(f"cp -p {KEPT} {place}")
            young = node.checks()["addresses"]["state"]
            node.ssh(f"touch -d '3 minutes ago' {place}")
            told = settle(node, "addresses", "warned")
        finally:
            node.ssh(f"rm -f {place} {KEPT} {KEPT}.folder")
        settle(node, "addresses", "passed")
    assert ("passed", True) == (young, told.endswith(f"; 1 leaked: {address} of {owner[:13]}")), told
    assert ["open"] == verdicts.words


def test_a_network_that_was_moved_into_place_unseen_by_the_runtime_is_told_until_it_has_loaded_it(
    checked: Service, extender: Program
) -> None:
    """The check `cni` looks at the files, and finds nothing wrong."""
    node = checked.nodes[0]
    with Verdicts(extender, node.name).asked() as verdicts:
        settle(node, "runtime", "passed")
        try:
            node.ssh(f'sed \'s/"pods"/"other"/\' {CONF}/10-bridge.conflist > {OTHER}; mv {OTHER} {MOVED}')
            unseen = settle(node, "runtime", "warned")
            cni = settle(node, "cni", "passed", "05-other.conflist")
            node.ssh(f"echo >> {MOVED}")
            settle(node, "runtime", "passed")
        finally:
            node.ssh(f"rm -f {OTHER} {MOVED}")
        settle(node, "cni", "passed", "10-bridge.conflist")
        settle(node, "runtime", "passed")
    assert (
        "the files name the network other, loaded is pods",
        "05-other.conflist: bridge, host-local, portmap, loopback",
    ) == (unseen, cni)
    assert ["open"] == verdicts.words


def test_a_broken_network_closes_by_what_the_runtime_itself_says_of_it(checked: Service, extender: Program) -> None:
    node, fault = checked.nodes[0], FAULTS["cni-broken"]
    with Verdicts(extender, node.name).asked() as verdicts:
        try:
            node.ssh("\n".join(fault.inject))
            told = settle(node, "runtime", "failed")
            file = settle(node, "cni", "failed")
        finally:
            node.ssh("\n".join(fault.heal))
        wait_until(verdicts.is_last("open"), lambda: f"it opens: {verdicts.seen}")
    assert told.startswith("the runtime has no network: NetworkPluginNotReady: "), told
    assert "00-broken.conflist does not parse" in file, file
    assert ("open", "closed", "open") == (verdicts.words[0], verdicts.words[1], verdicts.words[-1])


def daemon_set(image: str) -> dict[str, Any]:
    """Its readiness probe is a command."""
    probe = {"exec": {"command": ["test", "-e", "/host/yes"]}, "periodSeconds": 1, "failureThreshold": 2}
    container = {
        "name": "app",
        "image": image,
        "imagePullPolicy": "Never",
        "command": ["sleep", "infinity"],
        "readinessProbe": {**probe, "timeoutSeconds": 5},
        "volumeMounts": [{"name": "host", "mountPath": "/host"}],
        "securityContext": {"runAsUser": 0},
    }
    spec = {
        "serviceAccountName": contract.NAME_AGENT,
        "terminationGracePeriodSeconds": 0,
        "containers": [container],
        "volumes": [{"name": "host", "hostPath": {"path": FOLDER, "type": "DirectoryOrCreate"}}],
        "tolerations": [{"operator": "Exists"}],
    }
    labels = {"app": COMMANDS}
    template = {"metadata": {"labels": labels, "annotations": {ANNOTATION_SPEAKER: "node"}}, "spec": spec}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": COMMANDS, "namespace": NS},
        "spec": {"selector": {"matchLabels": labels}, "template": template},
    }


def test_commands_of_readiness_probes_are_run_by_the_runtime_for_the_agent_only_where_that_is_wished(
    service: Service, image: str
) -> None:
    """While the kubelet stands still: whatever is run then, the agent has asked for."""
    node, both = service.nodes[0], [HEALTH_PODS, COMMAND_PODS]
    listed = f"/api/v1/namespaces/{NS}/pods?labelSelector=app%3D{COMMANDS}&fieldSelector=spec.nodeName%3D{node.name}"
    since = ""

    def words(name: str) -> list[str]:
        log = node.ssh(f"journalctl -u readygate-node --since '@{since}' -o cat")
        return [
            {True: "ready", False: "not ready", None: "unknown"}[one.containers_ready] for one in ours_in(log, name)
        ]

    def ready_pods() -> list[str]:
        pods = [one for one in node.api.items(listed) if "deletionTimestamp" not in one["metadata"]]
        return [one["metadata"]["name"] for one in pods if one["status"].get("containerStatuses", [{}])[0].get("ready")]

    node.ssh(f"touch {SAYS_YES}")
    node.hosts.kubectl("apply", "--validate=false", "-f-", stdin=json.dumps(daemon_set(image)))
    try:
        wait_until(ready_pods, "its kubelet calls the pod ready")
        (name,) = ready_pods()
        since = f"{time.time():.0f}"
        service.play(readygate_node_health_pods=both)
        wait_until(lambda: words(name), "the agent looks at it")
        log = node.ssh(f"journalctl -u readygate-node --since '@{since}' -o cat")
        without = (words(name)[-1], f'finding="{PROBE_NOT_MADE}" pod="{NS}/{name}"' in log)
        since = f"{time.time():.0f}"
        service.play(readygate_node_health_pods=both, readygate_node_exec_probes=True)
        wait_until(lambda: words(name)[-1:] == ["ready"], lambda: f"by a command: {words(name)}")
        node.ssh("systemctl kill --kill-whom=main --signal=STOP kubelet")
        try:
            node.ssh(f"rm {SAYS_YES}")
            wait_until(lambda: words(name)[-1:] == ["not ready"], lambda: f"{words(name)}")
            node.ssh(f"touch {SAYS_YES}")
            wait_until(lambda: words(name)[-1:] == ["ready"], lambda: f"{words(name)}")
        finally:
            node.ssh("systemctl kill --kill-whom=main --signal=CONT kubelet")
    finally:
        node.ssh(f"rm -f {SAYS_YES}")
        node.hosts.kubectl("delete", "--ignore-not-found", "-n", NS, "daemonset", COMMANDS)
    assert ("unknown", True) == without
