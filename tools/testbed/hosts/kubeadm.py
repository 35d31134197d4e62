"""kubeadm on the hosts: `init` on the first, `join` on the others (control planes one by one), kube-proxy's rights."""

import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from tools.testbed.hosts.layout import Layout
from tools.testbed.hosts.network import Peer
from tools.testbed.shared.binaries import Progress, kubernetes_version

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
_UPLOAD_CERTIFICATES = "kubeadm init phase upload-certs --upload-certs --kubeconfig /etc/kubernetes/admin.conf"
_START_PROXY = "systemctl start kube-proxy"
# Until the controller manager has signed what a host that joins reads first: kubeadm looks only every 5 s or more.
_WAIT_SIGNED = (
    "for _ in $(seq 1200); do curl --silent --insecure --max-time 5"
    " https://{server}/api/v1/namespaces/kube-public/configmaps/cluster-info"
    " | grep --quiet jws-kubeconfig-{token_id} && exit; sleep 0.1; done; echo no signature by {token_id} >&2; exit 1"
)
# The name by which several control planes are one. It is the first host's address: none of our tests ends that one.
ENDPOINT = "control-plane"

# Runs a shell command on a host, `text` is its standard input; returns its standard output, raises when it fails.
Shell = Callable[[Peer, str, str], str]


def new_token() -> str:
    """A bootstrap token: 6 and 16 characters of [a-z0-9]."""
    return f"{secrets.token_hex(3)}.{secrets.token_hex(8)}"


def names(layout: Layout) -> dict[str, str]:
    """What every host calls by name beside the hosts -> its address. Several control planes need one name for all."""
    return {ENDPOINT: layout.first.address} if _several(layout) else {}


def from_outside(layout: Layout, kubeconfig: str) -> str:
    """A kubeconfig of a host for this machine, which does not know the hosts' names."""
    return kubeconfig.replace(f"https://{ENDPOINT}:{API_PORT}", f"https://{server(layout.first)}")


def server(peer: Peer) -> str:
    """host:port of its API server."""
    return f"[{peer.address}]:{API_PORT}" if ":" in peer.address else f"{peer.address}:{API_PORT}"


def _several(layout: Layout) -> bool:
    return len(layout.controls) + len(layout.spare) > 1


def init_configuration(control: Peer, token: str, endpoint: str = "") -> str:
    """InitConfiguration, ClusterConfiguration and KubeletConfiguration.

    The kubelet's settings are what a host inside a control group of another system needs: no QoS groups of its own. An
    empty enforceNodeAllocatable is dropped on the way and then fails validation, hence "none".
    endpoint: host:port of several control planes.
    """
    several = f"\ncontrolPlaneEndpoint: {endpoint}" if endpoint else ""
    return f"""\
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
bootstrapTokens:
- {{token: {token}, ttl: 24h0m0s}}
localAPIEndpoint: {{advertiseAddress: "{control.address}", bindPort: {API_PORT}}}
nodeRegistration:
{_registration(control)}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
clusterName: testbed{several}
kubernetesVersion: {kubernetes_version()}
networking: {{serviceSubnet: "{control.network.services}"}}
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


def join_configuration(peer: Peer, server: str, token: str, ca_digest: str, certificate_key: str = "") -> str:
    """certificate_key: of the uploaded certificates; with it the host becomes a control plane."""
    as_control = f"""
controlPlane:
  localAPIEndpoint: {{advertiseAddress: "{peer.address}", bindPort: {API_PORT}}}
  certificateKey: {certificate_key}"""
    return f"""\
apiVersion: kubeadm.k8s.io/v1beta4
kind: JoinConfiguration
discovery:
  bootstrapToken:
    token: {token}
    apiServerEndpoint: "{server}"
    caCertHashes: ["sha256:{ca_digest}"]
nodeRegistration:
{_registration(peer)}{as_control if certificate_key else ""}
"""


def _registration(peer: Peer) -> str:
    """imagePullPolicy Never: all images are in the containerd store, and there is no registry to ask."""
    return f"""\
  name: {peer.name}
  criSocket: unix:///run/containerd/containerd.sock
  imagePullPolicy: Never
  kubeletExtraArgs: [{{name: node-ip, value: "{peer.address}"}}]"""


def start(layout: Layout, shell: Shell, progress: Progress) -> None:
    """Makes a cluster of freshly booted hosts. Returns when all have joined; Ready comes a moment later."""
    first, workers = layout.first, layout.workers
    token = new_token()
    progress(f"kubeadm init on {first.name}")
    endpoint = f"{ENDPOINT}:{API_PORT}" if _several(layout) else ""
    shell(first, _kubeadm("init", "--skip-phases=addon,show-join-command"), init_configuration(first, token, endpoint))
    shell(first, "kubectl --kubeconfig /etc/kubernetes/admin.conf apply -f -", _PROXY_RIGHTS)
    shell(first, _START_PROXY, "")
    for control in layout.controls[1:]:
        progress(f"kubeadm join on {control.name}, a control plane")
        join_control(control, layout, shell)
    if not workers:
        return
    digest = shell(first, _CA_DIGEST, "").strip()
    wait_signed(first, token, shell)
    progress(f"kubeadm join on {', '.join(worker.name for worker in workers)}")

    def join(worker: Peer) -> None:
        shell(worker, _kubeadm("join"), join_configuration(worker, server(first), token, digest))
        shell(worker, _START_PROXY, "")

    with ThreadPoolExecutor(max_workers=len(workers)) as pool:
        list(pool.map(join, workers))


def wait_signed(first: Peer, token: str, shell: Shell) -> None:
    """Returns when a host can join by this token at once."""
    shell(first, _WAIT_SIGNED.format(server=server(first), token_id=token.partition(".")[0]), "")


def join_control(peer: Peer, layout: Layout, shell: Shell) -> str:
    """Joins one more control plane by a token and a certificate key made for it. Returns kubeadm's words."""
    first = layout.first
    key = shell(first, _UPLOAD_CERTIFICATES, "").split()[-1]
    token = shell(first, "kubeadm token create", "").split()[-1]
    digest = shell(first, _CA_DIGEST, "").strip()
    wait_signed(first, token, shell)
    text = join_configuration(peer, f"{ENDPOINT}:{API_PORT}", token, digest, key)
    said = shell(peer, _kubeadm("join"), text)
    shell(peer, _START_PROXY, "")
    return said


def _kubeadm(verb: str, more: str = "") -> str:
    return f"cat > {_KUBEADM_FILE} && kubeadm {verb} --config {_KUBEADM_FILE} --ignore-preflight-errors=all {more} 2>&1"
