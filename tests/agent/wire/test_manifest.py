"""Rows SP1 to SP9: what a manifest of a static pod is, and what pod it becomes. As common_test.go of the kubelet."""

from typing import Any

import pytest

from agent.wire.documents import DocumentError, document
from agent.wire.manifest import TOLERATION, ManifestError, uid_of
from agent.wire.model import PodPhase
from tests.agent.wire.manifests import made, manifest

YAML = b"""
# a comment
apiVersion: v1
kind: Pod
metadata:
  name: web
spec:
  containers:
  - image: i
    name: c
"""


def test_sp1_name_namespace_and_node_of_a_static_pod() -> None:
    pod = made(manifest(), node="Node-1").pod
    assert ("default", "web-node-1", "Node-1") == (pod.namespace, pod.name, pod.node_name)
    assert (True, False, PodPhase.PENDING) == (pod.static, pod.mirror, pod.status.phase)


def test_sp2_its_annotations_show_where_it_is_from() -> None:
    found = made(manifest())
    expected = {
        "kubernetes.io/config.hash": found.pod.uid,
        "kubernetes.io/config.seen": "2026-01-02T03:04:05Z",
        "kubernetes.io/config.source": "file",
    }
    assert expected == found.pod.annotations == found.manifest["metadata"]["annotations"]


def test_sp3_yaml_and_json_are_the_same_pod() -> None:
    assert made(manifest()).pod == made(YAML).pod
    assert made(manifest()).pod == made(b"\xef\xbb\xbf" + YAML + b"---\nkind: [").pod
    assert made(manifest()).pod == made(YAML.decode().encode("utf-16")).pod


@pytest.mark.parametrize(
    ("other", "same"),
    [
        pytest.param({}, True, id="the same object"),
        pytest.param({"hostNetwork": None}, True, id="a field that is null"),
        pytest.param({"hostNetwork": True}, False, id="another field"),
        pytest.param({"priorityClassName": "x"}, False, id="a field that the agent does not read"),
    ],
)
def test_sp4_the_uid_is_a_hash_of_the_object(other: dict[str, Any], same: bool) -> None:
    assert same == (made(manifest()).pod.uid == made(manifest(**other)).pod.uid)


def test_sp4_of_the_node_and_of_the_file() -> None:
    uids = {made(manifest()).pod.uid, made(manifest(), path="/b").pod.uid, made(manifest(), node="b").pod.uid}
    assert ({32}, 3) == ({len(uid) for uid in uids}, len(uids))
    assert all(set(uid) <= set("0123456789abcdef") for uid in uids)


def test_sp4_the_hash_is_fnv_128a() -> None:
    """By Go's hash/fnv, New128a, of `{}host:nfile:/a`."""
    assert "fd97be1580f1cd810dc9c0a84fbff605" == uid_of({}, "/a", "n")


def test_sp5_a_uid_of_the_manifest_is_kept() -> None:
    given = manifest()
    given["metadata"]["uid"] = "mine"
    found = made(given)
    assert ("mine", "mine") == (found.pod.uid, found.pod.annotations["kubernetes.io/config.hash"])


def test_sp5_a_negative_grace_period_is_a_second() -> None:
    assert 1 == made(manifest(terminationGracePeriodSeconds=-5)).pod.termination_grace_period_s


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param([], [TOLERATION], id="none"),
        pytest.param([TOLERATION], [TOLERATION], id="the same"),
        pytest.param([{**TOLERATION, "tolerationSeconds": 3}], [TOLERATION], id="for a time"),
        pytest.param([{"key": "a", **TOLERATION}], [{"key": "a", **TOLERATION}, TOLERATION], id="of one key"),
    ],
)
def test_sp6_it_tolerates_all_taints_that_evict(given: list[Any], expected: list[Any]) -> None:
    assert expected == made(manifest(tolerations=given)).manifest["spec"]["tolerations"]


def container(**more: Any) -> dict[str, Any]:
    return {"containers": [{"name": "c", "image": "i", **more}]}


@pytest.mark.parametrize(
    ("spec", "what"),
    [
        pytest.param({"serviceAccountName": "a"}, "serviceaccounts", id="service account"),
        pytest.param({"serviceAccount": "a"}, "serviceaccounts", id="by its old name"),
        pytest.param({"imagePullSecrets": [{"name": "s"}]}, "secrets", id="to pull the image"),
        pytest.param(container(envFrom=[{"secretRef": {"name": "s"}}]), "secrets", id="environment of a secret"),
        pytest.param(
            container(env=[{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "m", "key": "k"}}}]),
            "configmaps",
            id="variable of a ConfigMap",
        ),
        pytest.param({"resourceClaims": [{"name": "r"}]}, "resourceclaims", id="resource claim"),
        pytest.param(
            {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "p"}}]},
            "persistentvolumeclaims",
            id="PVC",
        ),
        pytest.param(
            {"volumes": [{"name": "v", "projected": {"sources": [{"clusterTrustBundle": {"path": "p"}}]}}]},
            "clustertrustbundles",
            id="projected",
        ),
    ],
)
def test_sp7_it_refers_to_no_object_of_the_api_server(spec: dict[str, Any], what: str) -> None:
    with pytest.raises(ManifestError, match=f"static pods may not reference {what}"):
        made(manifest(**spec))


