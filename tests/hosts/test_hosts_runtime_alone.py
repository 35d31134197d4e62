"""The agent as the kubelet of a real node that has none: pods in its containerd, over the CRI (rows CW)."""

import json
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.hosts.waiting import wait_until
from tools.testbed.hosts.hosts import Hosts

HOST = "worker-2"
NODE = "cri-1"
OURS = "readygate.dev/agent/node"
FOLDER = "/run/rg-cri"
ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
APP = """
trap 'echo ended > /tmp/ended; exit 0' TERM
touch /tmp/alive
python3 -m http.server --bind :: 8080 >/dev/null 2>&1 &
wait
"""
STAYS = ["/bin/sh", "-c", "trap 'exit 0' TERM; sleep 3600 & wait"]


@dataclass
class Alone:
    """A host whose kubelet is stopped and masked, and the agent in its place."""

    hosts: Hosts
    server: str  # the API server's address

    def run(self, command: str, *, check: bool = True) -> str:
        return str(self.hosts.ssh(HOST, command, check=check, timeout_s=120.0).stdout)

    def start(self) -> None:
        """The agent of the image, as a service; rooted there, so it needs nothing of the host's."""
        binds = f"/run/containerd {FOLDER}/pods {FOLDER}/etc {FOLDER}/account:{ACCOUNT}"
        properties = {
            "RootDirectory": f"{FOLDER}/root",
            "MountAPIVFS": "yes",
            "BindPaths": binds,
            "Environment": f"KUBERNETES_SERVICE_HOST={self.server} KUBERNETES_SERVICE_PORT=6443",
        }
        given = " ".join(f"--property={shlex.quote(f'{key}={value}')}" for key, value in properties.items())
        agent = f"/usr/local/bin/readygate-agent --config {FOLDER}/etc/kubelet.yaml"
        self.run(f"systemctl reset-failed rg-cri 2>/dev/null; systemd-run --quiet --unit=rg-cri {given} {agent}")

    def pod(self, name: str = "alone") -> dict:
        found = self.hosts.kubectl("get", "pod", name, "--output=json", check=False).stdout
        return json.loads(found) if found else {}

    def status(self, container: str) -> dict:
        status = self.pod().get("status", {})
        everything = [*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ())]
        return next((one for one in everything if one["name"] == container), {})

    def ready(self) -> bool:
        conditions = self.pod().get("status", {}).get("conditions", ())
        return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)

    def of_runtime(self, more: str = "") -> dict[str, str]:
        """What containerd has over the CRI, by id: whose it is, and whether it is a sandbox or a container."""
        found: dict[str, str] = {}
        for kind in ("sandbox", "container"):
            wanted = shlex.quote(f'labels."io.cri-containerd.kind"=={kind}{more}')
            ids = self.run(f"ctr --namespace k8s.io containers list --quiet {wanted}").split()
            found |= dict.fromkeys(ids, kind)
        return found

    def ours(self) -> dict[str, str]:
        return self.of_runtime(f',labels."{OURS}"=={NODE}')

    def others(self) -> set[str]:
        return self.of_runtime().keys() - self.ours().keys()

    def kinds(self) -> list[str]:
        """A sandbox and its containers, the dead ones too."""
        return sorted(self.ours().values())

    def first_process(self, container: str) -> str:
        return str(self.status(container)["containerID"]).rpartition("/")[2]

    def kill(self, container: str) -> None:
        """As a crash would."""
        self.run(f"ctr --namespace k8s.io tasks kill --signal SIGKILL {self.first_process(container)}")

    def journal(self) -> str:
        return self.run("journalctl --unit=rg-cri --output=cat --no-pager", check=False)


@pytest.fixture(scope="module")
def alone(hosts: Hosts, image: str) -> Iterator[Alone]:
    made = Alone(hosts, hosts.ssh("control-1", "hostname -I").stdout.split()[0])
    made.run("systemctl mask --now kubelet --runtime")
    address = made.run("hostname -I").split()[0]
    config = {
        "mode": "kubelet",
        "listen": {"address": "127.0.0.1", "port": 9375},
        "kubelet": {
            "nodeName": NODE,
            "rootDir": FOLDER,
            "cri": {"address": address},
            "maxContainerRestartPeriodSeconds": 8,
        },
    }
    made.run(f"rm -rf {FOLDER}; mkdir -p {FOLDER}/root {FOLDER}/etc {FOLDER}/pods {FOLDER}/account")
    hosts.kubectl("create", "serviceaccount", "cri-agent", check=False)
    role = ("--clusterrole=cluster-admin", "--serviceaccount=default:cri-agent")
    hosts.kubectl("create", "clusterrolebinding", "cri-agent", *role, check=False)
    token = hosts.kubectl("create", "token", "cri-agent", "--duration=3h").stdout.strip()
    hosts.ssh(HOST, f"cat > {FOLDER}/account/token", stdin=token)
    made.run(f"cp /etc/kubernetes/pki/ca.crt {FOLDER}/account/ca.crt")
    hosts.ssh(HOST, f"cat > {FOLDER}/etc/kubelet.yaml", stdin=json.dumps(config))
    name = image if "/" in image else f"docker.io/library/{image}"
    made.run(f"ctr --namespace k8s.io images mount --rw {name} {FOLDER}/root")
    try:
        made.start()
        wait_until(
            lambda: "True" in hosts.kubectl("get", "node", NODE, f"--output=jsonpath={READY}", check=False).stdout,
            lambda: f"the agent's node is Ready: {made.journal()[-2000:]}",
        )
        yield made
    finally:
        hosts.kubectl("delete", "pod", "alone", "--now", "--wait=false", check=False)
        made.run("systemctl stop rg-cri", check=False)
        hosts.kubectl("delete", "node", NODE, "--wait=false", check=False)
        hosts.kubectl("delete", "serviceaccount,clusterrolebinding", "cri-agent", "--wait=false", check=False)
        made.run(f"ctr --namespace k8s.io images unmount --rm {FOLDER}/root; rm -rf {FOLDER}", check=False)
        made.run("systemctl unmask --runtime kubelet; systemctl start kubelet")
        wait_until(
            lambda: "True" in hosts.kubectl("get", "node", HOST, f"--output=jsonpath={READY}", check=False).stdout,
            "the kubelet is back",
        )


