"""Mode `kubelet`: 110 pods with 330 probes, as many as a node may have; and what gRPC probes and the CRI add.

Each pod has two containers, which are processes of this machine, and three probes at 10 s: HTTP, TCP and exec.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tools.bench.agent.peer import Peer
from tools.bench.agent.resources import held, millicores
from tools.bench.arms import WORK
from tools.bench.figures import Figure
from tools.bench.processes import MeasurementError
from tools.fakes.api_server import FakeApiServer
from tools.fakes.cri import Runtime
from tools.kit.ports import free_port
from tools.kit.programs import Program, python_environ
from tools.kit.waiting import wait_until

NODE = "node-1"
PODS, QUICK_PODS = 110, 4
SETTLED_S, QUICK_S = 60.0, 3.0
START_LIMIT_S = 200.0
CRI_START_LIMIT_S = 900.0  # of the runtime of the tests each call reads a file with all its pods
GRPC_PODS = 10
_SLEEPS = ["/bin/sleep", "3600"]
_EVERY = {"periodSeconds": 10, "timeoutSeconds": 5, "failureThreshold": 30}


def measure(progress: Callable[[str], None], *, quick: bool = False) -> list[Figure]:
    """Three minutes."""
    pods = QUICK_PODS if quick else PODS
    with Peer() as peer, FakeApiServer() as api, running(api, "kubelet") as agent:
        progress(f"kubelet: {pods} pods with {3 * pods} probes")
        began = time.monotonic()
        for number in range(pods):
            api.put(_pod(number, _containers(peer.port)))
        _wait_ready(api, pods)
        started_s = time.monotonic() - began
        assert agent.process.pid is not None
        before, writes = held(agent.process.pid), len(api.requests)
        time.sleep(QUICK_S if quick else SETTLED_S)
        after, writes = held(agent.process.pid), len(api.requests) - writes
    own, children = millicores(before, after)
    what = f"{pods} pods, {2 * pods} containers, {3 * pods} probes at 10 s"
    return [
        Figure("agent_kubelet_rss_mib", after.rss_mib, "MiB", f"{what}; {after.threads} threads"),
        Figure("agent_kubelet_cpu_m", own + children, "m", f"own {own:.1f}, of the commands {children:.1f}"),
        Figure("agent_kubelet_ready_s", started_s, "s", "until all pods are Ready; containers started one by one"),
        Figure("agent_kubelet_requests", writes, "calls", f"to the API server in {after.at_s - before.at_s:.0f} s"),
    ]


def measure_grpc(progress: Callable[[str], None], *, quick: bool = False) -> list[Figure]:
    """A minute: gRPC probes without the CRI."""
    with health_server() as port, FakeApiServer() as api, running(api, "grpc") as agent:
        progress(f"grpc: {GRPC_PODS} pods")
        for number in range(GRPC_PODS):
            probe = {"grpc": {"port": port}, **_EVERY, "periodSeconds": 1}
            api.put(_pod(number, [{"name": "a", "command": _SLEEPS, "readinessProbe": probe}]))
        _wait_ready(api, GRPC_PODS)
        assert agent.process.pid is not None
        before = held(agent.process.pid)
        time.sleep(QUICK_S if quick else SETTLED_S)
        after = held(agent.process.pid)
    note = f"{GRPC_PODS} gRPC probes a second, {sum(millicores(before, after)):.0f} m; without CRI"
    return [Figure("agent_grpc_rss_mib", after.rss_mib, "MiB", note)]


def measure_cri(progress: Callable[[str], None], *, quick: bool = False) -> list[Figure]:
    """Five minutes: as many pods as a node may have, over the CRI, each with a gRPC probe and one that runs a command.
    The runtime is the tests': its containers are told of, and there is none."""
    pods = QUICK_PODS if quick else PODS
    with health_server() as port, cri_runtime() as socket, FakeApiServer() as api, running(api, "cri", socket) as agent:
        progress(f"cri: {pods} pods with {2 * pods} probes")
        for number in range(pods):
            probes = {
                "readinessProbe": {"grpc": {"port": port}, **_EVERY},
                "livenessProbe": {"exec": {"command": ["/bin/true"]}, **_EVERY},
            }
            container = {"name": "a", "command": _SLEEPS, "imagePullPolicy": "Never", **probes}
            api.put(_pod(number, [container], hostNetwork=True))
        _wait_ready(api, pods, CRI_START_LIMIT_S)
        assert agent.process.pid is not None
        before = held(agent.process.pid)
        time.sleep(QUICK_S if quick else SETTLED_S)
        after = held(agent.process.pid)
    note = (
        f"{pods} pods over the CRI, listed each second, {pods} gRPC and {pods} exec probes at 10 s; peak "
        f"{after.peak_mib:.1f} MiB, {after.threads} threads, {sum(millicores(before, after)):.0f} m"
    )
    return [Figure("agent_cri_grpc_rss_mib", after.rss_mib, "MiB", note)]


