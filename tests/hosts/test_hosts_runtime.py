"""The container runtime of a real node, read beside its kubelet: what we are told is what the kubelet tells the API."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agent.cri.base import CONTAINERD_SOCKET, NETWORK_READY, RUNTIME_READY, CriError, Trouble
from agent.cri.connect import connect
from agent.kubelet.pleg.cache import Cache
from agent.kubelet.pleg.generator import EventGenerator
from agent.wire.containers import ContainerPhase
from agent.wire.semantics import Semantics
from kube.times import format_time
from tests.hosts.waiting import wait_for, wait_until

NODE = "worker-1"
MIRROR = "kubernetes.io/config.mirror"
ENDS = ["/bin/sh", "-c", "exit 3"]
STAYS = ["/bin/sh", "-c", "trap 'exit 0' TERM; sleep 3600 & wait"]


@contextmanager
def forwarded(hosts, name: str, folder: Path) -> Iterator[str]:
    """The runtime's socket of a host, at a path of this machine."""
    path = str(folder / f"{name}.sock")
    argv = ["ssh", "-F", str(hosts.ssh_config), "-o", "ExitOnForwardFailure=yes", "-N"]
    tunnel = subprocess.Popen([*argv, "-L", f"{path}:{CONTAINERD_SOCKET}", name], stdin=subprocess.DEVNULL)
    try:
        wait_until(lambda: Path(path).exists(), "the runtime's socket is forwarded")
        yield path
    finally:
        tunnel.kill()
        tunnel.wait()


@pytest.fixture(scope="module")
def socket(hosts, tmp_path_factory) -> Iterator[str]:
    with forwarded(hosts, NODE, tmp_path_factory.mktemp("cri")) as path:
        yield path


@pytest.fixture
def reader(socket):
    found = connect(socket, deadline_s=30.0, may_exec=True)
    yield found
    found.close()


def pod(name: str, image: str, policy: str, containers: dict[str, list[str]], **more) -> dict:
    made = [{"name": n, "image": image, "imagePullPolicy": "Never", "command": c} for n, c in containers.items()]
    spec = {"nodeName": NODE, "restartPolicy": policy, "terminationGracePeriodSeconds": 1, "containers": made, **more}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"cri-{name}"}, "spec": spec}


@pytest.fixture(scope="module")
def pods(hosts, image) -> Iterator[list[str]]:
    """Of four kinds: after an init container, failing again and again, ended, on the host's network."""
    init = {"name": "first", "image": image, "imagePullPolicy": "Never", "command": ["/bin/true"]}
    items = [
        pod("steady", image, "Always", {"one": STAYS, "two": STAYS}, initContainers=[init]),
        pod("failing", image, "Always", {"fails": ENDS, "stays": STAYS}),
        pod("ended", image, "Never", {"ends": ENDS}),
        pod("host", image, "Always", {"one": STAYS}, hostNetwork=True),
    ]
    hosts.kubectl("create", "-f-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    names = [item["metadata"]["name"] for item in items]
    yield names
    hosts.kubectl("delete", "pod", "--now", "--wait=false", *names)


def node_pods(hosts, node: str) -> list[dict]:
    chosen = f"--field-selector=spec.nodeName={node}"
    return json.loads(hosts.kubectl("get", "pods", "--all-namespaces", chosen, "--output=json").stdout)["items"]


def uid_of(found: dict) -> str:
    """As the runtime has it: a static pod's is that of its file."""
    return found["metadata"].get("annotations", {}).get(MIRROR) or found["metadata"]["uid"]


def of_state(state: dict) -> tuple:
    """Of a container's state: what, since when, until when, exit code, reason."""
    running, ended = state.get("running"), state.get("terminated")
    if running is not None:
        return ("running", running["startedAt"], None, 0, "")
    return ("exited", ended["startedAt"], ended["finishedAt"], ended["exitCode"], ended["reason"])


def told_by_kubelet(found: dict) -> dict:
    """By container id, of those that run or have ended; restart count and image where it is the present one."""
    status = found["status"]
    told = {}
    for one in [*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ())]:
        for state, now in ((one.get("lastState", {}), False), (one["state"], True)):
            if id_ := one["containerID"] if "running" in state else state.get("terminated", {}).get("containerID"):
                more = (one["restartCount"], one["image"], one["imageID"]) if now else ()
                told[id_] = (one["name"], *of_state(state), *more)
    return told


def told_by_runtime(reader, uid: str, wanted: dict) -> dict:
    told = {}
    for one in reader.pod(uid).containers:
        running = one.phase is ContainerPhase.RUNNING
        times = (format_time(one.started_at or 0), None if running else format_time(one.finished_at or 0))
        more = (one.restart_count, one.image, one.image_id) if len(wanted.get(one.id, ())) > 6 else ()
        told[one.id] = (one.name, one.phase.value, *times, one.exit_code, one.reason, *more)
    return {id_: told.get(id_) for id_ in wanted}