READY = "{.status.conditions[?(@.type=='Ready')].status}"


def spec(image: str) -> dict:
    def container(name: str, command: list[str], **more: object) -> dict:
        return {"name": name, "image": image, "imagePullPolicy": "Never", "command": command, **more}

    probes = {
        "readinessProbe": {"httpGet": {"path": "/", "port": 8080}, "periodSeconds": 1},
        "livenessProbe": {
            "exec": {"command": ["test", "-e", "/tmp/alive"]},
            "periodSeconds": 1,
            "failureThreshold": 3,
            "initialDelaySeconds": 2,
            "timeoutSeconds": 10,
        },
    }
    sidecar = container("sidecar", STAYS, restartPolicy="Always")
    inner = {
        "nodeName": NODE,
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 20,
        "tolerations": [{"operator": "Exists"}],
        "initContainers": [container("first", ["/bin/sh", "-c", "exit 0"]), sidecar],
        "containers": [container("app", ["/bin/sh", "-c", APP], **probes)],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "alone"}, "spec": inner}


def test_the_life_of_a_pod_without_a_kubelet(alone: Alone, image: str) -> None:
    """One story, since each step stands on the one before."""
    hosts = alone.hosts
    others = alone.others()
    hosts.kubectl("create", "-f-", stdin=json.dumps(spec(image)))
    said = lambda what: lambda: f"{what}: {json.dumps(alone.pod().get('status'))} {alone.journal()[-3000:]}"  # noqa: E731
    wait_until(alone.ready, said("the pod is Ready"))
    assert "Completed" == alone.status("first")["state"]["terminated"]["reason"]
    assert ["container"] * 3 + ["sandbox"] == alone.kinds()

    # A container that is killed starts again at once, and then backs off.
    alone.kill("app")
    wait_until(lambda: alone.status("app").get("restartCount") == 1, said("started again"))
    wait_until(lambda: "running" in alone.status("app")["state"], said("it runs"))
    alone.kill("app")
    waiting = lambda: alone.status("app")["state"].get("waiting", {}).get("reason")  # noqa: E731
    wait_until(lambda: waiting() == "CrashLoopBackOff", said("it backs off"))
    wait_until(lambda: alone.status("app").get("restartCount") == 2, said("and starts"))
    wait_until(alone.ready, said("Ready again"))
    assert ["container"] * 4 + ["sandbox"] == alone.kinds(), "one dead is kept"

    # A failed liveness probe ends it with its grace.
    alone.run(f"ctr --namespace k8s.io tasks exec --exec-id rm {alone.first_process('app')} rm /tmp/alive")
    wait_until(lambda: alone.status("app").get("restartCount") == 3, said("liveness"))
    wait_until(alone.ready, said("Ready after liveness"))

    # The agent is killed, and starts again: it goes on with what is there.
    before = alone.ours()
    alone.run("systemctl kill --kill-whom=main --signal=KILL rg-cri; sleep 1; systemctl stop rg-cri", check=False)
    alone.start()
    alone.run("sleep 10")
    assert before == alone.ours()

    # containerd is killed, and comes back: so does what we know.
    alone.run("systemctl kill --kill-whom=main --signal=KILL containerd; sleep 2; systemctl restart containerd")
    wait_until(lambda: alone.run("ctr version", check=False), "containerd is back")
    alone.kill("app")
    wait_until(lambda: alone.status("app").get("restartCount") == 4, said("after containerd"))
    wait_until(alone.ready, said("Ready after containerd"))

    # Deleted: nothing is left, and nobody else was touched.
    hosts.kubectl("delete", "pod", "alone", "--timeout=120s", timeout_s=150.0)
    wait_until(lambda: alone.ours() == {}, said("all is gone"))
    look = f"ls {FOLDER}/pods; find /sys/fs/cgroup -path '*readygate/*' -type d"
    wait_until(lambda: alone.run(look) == "", lambda: f"no file and no group is left: {alone.run(look)}")
    assert others == alone.others()
    assert "Traceback" not in alone.journal()


def test_beside_a_kubelet_the_agent_does_not_start(alone: Alone) -> None:
    """Something that listens where the kubelet does is enough."""
    alone.run("systemctl stop rg-cri", check=False)
    alone.run("systemd-run --quiet --unit=rg-there python3 -m http.server --bind 127.0.0.1 10248; sleep 2")
    alone.start()
    try:
        wait_until(lambda: "a kubelet answers at" in alone.journal(), alone.journal)
        wait_until(lambda: "inactive" in state_of(alone) or "failed" in state_of(alone))
    finally:
        alone.run("systemctl stop rg-there", check=False)


def state_of(alone: Alone) -> str:
    return alone.run("systemctl is-active rg-cri", check=False)
