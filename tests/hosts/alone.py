"""A host of ring 3 whose kubelet is stopped, and the agent in mode `kubelet` in its place."""

import json
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.hosts.waiting import wait_until
from tools.testbed.hosts.hosts import Hosts

HOST = "worker-2"
NODE = "cri-1"
OURS = "readygate.dev/agent/node"
FOLDER = "/run/rg-cri"
ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
READY = "{.status.conditions[?(@.type=='Ready')].status}"


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


@contextmanager
def alone(hosts: Hosts, image: str, **kubelet: object) -> Iterator[Alone]:
    """The agent is the kubelet of the host meanwhile. `kubelet`: more of its settings."""
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
            **kubelet,
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