def changed(**meta: Any) -> dict[str, Any]:
    found = manifest()
    found["metadata"] |= meta
    return found


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        pytest.param(b"", "couldn't parse as pod", id="nothing"),
        pytest.param(b"a: [", "line 1, column 5", id="no YAML"),
        pytest.param(b"{a: 1}", "not JSON", id="what begins as JSON is JSON"),
        pytest.param(b"[1]", "couldn't parse as pod", id="a list"),
        pytest.param(b"a: &x [1]\n" + b"b: [" + b"*x," * 200 + b"]", "too many aliases", id="a bomb"),
        pytest.param(b"- " * 4000, "not JSON", id="nested too deeply"),
        pytest.param({**manifest(), "kind": "PodList", "items": []}, "kind: Pod", id="a list of pods"),
        pytest.param({**manifest(), "apiVersion": "v2"}, "apiVersion: v1", id="another version"),
        pytest.param({**manifest(), "metadata": []}, "couldn't parse", id="a wrong type"),
        pytest.param({**manifest(), "spec": 3}, "couldn't parse", id="a spec that is none"),
        pytest.param(manifest(""), "name is needed", id="no name"),
        pytest.param(manifest("A"), "no DNS name", id="a name that is none"),
        pytest.param(manifest("a" * 250), "no DNS name", id="too long with the node's"),
        pytest.param(changed(namespace="a.b"), "no DNS label", id="namespace"),
        pytest.param(changed(labels={"a": "1:30"}), "is no label", id="label"),
        pytest.param(changed(labels={"a b": ""}), "is no label", id="the key of a label"),
        pytest.param(changed(annotations={"kubernetes.io/config.mirror": ""}), "only a mirror has", id="a mirror"),
        pytest.param(manifest(containers=[]), "at least one", id="no container"),
        pytest.param(manifest(containers=[{"name": "c"}]), "no image", id="no image"),
        pytest.param(manifest(initContainers=[{"name": "c", "image": "i"}]), "twice", id="one name twice"),
        pytest.param(manifest(restartPolicy="Sometimes"), "restartPolicy", id="policy"),
        pytest.param(manifest(volumes={}), "couldn't parse", id="volumes that are no list"),
        pytest.param(
            manifest(ephemeralContainers=[{"name": "e", "image": "i"}]), "ephemeralContainers", id="ephemeral"
        ),
        pytest.param(b" " * (2**20 + 1), "at most", id="too large"),
    ],
)
def test_sp8_what_is_no_static_pod(given: Any, problem: str) -> None:
    with pytest.raises(ManifestError, match=problem):
        made(given)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("yes", True, id="yes"),
        pytest.param("y", True, id="y"),
        pytest.param("Off", False, id="Off"),
        pytest.param("'yes'", "yes", id="quoted"),
        pytest.param("010", 8, id="octal"),
        pytest.param("0o10", 8, id="octal as in YAML 1.2"),
        pytest.param("-0x1F", -31, id="hexadecimal"),
        pytest.param("1_000", 1000, id="with underlines"),
        pytest.param("09", 9, id="no octal: a float without a fraction"),
        pytest.param("1e3", 1000, id="a whole float"),
        pytest.param(".5", 0.5, id="a fraction"),
        pytest.param("1:30", "1:30", id="no sexagesimal number"),
        pytest.param("2001-01-01", "2001-01-01", id="a date is text"),
        pytest.param("99999999999999999999", 10**20, id="too large for Go: a float"),
        pytest.param("1.2.3", "1.2.3", id="a version"),
        pytest.param("+", "+", id="a sign"),
    ],
)
def test_sp9_yaml_is_read_as_the_kubelet_does(text: str, expected: object) -> None:
    found = document(f"a: {text}\n1: b\ntrue: c\n".encode())
    assert {"a": expected, "1": "b", "true": "c"} == found
    assert type(expected) is type(found["a"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("{a: b:1, c: [d:1]}", {"a": "b:1", "c": ["d:1"]}, id="a colon within a text"),
        pytest.param("{a: [b:, c]}", {"a": ["b:", "c"]}, id="and at its end"),
        pytest.param("{a: {b: c:}}", {"a": {"b": "c:"}}, id="also of the last one"),
    ],
)
def test_sp9_colons_in_flow_collections(text: str, expected: object) -> None:
    assert expected == document(f"x: {text}".encode())["x"]


def test_sp9_without_a_space_there_is_no_key() -> None:
    with pytest.raises(DocumentError, match="line 1"):
        document(b"x: {a:[b]}")


def test_sp9_merge_keys() -> None:
    assert made(b"x: &x {image: i}\n" + YAML.replace(b"image: i\n    name", b"<<: *x\n    name")).pod.containers
