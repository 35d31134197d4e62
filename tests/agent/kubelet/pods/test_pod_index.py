"""Rows MP: which pods there are, and whose mirrors. As pkg/kubelet/pod/pod_manager_test.go, v1.36.3."""

import itertools
from collections.abc import Sequence

import pytest

from agent.kubelet.pods.index import PodIndex
from agent.kubelet.pods.source import PodTable
from agent.wire.model import Pod
from agent.wire.pod import PodMeta, PodObject
from agent.wire.semantics import Semantics
from tests.agent.kubelet.status.builders import make_pod

API = make_pod("c", uid="api", name="api")
STATIC = make_pod("c", uid="static", name="s", static=True)
MIRROR = make_pod("c", uid="mirror", name="s", static=True, mirror=True)
ORPHAN = make_pod("c", uid="orphan", name="o", static=True, mirror=True)


@pytest.mark.parametrize(
    "pods", list(itertools.permutations((API, STATIC, MIRROR, ORPHAN))), ids=lambda _pods: "MP5 in any order"
)
def test_pods_and_mirrors_are_told_apart(pods: Sequence[Pod]) -> None:
    index = PodIndex(pods)
    assert ({"api", "static"}, {"mirror", "orphan"}) == (index.pods.keys(), index.mirrors.keys())
    assert (MIRROR, None) == (index.mirror_of(STATIC), index.mirror_of(API))


@pytest.mark.parametrize(
    ("uid", "resolved", "status_uid"),
    [
        pytest.param("mirror", "static", "mirror", id="MP6 a mirror is its static pod"),
        pytest.param("static", "static", "mirror", id="MP6 whose status goes by the mirror's uid"),
        pytest.param("api", "api", "api", id="any other pod is itself"),
        pytest.param("orphan", "orphan", "orphan", id="MP7 a mirror of nobody is itself"),
        pytest.param("nobody", "nobody", "nobody", id="one that is not known is itself"),
    ],
)
def test_uids(uid: str, resolved: str, status_uid: str) -> None:
    index = PodIndex((API, STATIC, MIRROR, ORPHAN))
    assert (resolved, status_uid) == (index.resolved_uid(uid), index.status_uid(uid))


def test_mp1_a_static_pod_without_a_mirror_has_no_uid_at_the_api_server() -> None:
    index = PodIndex((STATIC, MIRROR))
    index.remove(MIRROR)
    assert (None, None) == (index.status_uid("static"), index.mirror_of(STATIC))


def test_mp8_the_mirror_of_a_static_pod_that_is_gone_stays_its() -> None:
    index = PodIndex((STATIC, MIRROR))
    index.remove(STATIC)
    assert ("static", "mirror") == (index.resolved_uid("mirror"), index.status_uid("static"))


def mirror_object(uid: str = "mirror") -> PodObject:
    annotations = {"kubernetes.io/config.source": "file", "kubernetes.io/config.mirror": "0123"}
    return PodObject(PodMeta(name="s", namespace="default", uid=uid, annotations=annotations))


def test_mp9_a_mirror_in_the_watch_is_not_run() -> None:
    changed: list[str] = []
    table = PodTable(changed.append, Semantics())
    table.replace([mirror_object()])
    table.upsert(mirror_object("mirror-2"))
    assert (None, frozenset(), []) == (table.pod_by_uid("mirror"), table.uids(), changed)
    found = table.mirror_of(STATIC)
    assert found is not None
    assert ("mirror-2", True) == (found.uid, found.mirror)
    table.remove(mirror_object("mirror-2"))
    assert (None, []) == (table.mirror_of(STATIC), changed)
