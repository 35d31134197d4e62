"""The agent as the kubelet of a real node that has none: pods in its containerd, over the CRI (rows CW)."""

import json
from collections.abc import Iterator

import pytest

from tests.hosts.alone import FOLDER, NODE, Alone
from tests.hosts.alone import alone as agent_alone
from tests.hosts.waiting import wait_until
from tools.testbed.hosts.hosts import Hosts

APP = """
trap 'echo ended > /tmp/ended; exit 0' TERM
touch /tmp/alive
python3 -m http.server --bind :: 8080 >/dev/null 2>&1 &
wait
"""
STAYS = ["/bin/sh", "-c", "trap 'exit 0' TERM; sleep 3600 & wait"]


@pytest.fixture(scope="module")
def alone(hosts: Hosts, image: str) -> Iterator[Alone]:
    with agent_alone(hosts, image, maxContainerRestartPeriodSeconds=8) as made:
        yield made


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
