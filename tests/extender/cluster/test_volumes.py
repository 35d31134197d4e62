"""Which driver serves a claim: by its volume, or by its storage class while it has none yet."""

import pytest

from extender.cluster import objects
from extender.cluster.volumes import Volumes
from tests.extender.builders import seen


def claim(name: str, *, volume: str = "", storage_class: str | None = None) -> objects.Claim:
    spec = {"volumeName": volume, "storageClassName": storage_class}
    return seen(objects.Claim, {"metadata": {"name": name, "namespace": "a"}, "spec": spec})  # type: ignore[no-any-return]


def volume(name: str, driver: str = "") -> objects.Volume:
    spec = {"csi": {"driver": driver}} if driver else {"nfs": {"path": "/"}}
    return seen(objects.Volume, {"metadata": {"name": name}, "spec": spec})  # type: ignore[no-any-return]


def storage_class(name: str, provisioner: str) -> objects.StorageClass:
    return seen(objects.StorageClass, {"metadata": {"name": name}, "provisioner": provisioner})  # type: ignore[no-any-return]


@pytest.fixture
def volumes() -> Volumes:
    found = Volumes()
    found.replace_claims(
        [
            claim("bound", volume="pv-1", storage_class="slow"),
            claim("waits", storage_class="fast"),
            claim("no-csi", volume="pv-2"),
            claim("in-tree", volume="pv-4"),
            claim("lost", volume="pv-9"),
            claim("statically", storage_class=""),
        ]
    )
    in_tree = {"metadata": {"name": "pv-4", "annotations": {objects.PROVISIONED_BY: "kubernetes.io/aws-ebs"}}}
    found.replace_volumes([volume("pv-1", "ebs.csi.aws.com"), volume("pv-2"), seen(objects.Volume, in_tree)])
    found.replace_classes([storage_class("fast", "rbd.csi.ceph.com"), storage_class("slow", "other")])
    return found


@pytest.mark.parametrize(
    ("namespace", "name", "expected"),
    [
        pytest.param("a", "bound", "ebs.csi.aws.com", id="its volume tells"),
        pytest.param("a", "waits", "rbd.csi.ceph.com", id="not bound yet: its storage class tells"),
        pytest.param("a", "in-tree", "kubernetes.io/aws-ebs", id="a volume of a plugin in the tree: who made it"),
        pytest.param("a", "no-csi", "", id="a volume of no driver"),
        pytest.param("a", "lost", None, id="a volume that is not known, and no storage class"),
        pytest.param("a", "statically", None, id="no volume yet, and no storage class"),
        pytest.param("b", "bound", None, id="a claim of another namespace"),
        pytest.param("a", "", None, id="no claim"),
    ],
)
def test_who_serves_a_claim(volumes: Volumes, namespace: str, name: str, expected: str | None) -> None:
    assert expected == volumes.driver_of_claim(namespace, name)


def test_events_change_it(volumes: Volumes) -> None:
    volumes.upsert_claim(claim("waits", volume="pv-3", storage_class="fast"))
    volumes.upsert_volume(volume("pv-3", "new"))
    assert "new" == volumes.driver_of_claim("a", "waits")
    volumes.upsert_volume(volume("pv-3"))
    assert "" == volumes.driver_of_claim("a", "waits")
    volumes.remove_volume(volume("pv-3"))
    assert "rbd.csi.ceph.com" == volumes.driver_of_claim("a", "waits")
    volumes.remove_class(storage_class("fast", ""))
    assert volumes.driver_of_class("fast") is None
    volumes.upsert_class(storage_class("fast", "again"))
    assert "again" == volumes.driver_of_claim("a", "waits")
    for _ in range(2):
        volumes.remove_claim(claim("bound"))
        volumes.remove_volume(volume("pv-1"))
        volumes.remove_class(storage_class("slow", ""))
    assert volumes.driver_of_claim("a", "bound") is None


def test_what_is_not_listed_yet_is_missing(volumes: Volumes) -> None:
    assert (frozenset({"claims", "volumes", "storageclasses"}), frozenset()) == (Volumes().missing, volumes.missing)
