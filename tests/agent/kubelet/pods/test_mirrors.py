"""Rows SP20 to SP27: mirrors are made, put right and deleted. As pkg/kubelet/pod/mirror_client_test.go and the tests of
mirrors in pkg/kubelet/kubelet_test.go."""

import json
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from agent.kubelet.pods.mirrors import RETRY_S, Mirrors
from agent.kubelet.pods.source import PodTable
from agent.wire.manifest import StaticPod
from agent.wire.model import Node, Pod
from agent.wire.pod import PodObject, pod_from_object
from agent.wire.semantics import Semantics
from kube.errors import AlreadyExists, Conflict, Forbidden, KubeError, NotFound, Unreachable
from tests.agent.wire.manifests import made, manifest
from tools.kit.clock import Clock

NODE = Node("node-1", uid="node-uid")
ONE = made(manifest("a"))
NEWER = made(manifest("a", hostNetwork=True))


class Scene:
    """A table, an API server that writes down what it is asked, and the mirrors between them."""

    def __init__(self) -> None:
        self.table = PodTable(lambda _uid: None, Semantics())
        self.static: list[StaticPod] = []
        self.node: Node | None = NODE
        self.synced, self.waiting, self.ending = True, set[str](), set[str]()
        self.calls: list[str] = []
        self.faults: list[KubeError | None] = []
        self.bodies: list[Any] = []
        self.clock = Clock(100.0)
        self.mirrors = Mirrors(
            self,
            self.table,
            pods=lambda: self.static,
            synced=lambda: self.synced,
            runs=lambda uid: uid not in self.waiting,
            ends=lambda namespace, name: f"{namespace}/{name}" in self.ending,
            node=lambda: self.node,
            monotonic=self.clock,
        )

    def put(self, *pods: StaticPod) -> None:
        self.static = list(pods)
        self.table.replace_static([one.pod for one in pods])

    def mirror(self, one: StaticPod, uid: str = "mirror", **changes: Any) -> None:
        """As the API server shows it from now on."""
        annotations = {**one.pod.annotations, "kubernetes.io/config.mirror": one.pod.uid}
        meta = {"name": one.pod.name, "namespace": "default", "uid": uid, "annotations": annotations, **changes}
        self.table.upsert(pod_object(meta))

    def gone(self, uid: str) -> None:
        self.table.remove(pod_object({"name": "x", "uid": uid}))

    def turn(self) -> list[str]:
        self.calls = []
        self.mirrors.turn()
        return self.calls

    # The API server.

    def create(self, path: str, body: bytes) -> bytes:
        given = json.loads(body)
        self.bodies.append(given)
        return self._answer(f"create {path.rpartition('/namespaces/')[2]} {given['metadata']['name']}")

    def delete(self, path: str, body: bytes = b"") -> bytes:
        options = json.loads(body)
        assert options["gracePeriodSeconds"] == 0
        return self._answer(f"delete {path.rpartition('/')[2]} {options['preconditions']['uid']}")

    def _answer(self, call: str) -> bytes:
        self.calls.append(call)
        fault = self.faults.pop(0) if self.faults else None
        if fault is not None:
            raise fault
        return b"{}"


def pod_object(meta: dict[str, Any]) -> PodObject:
    return msgspec.json.decode(json.dumps({"metadata": meta, "spec": {"nodeName": "node-1"}}).encode(), type=PodObject)


def decoded(body: Any) -> Pod:
    return pod_from_object(pod_object(body["metadata"]))


@pytest.fixture
def scene() -> Scene:
    scene = Scene()
    scene.put(ONE)
    return scene


CREATE, DELETE = "create default/pods a-node-1", "delete a-node-1 mirror"


def test_sp20_a_static_pod_without_a_mirror_gets_one(scene: Scene) -> None:
    assert [CREATE] == scene.turn()
    scene.mirror(ONE)
    assert [] == scene.turn()


def test_sp20_the_mirror_is_the_pod_of_the_node(scene: Scene) -> None:  # CM53, in either profile
    scene.turn()
    (body,) = scene.bodies
    owner = {"apiVersion": "v1", "kind": "Node", "name": "node-1", "uid": "node-uid", "controller": True}
    assert [owner] == body["metadata"]["ownerReferences"]
    mirror = decoded(body)
    assert (True, ONE.pod.uid) == (mirror.mirror, mirror.annotations["kubernetes.io/config.mirror"])
    assert ONE.manifest["spec"] == body["spec"]


