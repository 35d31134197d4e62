"""The chart on real hosts: helm installs it, tests it, changes it, takes that back and removes it; its privileged
reader tells the agent beside it what the kernel of the host says; and no pod makes a kubelet's probe of an agent fail.
"""

import json
import os
from collections.abc import Iterator

import pytest

from kube import contract
from tests.charts.rendering import CHART, helm
from tests.hosts.deployment.api import AdminApi
from tests.hosts.deployment.conftest import CNI_BIN_DIR
from tests.hosts.waiting import wait_until
from tools.faults.filesystem import DISK
from tools.faults.registry import FAULTS
from tools.testbed.hosts.hosts import Hosts
from tools.testbed.shared.api import ApiError, Object, condition

NS, RELEASE = "charted", "readygate"
PODS = f"/api/v1/namespaces/{NS}/pods?labelSelector=app.kubernetes.io%2Fname%3D{contract.NAME_AGENT}"
SET = f"/apis/apps/v1/namespaces/{NS}/daemonsets/{contract.NAME_AGENT}"
POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
FAULT = FAULTS["log-shutdown"]
LOG = (
    '[{"name":"log","failureThreshold":1,"kernelLog":'
    f'{{"programs":true,"gate":["filesystemShutdown"],"gatePaths":["{DISK}"]}}}}]'
)


STALLS_S = 15.0  # many times what makes two readiness probes fail
STALLING = 64
STALL = f"""import socket, sys, time
def is_open(one):
    try:
        return bool(one.recv(1, socket.MSG_PEEK))
    except BlockingIOError:
        return True
    except OSError:
        return False
held, made, end = [], 0, time.monotonic() + {STALLS_S}
while time.monotonic() < end:
    held = [one for one in held if is_open(one)]
    while len(held) < {STALLING}:
        one = socket.create_connection((sys.argv[1], 9375), 5)
        one.sendall(b"G")
        one.setblocking(False)
        held.append(one)
        made += 1
    time.sleep(0.05)
print(made)
"""


class Charted:
    """The release, and what its agents say of their nodes."""

    def __init__(self, hosts: Hosts, image: str, api: AdminApi, home: str) -> None:
        self.hosts, self.api = hosts, api
        repository, _, tag = image.rpartition(":")
        self.given = [
            f"--set=image.repository={repository},image.tag={tag},agent.minReadySeconds=1,agent.checkProfile=default",
            f"--set=agent.cni.binDirs={{{CNI_BIN_DIR}}}",
            f'--set-json=agent.reader={{"enabled":true,"checks":{LOG}}}',
        ]
        self._environ = {**os.environ, **{f"HELM_{kind}_HOME": home for kind in ("CACHE", "CONFIG", "DATA")}}

    def helm(self, *words: str) -> str:
        where = [f"--kubeconfig={self.hosts.kubeconfig}", f"--namespace={NS}"]
        return helm(*words, *where, environ=self._environ)

    def pods(self) -> dict[str, Object]:
        """By node, those that are not told to end."""
        found = [pod for pod in self.api.items(PODS) if "deletionTimestamp" not in pod["metadata"]]
        return {pod["spec"].get("nodeName", ""): pod for pod in found}

    def failed_probes(self, node: str) -> set[tuple[str, int]]:
        """What the kubelet has told in Events of those of this node's agent, and how often."""
        where = f"fieldSelector=reason%3DUnhealthy%2CinvolvedObject.name%3D{self.pods()[node]['metadata']['name']}"
        events = self.api.items(f"/api/v1/namespaces/{NS}/events?{where}")
        return {(event["message"], event.get("count", 1)) for event in events}

    def words(self) -> dict[str, str | None]:
        """What each agent has written of its node."""
        return {
            name: condition(pod, contract.CONDITION_NODE_HEALTHY).get("status") for name, pod in self.pods().items()
        }

    def all_say(self, word: str, *, but: str = "") -> bool:
        return self.words() == {name: "False" if name == but else word for name in self.hosts.names}

    def is_out(self) -> bool:
        """Whether the roll-out has come to its end."""
        found = self.api.get(SET)
        status = found["status"]
        wanted = len(self.hosts.names)
        is_seen = status.get("observedGeneration") == found["metadata"]["generation"]
        return is_seen and [wanted] * 2 == [status.get(key) for key in ("updatedNumberScheduled", "numberReady")]