def different(reader, found: list[dict]) -> dict:
    """Pod -> what we and the kubelet say of it, where that is not the same."""
    differ: dict = {}
    for one in found:
        uid, name, status = uid_of(one), one["metadata"]["name"], one["status"]
        wanted = told_by_kubelet(one)
        told = told_by_runtime(reader, uid, wanted)
        present = [*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ())]
        now = {container.get("containerID", "") for container in present}  # none before it is there
        # Of what ended before, the kubelet remembers what it has had the runtime forget.
        forgotten = {id_ for id_, container in told.items() if container is None and id_ not in now}
        wanted = {id_: container for id_, container in wanted.items() if id_ not in forgotten}
        told = {id_: container for id_, container in told.items() if id_ not in forgotten}
        if told != wanted:
            differ[name] = (told, wanted)
        ours, theirs = reader.pod(uid).ip, "" if one["spec"].get("hostNetwork") else status.get("podIP", "")
        if ours != theirs and status["phase"] == "Running":
            differ[f"{name} address"] = (ours, theirs)
    if strange := {p.name for p in reader.list_pods()} - {one["metadata"]["name"] for one in found}:
        differ["not in the API"] = strange
    return differ


def test_all_pods_of_a_node_are_told_as_its_kubelet_tells_them(hosts, pods, reader):
    def settled() -> bool:
        texts = [json.dumps(one["status"]) for one in node_pods(hosts, NODE)]
        return all("startedAt" in text for text in texts) and any('"restartCount": 1' in text for text in texts)

    assert wait_for(settled), "the pods have run"
    differ: list[dict] = []

    def same() -> bool:
        """A container that fails now is told by the kubelet a moment later."""
        found = node_pods(hosts, NODE)
        differ[:] = [different(reader, found)]
        return len(found) >= len(pods) and differ == [{}]

    wait_until(same, lambda: f"the same of all pods: {differ}")


def test_a_control_planes_static_pods_are_told_as_their_kubelet_tells_them(hosts, tmp_path):
    with forwarded(hosts, "control-1", tmp_path) as path:
        reader = connect(path, deadline_s=30.0)
        differ: list[dict] = []

        def same() -> bool:
            found = node_pods(hosts, "control-1")
            differ[:] = [different(reader, found)]
            return len(found) >= 4 and differ == [{}]

        wait_until(same, lambda: f"the same of all static pods: {differ}")
        reader.close()


def test_what_the_runtime_says_of_itself(reader):
    version, status = reader.version(), reader.status(verbose=True)
    ready = [found.status if (found := status.condition(name)) else None for name in (RUNTIME_READY, NETWORK_READY)]
    assert ("containerd", "v1", [True, True]) == (version.name, version.api_version, ready)
    assert "OK" == status.info["lastCNILoadStatus"]
    assert "bridge" in status.info["cniconfig"]


def test_a_command_in_a_container_of_the_kubelets(hosts, pods, reader):
    found = json.loads(hosts.kubectl("get", "pod", pods[0], "--output=json").stdout)
    id_ = next(c.id for c in reader.pod(found["metadata"]["uid"]).containers if c.name == "one")
    done = reader.exec(id_, ["/bin/sh", "-c", "echo out; echo err >&2; exit 4"], 10.0)
    assert (4, b"out\n", b"err\n") == (done.exit_code, done.stdout, done.stderr)


def test_the_life_of_a_pod_is_told_as_events(hosts, image, reader):
    """PLEG over the runtime's lists, beside the kubelet's own."""
    told: list[tuple[str, str, str]] = []

    def take(event) -> bool:
        told.append((event.uid, event.type.value, event.container_id))
        return True

    generator = EventGenerator(reader, Cache(), take, events_come=None, semantics=Semantics())
    generator.start()
    hosts.kubectl("create", "-f-", stdin=json.dumps(pod("short", image, "Never", {"one": STAYS})))
    uid = json.loads(hosts.kubectl("get", "pod", "cri-short", "--output=json").stdout)["metadata"]["uid"]

    def types() -> list[str]:
        return [type_ for of, type_, _ in list(told) if of == uid]

    wait_until(lambda: types().count("ContainerStarted") == 2, lambda: f"sandbox and container: {types()}")
    entry = generator.cache.get(uid)
    assert ["one"] == [one.name for one in entry.pod.running]
    assert entry.pod.ip
    hosts.kubectl("delete", "pod", "cri-short", "--now", "--timeout=60s")
    wait_until(lambda: types().count("ContainerRemoved") == 2, lambda: f"both are gone: {types()}")
    assert ["ContainerDied"] * 2 == [type_ for type_ in types() if type_ == "ContainerDied"]
    assert "" == generator.unhealthy(generator._monotonic())
    generator.stop()


def test_a_runtime_that_stands_still_is_told_from_one_that_is_gone(hosts, socket):
    reader = connect(socket, deadline_s=3.0)
    reader.version()
    hosts.ssh(NODE, "systemctl kill --signal=STOP containerd")
    try:
        with pytest.raises(CriError, match=r"^Status on .*: no answer within 3s") as told:
            reader.status()
    finally:
        hosts.ssh(NODE, "systemctl kill --signal=CONT containerd")
    assert Trouble.HANGS is told.value.trouble

    def answers() -> bool:
        try:
            return bool(reader.status().conditions)
        except CriError:
            return False

    wait_until(answers, "it answers again")
    reader.close()