@pytest.mark.parametrize(
    ("shown", "changes"),
    [
        pytest.param(NEWER, {}, id="SP21 of another version of the file"),
        pytest.param(ONE, {"deletionTimestamp": "2026-01-02T03:04:05Z"}, id="SP22 that somebody deletes"),
        pytest.param(ONE, {"annotations": {"kubernetes.io/config.mirror": ""}}, id="SP21 whose hash was taken away"),
    ],
)
def test_a_wrong_mirror_is_deleted_and_made_again(scene: Scene, shown: StaticPod, changes: dict[str, Any]) -> None:
    scene.mirror(shown, **changes)
    assert [DELETE, CREATE] == scene.turn()
    scene.gone("mirror")
    assert [] == scene.turn()  # the new one is on its way
    scene.mirror(ONE, "second")
    assert [] == scene.turn()


def test_sp22_one_that_is_gone_is_made_again_at_once(scene: Scene) -> None:
    scene.turn()
    scene.mirror(ONE)
    scene.turn()
    scene.gone("mirror")
    assert [CREATE] == scene.turn()


@pytest.mark.parametrize("fault", [NotFound(path="/"), Conflict(path="/")], ids=["gone", "another one"])
def test_sp21_where_the_old_one_was_not_deleted_none_is_made(scene: Scene, fault: KubeError) -> None:
    scene.mirror(NEWER)
    scene.faults = [fault]
    assert [DELETE] == scene.turn()


@pytest.mark.parametrize(
    "fault",
    [Forbidden(path="/"), Unreachable(path="/"), AlreadyExists(path="/")],
    ids=["forbidden", "away", "there is one already"],
)
def test_sp23_what_failed_is_tried_again_after_a_pause(scene: Scene, fault: KubeError) -> None:
    scene.faults = [fault]
    assert [CREATE] == scene.turn()
    assert [] == scene.turn()
    scene.clock.time += RETRY_S
    assert [CREATE] == scene.turn()


def test_sp24_without_a_node_none_is_made(scene: Scene) -> None:
    scene.node = None
    assert [] == scene.turn()
    scene.node = NODE
    assert [CREATE] == scene.turn()


def test_sp24_but_a_wrong_one_is_deleted(scene: Scene) -> None:
    scene.node = None
    scene.mirror(NEWER)
    assert [DELETE] == scene.turn()


def test_sp25_a_pod_that_waits_for_an_earlier_one_of_its_name_has_none_yet(scene: Scene) -> None:
    scene.mirror(NEWER)
    scene.waiting = {ONE.pod.uid}
    assert [] == scene.turn()
    scene.waiting = set()
    assert [DELETE, CREATE] == scene.turn()


def test_sp26_the_mirror_of_no_static_pod_is_deleted(scene: Scene) -> None:
    scene.mirror(ONE)
    scene.put()
    assert [DELETE] == scene.turn()


def test_sp26_not_while_its_pod_is_being_ended(scene: Scene) -> None:  # CM54, in either profile
    scene.mirror(ONE)
    scene.put()
    scene.ending = {"default/a-node-1"}
    assert [] == scene.turn()
    scene.ending = set()
    assert [DELETE] == scene.turn()


def test_sp26_not_before_all_pods_are_known(scene: Scene) -> None:
    scene.mirror(ONE)
    scene.put()
    scene.synced = False
    assert [] == scene.turn()


def test_sp27_pods_of_the_api_server_have_no_mirrors(scene: Scene) -> None:
    scene.put()
    scene.table.upsert(pod_object({"name": "other", "namespace": "default", "uid": "u"}))
    assert [] == scene.turn()


def test_the_table_reports_mirrors_and_static_pods_that_change() -> None:
    mirrors, pods = [], []
    table = PodTable(pods.append, Semantics(), lambda: mirrors.append(1))
    table.replace_static([ONE.pod])
    table.replace_static([ONE.pod])
    assert ([ONE.pod.uid], 1) == (pods, len(mirrors))
    meta = {"name": "m", "uid": "m", "annotations": {"kubernetes.io/config.mirror": "h"}}
    table.upsert(pod_object(meta))
    table.remove(pod_object(meta))
    table.replace([pod_object(meta)])
    table.replace([pod_object(meta)])
    assert ([ONE.pod.uid], 4) == (pods, len(mirrors))
    table.replace_static([replace(ONE.pod, uid="second")])
    assert {ONE.pod.uid, "second"} == set(pods[1:])


def test_a_list_of_the_api_server_leaves_static_pods_alone() -> None:
    pods: list[str] = []
    table = PodTable(pods.append, Semantics())
    table.replace_static([ONE.pod])
    pods.clear()
    table.replace([pod_object({"name": "b", "uid": "b"})])
    table.replace([])
    assert ({ONE.pod.uid}, ["b", "b"]) == (table.uids(), pods)
    static = table.pod_by_uid(ONE.pod.uid)
    assert static is not None
    assert static.static
