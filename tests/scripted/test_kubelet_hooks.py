"""Hooks and deadlines of mode `kubelet` with real processes, before a fake API server, and agents that end."""

# ruff: noqa: F811 - fixtures of another module

import time
from pathlib import Path

import pytest

from component import lifecycle
from kube.times import format_time
from tests.scripted.test_kubelet_mode import Node, api, node  # noqa: F401 - fixtures
from tools.kit.waiting import wait_until


def put(node: Node, script: str, *, grace_s: int = 20, **hooks: object) -> None:
    lifecycle_ = {name: {"exec": {"command": ["/bin/sh", "-c", given]}} for name, given in hooks.items()}
    container = {"name": "c", "image": "i", "command": ["/bin/sh", "-c", script], "lifecycle": lifecycle_}
    node.put(grace_s=grace_s, containers=[container])


def delete(node: Node, grace_s: int = 20) -> None:
    pod = dict(node.api.get("Pod", "p"))
    meta = {"deletionTimestamp": format_time(time.time()), "deletionGracePeriodSeconds": grace_s}
    pod["metadata"] = {**pod["metadata"], **meta}
    node.api.put(pod)


def state(node: Node) -> str:
    return next((word for s in node.status().get("containerStatuses", ()) for word in s["state"]), "")


def test_hooks_run_around_the_life_of_a_container(node: Node, tmp_path: Path) -> None:
    said = tmp_path / "said"
    script = f"trap 'echo ended >> {said}; exit 0' TERM; while :; do sleep 0.1; done"
    put(node, script, postStart=f"echo postStart >> {said}", preStop=f"echo preStop >> {said}; sleep 1")
    node.wait(lambda: state(node) == "running")
    delete(node)
    node.wait(lambda: node.api.get("Pod", "p") is None, 60)
    assert ["postStart", "preStop", "ended"] == said.read_text().split()


def test_a_post_start_hook_that_fails_ends_its_container_until_it_does_not(node: Node, tmp_path: Path) -> None:
    tried = tmp_path / "tried"
    put(node, "sleep 300", postStart=f"test -e {tried} || {{ touch {tried}; exit 1; }}", grace_s=1)
    node.wait(lambda: state(node) == "running", 60)
    assert 1 == node.status()["containerStatuses"][0]["restartCount"]


def test_a_pre_stop_hook_that_hangs_ends_with_the_grace(node: Node, tmp_path: Path) -> None:
    hanging = tmp_path / "hanging"
    put(node, "sleep 300", preStop=f"echo $$ > {hanging}; trap '' TERM; sleep 300")
    node.wait(lambda: state(node) == "running")
    delete(node, grace_s=2)
    node.wait(lambda: node.api.get("Pod", "p") is None, 60)
    wait_until(lambda: not Path("/proc", hanging.read_text().strip()).exists(), "the hook ends with its container")


def test_an_agent_that_stops_does_not_wait_for_a_hook_and_the_next_runs_it_anew(
    api,
    node: Node,
    tmp_path: Path,
) -> None:
    begun = tmp_path / "begun"
    put(node, "sleep 300", postStart=f"echo once >> {begun}; test $(wc -l < {begun}) = 2 || sleep 300")
    wait_until(lambda: begun.exists() and begun.read_text(), "the hook has written its line")
    assert "running" != state(node)
    lifecycle.stop_all(node.services)
    second = Node(api, tmp_path)
    lifecycle.start_all(second.services)
    try:
        second.wait(lambda: state(second) == "running", 60)
        assert ["once", "once"] == begun.read_text().split()
    finally:
        lifecycle.stop_all(second.services)


@pytest.mark.parametrize("ago_s", [0, 3600], ids=["it runs for too long", "it did before this agent came"])
def test_a_pod_past_its_deadline_fails(node: Node, ago_s: int) -> None:
    status = {"phase": "Running", "startTime": format_time(time.time() - ago_s)} if ago_s else {"phase": "Pending"}
    node.put(activeDeadlineSeconds=2)
    if ago_s:
        node.api.put({**node.api.get("Pod", "p"), "status": status})
    node.wait(lambda: (node.status().get("phase"), node.status().get("reason")) == ("Failed", "DeadlineExceeded"), 60)
