"""Which volumes of a pod may be the cause that it does not start, so that this is no evidence against its node."""

from typing import Any

import pytest

from tests.extender.cluster.test_pod_starts import CLAIM, NO_SANDBOX, SANDBOX, World, both, pod, waiting

ROOT_CA = {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}
TOKEN = [
    {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
    {"configMap": ROOT_CA},
    {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}]}},
]
SERVICE_CA = {"name": "openshift-service-ca.crt", "items": [{"key": "service-ca.crt", "path": "service-ca.crt"}]}
NODE, MOUNT, OWN = "the node", "the mount only", "the pod's own"
# All kinds of VolumeSource (k8s.io/api/core/v1, Kubernetes 1.36). What a failure is blamed on of a pod that has one:
# NODE: the node, whatever is missing; OWN: the pod's own volume; MOUNT: that while there is no sandbox, then the node.
VOLUMES = [
    pytest.param({"emptyDir": {}}, NODE, id="emptyDir"),
    pytest.param({"emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}, NODE, id="emptyDir in memory"),
    pytest.param({"emptyDir": {"medium": "HugePages-2Mi"}}, MOUNT, id="emptyDir of huge pages"),
    pytest.param({"downwardAPI": {"items": []}}, NODE, id="downwardAPI"),
    pytest.param({"projected": {"sources": TOKEN}}, NODE, id="the default service account's token"),
    pytest.param({"projected": {"sources": [*TOKEN, {"configMap": SERVICE_CA}]}}, NODE, id="the same on OpenShift"),
    pytest.param({"projected": {}}, NODE, id="projected without sources"),
    pytest.param({"projected": {"sources": [*TOKEN, {"configMap": {"name": "c"}}]}}, MOUNT, id="projected configMap"),
    pytest.param({"projected": {"sources": [*TOKEN, {"secret": {"name": "s"}}]}}, MOUNT, id="projected secret"),
    pytest.param(
        {"projected": {"sources": [{"configMap": ROOT_CA | {"items": [{"key": "x", "path": "x"}]}}]}},
        MOUNT,
        id="projected kube-root-ca.crt by a key that it does not have",
    ),
    pytest.param(
        {"projected": {"sources": [{"secret": {"name": "s", "optional": True}}]}}, NODE, id="projected optional secret"
    ),
    pytest.param(
        {"projected": {"sources": [{"configMap": {"name": "c", "optional": True}}]}},
        NODE,
        id="projected optional configMap",
    ),
    pytest.param(
        {"projected": {"sources": [{"clusterTrustBundle": {"name": "t", "path": "t"}}]}},
        MOUNT,
        id="projected clusterTrustBundle",
    ),
    pytest.param(
        {"projected": {"sources": [{"podCertificate": {"signerName": "s", "keyType": "ED25519"}}]}},
        MOUNT,
        id="projected podCertificate",
    ),
    pytest.param({"configMap": {"name": "c"}}, MOUNT, id="configMap"),
    pytest.param({"configMap": {"name": "c", "optional": False}}, MOUNT, id="configMap that is not optional"),
    pytest.param({"configMap": {"name": "c", "optional": True}}, NODE, id="optional configMap"),
    pytest.param({"secret": {"secretName": "s"}}, MOUNT, id="secret"),
    pytest.param({"secret": {"secretName": "s", "optional": True}}, NODE, id="optional secret"),
    pytest.param({"persistentVolumeClaim": {"claimName": "c"}}, OWN, id="persistentVolumeClaim"),
    pytest.param({"ephemeral": {"volumeClaimTemplate": {}}}, OWN, id="ephemeral"),
    pytest.param({"csi": {"driver": "d"}}, OWN, id="csi"),
    pytest.param({"hostPath": {"path": "/p"}}, OWN, id="hostPath"),
    pytest.param({"image": {"reference": "i"}}, OWN, id="image"),
    pytest.param({"nfs": {"server": "s", "path": "/p"}}, OWN, id="nfs"),
    pytest.param({"iscsi": {"targetPortal": "t", "iqn": "i", "lun": 0}}, OWN, id="iscsi"),
    pytest.param({"fc": {}}, OWN, id="fc"),
    pytest.param({"flexVolume": {"driver": "d"}}, OWN, id="flexVolume"),
    pytest.param({"gitRepo": {"repository": "r"}}, OWN, id="gitRepo"),
    pytest.param({"awsElasticBlockStore": {"volumeID": "v"}}, OWN, id="awsElasticBlockStore"),
    pytest.param({"azureDisk": {"diskName": "d", "diskURI": "u"}}, OWN, id="azureDisk"),
    pytest.param({"azureFile": {"secretName": "s", "shareName": "s"}}, OWN, id="azureFile"),
    pytest.param({"cephfs": {"monitors": []}}, OWN, id="cephfs"),
    pytest.param({"cinder": {"volumeID": "v"}}, OWN, id="cinder"),
    pytest.param({"flocker": {}}, OWN, id="flocker"),
    pytest.param({"gcePersistentDisk": {"pdName": "p"}}, OWN, id="gcePersistentDisk"),
    pytest.param({"glusterfs": {"endpoints": "e", "path": "p"}}, OWN, id="glusterfs"),
    pytest.param({"photonPersistentDisk": {"pdID": "p"}}, OWN, id="photonPersistentDisk"),
    pytest.param({"portworxVolume": {"volumeID": "v"}}, OWN, id="portworxVolume"),
    pytest.param({"quobyte": {"registry": "r", "volume": "v"}}, OWN, id="quobyte"),
    pytest.param({"rbd": {"monitors": [], "image": "i"}}, OWN, id="rbd"),
    pytest.param({"scaleIO": {"gateway": "g", "system": "s"}}, OWN, id="scaleIO"),
    pytest.param({"storageos": {}}, OWN, id="storageos"),
    pytest.param({"vsphereVolume": {"volumePath": "p"}}, OWN, id="vsphereVolume"),
    pytest.param({"ofALaterRelease": {}}, OWN, id="a kind that is not known"),
]


@pytest.mark.parametrize(("volume", "blamed"), VOLUMES)
def test_a_failure_that_the_pod_s_own_volume_may_have_caused_is_no_evidence(
    volume: dict[str, Any], blamed: str
) -> None:
    volumes = [{"name": "tmp", "emptyDir": {}}, {"name": "v", **volume}]
    stuck = World().run("web", "api").tell(*both(pod, volumes=volumes, conditions=[NO_SANDBOX]))
    broken = waiting("CreateContainerError")
    cannot = World().run("web", "api")
    cannot.tell(*both(pod, volumes=volumes, conditions=[SANDBOX], containerStatuses=broken))
    by_stuck, by_broken = ["bad"] if blamed == NODE else [], [] if blamed == OWN else ["bad"]
    assert (by_stuck, by_broken) == (stuck.passes(30).black(), cannot.black())


def test_a_pod_that_waits_for_its_own_volume_and_then_gets_no_sandbox_stays_without_evidence() -> None:
    """The kubelet reports neither which volume it waits for nor when it has mounted all."""
    world = World().run("web", "api").tell(*both(pod, volumes=CLAIM, conditions=[NO_SANDBOX]))
    assert [] == world.passes(3600).black()