@pytest.fixture(scope="module")
def charted(hosts: Hosts, image: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Charted]:
    api = AdminApi(hosts.kubeconfig, tmp_path_factory.mktemp("admin"))
    made = Charted(hosts, image, api, str(tmp_path_factory.mktemp("helm")))
    hosts.kubectl("create", "namespace", NS)
    hosts.kubectl("label", "namespace", NS, "pod-security.kubernetes.io/enforce=privileged")
    try:
        made.helm("install", RELEASE, str(CHART), *made.given)
        yield made
    finally:
        for name in hosts.names:
            hosts.ssh(name, "\n".join([*FAULT.heal, f"umount {DISK}; rmdir {DISK}"]), check=False)
        hosts.kubectl("delete", "namespace", NS, "--ignore-not-found", "--timeout=90s", timeout_s=120.0)


def test_installed_every_agent_says_that_its_node_is_healthy_and_helms_test_passes(charted: Charted) -> None:
    wait_until(lambda: charted.all_say("True"), lambda: f"all healthy: {charted.words()}")
    wait_until(charted.is_out, "every pod is ready, of both containers")
    assert "Phase:          Succeeded" in charted.helm("test", RELEASE)


def test_a_pod_that_stalls_64_connections_makes_no_probe_of_the_kubelet_fail(
    hosts: Hosts, image: str, charted: Charted
) -> None:
    node = "worker-1"
    stranger = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "stranger", "namespace": NS},
        "spec": {
            "nodeName": node,
            "restartPolicy": "Never",
            "containers": [
                {
                    "name": "stalls",
                    "image": image,
                    "imagePullPolicy": "Never",
                    "command": ["python3", "-c", STALL, charted.pods()[node]["status"]["podIP"]],
                }
            ],
        },
    }
    path = f"/api/v1/namespaces/{NS}/pods/stranger"
    hosts.kubectl("apply", "--validate=false", "-f-", stdin=json.dumps(stranger))
    words: set[tuple[str | None, int]] = set()
    before = charted.failed_probes(node)

    def is_over() -> bool:
        agent = charted.pods()[node]
        restarts = sum(one["restartCount"] for one in agent["status"]["containerStatuses"])
        words.add((condition(agent, "Ready").get("status"), restarts))
        return charted.api.get(path)["status"]["phase"] == "Succeeded"

    wait_until(is_over, lambda: f"it stalls and ends: {charted.api.get(path)['status']}")
    made = int(hosts.kubectl("logs", "--namespace", NS, "stranger").stdout)
    print(f"{made} connections in {STALLS_S:.0f} s")
    assert made > 2 * STALLING, "they were cut off, and came again"
    assert {("True", 0)} == words
    assert set() == charted.failed_probes(node) - before


def test_what_only_the_reader_sees_closes_its_node_and_opens_it_again(hosts: Hosts, charted: Charted) -> None:
    node = "worker-1"
    try:
        hosts.ssh(node, "\n".join(FAULT.inject))
        wait_until(lambda: charted.all_say("True", but=node), lambda: f"one is not: {charted.words()}")
        said = condition(charted.pods()[node], contract.CONDITION_NODE_HEALTHY)["message"]
        assert said.startswith("reader: failed since ")
        assert "log failed" in said
    finally:
        hosts.ssh(node, "\n".join(FAULT.heal))
    wait_until(lambda: charted.all_say("True"), lambda: f"all healthy: {charted.words()}")


def test_changed_taken_back_and_removed_nothing_of_it_is_left(charted: Charted) -> None:
    def period_s() -> int:
        agent, _ = charted.api.get(SET)["spec"]["template"]["spec"]["containers"]
        return int(agent["readinessProbe"]["periodSeconds"])

    charted.helm("upgrade", RELEASE, str(CHART), "--reuse-values", "--set=agent.profile=fast,agent.maxUnavailable=3")
    wait_until(charted.is_out, "the change is rolled out")
    assert period_s() == 1
    charted.helm("rollback", RELEASE, "1")
    assert period_s() == 2
    charted.helm("uninstall", RELEASE)
    with pytest.raises(ApiError, match="404"):
        charted.api.get(SET)
    assert [] == [one for one in charted.api.items(POLICIES) if one["metadata"]["name"].startswith(RELEASE)]
