"""What the agent holds when it speaks gRPC: all of it loaded, a full node listed again and again."""

import subprocess
import sys
from pathlib import Path

from tools.fakes.cri import Runtime

MOST_MIB = 80  # issue: with the CRI and gRPC
PODS = 110
PROGRAM = """
import sys
import agent.__main__, agent.modes.kubelet, agent.modes.pod, kube.client
from agent import rpc
from agent.cri.connect import connect
from agent.kubelet.pleg.cache import Cache
from agent.kubelet.pleg.relist import Relist
from agent.kubelet.runtime.base import RuntimePod

class Listed:  # a look at each pod would measure the fake
    def __init__(self, list_pods):
        self.list_pods = list_pods

    def pod(self, uid):
        return RuntimePod(uid)

rpc.load("grpc", "grpc_health.v1.health_pb2", "grpc_health.v1.health_pb2_grpc")
reader = connect(sys.argv[1], deadline_s=60.0)
cache = Cache()
relist = Relist(Listed(reader.list_pods), cache, lambda _event: True)
for number in range(10):
    relist.relist(float(number))
reader.pod("u1")
pods = len(cache.uids())
print(pods, next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


def test_a_full_node_over_the_cri_stays_below_80_mib(tmp_path: Path) -> None:
    runtime = Runtime(tmp_path)
    sandboxes, containers = [], []
    for number in range(PODS):
        metadata = {"name": f"pod-{number}", "namespace": "ns", "uid": f"u{number}"}
        sandboxes.append({"id": f"s{number}", "metadata": metadata, "createdAt": "1"})
        for name in ("a", "b", "c"):
            labels = {"io.kubernetes.pod.uid": f"u{number}", "io.kubernetes.container.name": name}
            what = {"id": f"c{number}{name}", "metadata": {"name": name}, "image": {"image": "i" * 60}}
            containers.append(
                {**what, "labels": labels, "annotations": {"text": "x" * 500}, "podSandboxId": f"s{number}"}
            )
    runtime.says(
        ListPodSandbox={"items": sandboxes},
        ListContainers={"containers": containers},
        PodSandboxStatus={"status": sandboxes[0]},
        ContainerStatus={"status": {"id": "c1", "labels": {"io.kubernetes.container.name": "a"}}},
    )
    runtime.start()
    try:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, runtime.socket], capture_output=True, text=True, check=False, timeout=100
        )
    finally:
        runtime.process.kill()
    assert 0 == done.returncode, done.stderr
    pods, peak_kib = map(int, done.stdout.split())
    assert PODS == pods
    assert peak_kib / 1024 <= MOST_MIB
