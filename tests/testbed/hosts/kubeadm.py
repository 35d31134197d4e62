"""kubeadm on the hosts: `init` on the first, `join` on the others, then kube-proxy's rights."""

import secrets
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from tests.testbed.hosts.network import Peer
from tests.testbed.shared.binaries import KUBERNETES_VERSION, Progress

API_PORT = 6443
# Node identities may also do what kube-proxy does: it runs on the hosts with the kubelet's certificate.
_PROXY_RIGHTS = """\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: testbed-kube-proxy}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "system:node-proxier"}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: Group, name: "system:nodes"}
"""
_CA_DIGEST = (
    "openssl x509 -pubkey -noout -in /etc/kubernetes/pki/ca.crt"
    " | openssl pkey -pubin -outform der | sha256sum | cut -d' ' -f1"
)
_KUBEADM_FILE = "/root/kubeadm.yaml"

# Runs a shell command on a host, `text` is its standard input; returns its standard output, raises when it fails.
Shell = Callable[[Peer, str, str], str]


def new_token() -> str:
    """A bootstrap token: 6 and 16 characters of [a-z0-9]."""
    return f"{secrets.token_hex(3)}.{secrets.token_hex(8)}"


def init_configuration(control: Peer, token: str) -> str:
    """InitConfiguration, ClusterConfiguration and KubeletConfiguration.

    The kubelet's settings are what a host inside a control group of another system needs: no QoS groups of its own. An
    empty enforceNodeAllocatable is dropped on the way and then fails validation, hence "none".
    """
    return f"""\
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
bootstrapTokens:
- {{token: {token}, ttl: 24h0m0s}}
localAPIEndpoint: {{advertiseAddress: {control.address}, bindPort: {API_PORT}}}
nodeRegistration:
{_registration(control)}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
clusterName: testbed
kubernetesVersion: {KUBERNETES_VERSION}
networking: {{serviceSubnet: 10.96.0.0/16}}
etcd: {{local: {{extraArgs: [{{name: unsafe-no-fsync, value: "true"}}]}}}}
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cgroupDriver: cgroupfs
cgroupsPerQOS: false
enforceNodeAllocatable: [none]
failSwapOn: false
failCgroupV1: false
evictionHard: {{memory.available: 100Mi, nodefs.available: 1%, imagefs.available: 1%, nodefs.inodesFree: 1%}}
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
"""


def join_configuration(peer: Peer, control: Peer, token: str, ca_digest: str) -> str:
    return f"""\
apiVersion: kubeadm.k8s.io/v1beta4
kind: JoinConfiguration
discovery:
  bootstrapToken:
    token: {token}
    apiServerEndpoint: {control.address}:{API_PORT}
    caCertHashes: ["sha256:{ca_digest}"]
nodeRegistration:
{_registration(peer)}
"""


def _registration(peer: Peer) -> str:
    """imagePullPolicy Never: all images are in the containerd store, and there is no registry to ask."""
    return f"""\
  name: {peer.name}
  criSocket: unix:///run/containerd/containerd.sock
  imagePullPolicy: Never
  kubeletExtraArgs: [{{name: node-ip, value: {peer.address}}}]"""


def start(control: Peer, workers: Sequence[Peer], shell: Shell, progress: Progress) -> None:
    """Makes a cluster of freshly booted hosts. Returns when all have joined; Ready comes a moment later."""
    token = new_token()
    command = f"cat > {_KUBEADM_FILE} && kubeadm %s --config {_KUBEADM_FILE} --ignore-preflight-errors=all %s 2>&1"
    progress(f"kubeadm init on {control.name}")
    shell(control, command % ("init", "--skip-phases=addon,show-join-command"), init_configuration(control, token))
    digest = shell(control, _CA_DIGEST, "").strip()
    progress(f"kubeadm join on {', '.join(worker.name for worker in workers)}")

    def join(worker: Peer) -> None:
        shell(worker, command % ("join", ""), join_configuration(worker, control, token, digest))

    def allow_proxies() -> None:
        shell(control, "kubectl --kubeconfig /etc/kubernetes/admin.conf apply -f -", _PROXY_RIGHTS)

    with ThreadPoolExecutor(max_workers=len(workers) + 1) as pool:
        for done in [pool.submit(allow_proxies), *(pool.submit(join, worker) for worker in workers)]:
            done.result()

    def start_proxy(peer: Peer) -> None:
        shell(peer, "systemctl start kube-proxy", "")

    with ThreadPoolExecutor(max_workers=len(workers) + 1) as pool:
        list(pool.map(start_proxy, [control, *workers]))