@contextmanager
def cri_runtime() -> Iterator[str]:
    """The socket of a container runtime that has the image of our pods."""
    folder = WORK / "agent-cri-runtime"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    runtime = Runtime(folder)
    runtime.store.write({**runtime.store.read(), "images": ["i"]})
    ready = {"conditions": [{"type": kind, "status": True} for kind in ("RuntimeReady", "NetworkReady")]}
    runtime.says(**{"*": "do"}, Status={"status": ready}, ListImages={}, ExecSync={})
    runtime.start()
    try:
        yield runtime.socket
    finally:
        runtime.process.kill()


@contextmanager
def running(api: FakeApiServer, name: str, cri_socket: str | None = None) -> Iterator[Program]:
    """The agent as node, with nothing of an earlier run in its folder; its containers end with it."""
    folder: Path = WORK / f"agent-{name}"
    shutil.rmtree(folder / "run", ignore_errors=True)
    node: dict[str, Any] = {"nodeName": NODE, "rootDir": str(folder / "run")}
    if cri_socket is None:
        node["podCIDR"] = "127.23.0.0/24"
    else:
        node["cri"] = {"address": "127.0.0.1", "socket": cri_socket, "kubeletHealthz": None}
    settings = {
        "mode": "kubelet",
        "listen": {"address": "127.0.0.1", "port": free_port()},
        "kubelet": node,
    }
    agent = Program(["tools.bench.agent.as_node", api.url], settings, folder, name="agent")
    agent.start()
    try:
        yield agent
    finally:
        agent.process.stop(grace_s=60)


@contextmanager
def health_server() -> Iterator[int]:
    """The port of a gRPC server that is always healthy, at any address of this machine's loopback."""
    argv = [sys.executable, "-m", "tools.bench.agent.health"]
    environ = {**os.environ, **python_environ()}
    with subprocess.Popen(argv, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        port = server.stdout.readline().strip()
        if not port:
            raise MeasurementError(f"the gRPC server ended with code {server.wait()}")
        try:
            yield int(port)
        finally:
            server.kill()


def _containers(port: int) -> list[Any]:
    http = {"httpGet": {"host": "127.0.0.1", "port": port, "path": "/"}, **_EVERY}
    tcp = {"tcpSocket": {"host": "127.0.0.1", "port": port}, **_EVERY}
    command = {"exec": {"command": ["/bin/true"]}, **_EVERY}
    return [
        {"name": "a", "command": _SLEEPS, "readinessProbe": http, "livenessProbe": tcp},
        {"name": "b", "command": _SLEEPS, "readinessProbe": command},
    ]


def _pod(number: int, containers: list[Any], **spec: Any) -> Any:
    name = f"pod-{number}"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{number}", "generation": 1},
        "spec": {
            "nodeName": NODE,
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 1,
            "containers": [{"image": "i", **container} for container in containers],
            **spec,
        },
        "status": {"phase": "Pending"},
    }


def _wait_ready(api: FakeApiServer, pods: int, limit_s: float = START_LIMIT_S) -> None:
    def ready() -> int:
        found = (api.get("Pod", f"pod-{number}") or {} for number in range(pods))
        conditions = (c for pod in found for c in pod.get("status", {}).get("conditions", ()))
        return sum(c["type"] == "Ready" and c["status"] == "True" for c in conditions)

    try:
        wait_until(lambda: ready() == pods, lambda: f"{ready()} of {pods} pods are Ready", timeout_s=limit_s)
    except AssertionError as e:
        raise MeasurementError(str(e)) from e
