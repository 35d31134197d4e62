"""Which volumes of a pod may be the cause that it does not start, so that this is no evidence against its node."""

from typing import Any

from tests.extender.cluster.test_pod_starts import CLAIM, NO_SANDBOX, SANDBOX, World, both, pod, waiting
from tools.kit.cases import cases

ROOT_CA = {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}
OTHER_KEY = {"items": [{"key": "x", "path": "x"}]}
OPTIONAL, TRUST = {"name": "c", "optional": True}, {"name": "t", "path": "t"}
SIGNED = {"signerName": "s", "keyType": "ED25519"}
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
    ("emptyDir", {"emptyDir": {}}, NODE),
    ("emptyDir in memory", {"emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}, NODE),
    ("emptyDir of huge pages", {"emptyDir": {"medium": "HugePages-2Mi"}}, MOUNT),
    ("downwardAPI", {"downwardAPI": {"items": []}}, NODE),
    ("the default service account's token", {"projected": {"sources": TOKEN}}, NODE),
    ("the same on OpenShift", {"projected": {"sources": [*TOKEN, {"configMap": SERVICE_CA}]}}, NODE),
    ("projected without sources", {"projected": {}}, NODE),
    ("projected configMap", {"projected": {"sources": [*TOKEN, {"configMap": {"name": "c"}}]}}, MOUNT),
    ("projected secret", {"projected": {"sources": [*TOKEN, {"secret": {"name": "s"}}]}}, MOUNT),
    ("kube-root-ca.crt by an unknown key", {"projected": {"sources": [{"configMap": ROOT_CA | OTHER_KEY}]}}, MOUNT),
    ("projected optional secret", {"projected": {"sources": [{"secret": {"name": "s", "optional": True}}]}}, NODE),
    ("projected optional ConfigMap", {"projected": {"sources": [{"configMap": OPTIONAL}]}}, NODE),
    ("clusterTrustBundle", {"projected": {"sources": [{"clusterTrustBundle": TRUST}]}}, MOUNT),
    ("projected podCertificate", {"projected": {"sources": [{"podCertificate": SIGNED}]}}, MOUNT),
    ("configMap", {"configMap": {"name": "c"}}, MOUNT),
    ("configMap that is not optional", {"configMap": {"name": "c", "optional": False}}, MOUNT),
    ("optional configMap", {"configMap": {"name": "c", "optional": True}}, NODE),
    ("secret", {"secret": {"secretName": "s"}}, MOUNT),
    ("optional secret", {"secret": {"secretName": "s", "optional": True}}, NODE),
    ("persistentVolumeClaim", {"persistentVolumeClaim": {"claimName": "c"}}, OWN),
    ("ephemeral", {"ephemeral": {"volumeClaimTemplate": {}}}, OWN),
    ("csi", {"csi": {"driver": "d"}}, OWN),
    ("hostPath", {"hostPath": {"path": "/p"}}, OWN),
    ("image", {"image": {"reference": "i"}}, OWN),
    ("nfs", {"nfs": {"server": "s", "path": "/p"}}, OWN),
    ("iscsi", {"iscsi": {"targetPortal": "t", "iqn": "i", "lun": 0}}, OWN),
    ("fc", {"fc": {}}, OWN),
    ("flexVolume", {"flexVolume": {"driver": "d"}}, OWN),
    ("gitRepo", {"gitRepo": {"repository": "r"}}, OWN),
    ("awsElasticBlockStore", {"awsElasticBlockStore": {"volumeID": "v"}}, OWN),
    ("azureDisk", {"azureDisk": {"diskName": "d", "diskURI": "u"}}, OWN),
    ("azureFile", {"azureFile": {"secretName": "s", "shareName": "s"}}, OWN),
    ("cephfs", {"cephfs": {"monitors": []}}, OWN),
    ("cinder", {"cinder": {"volumeID": "v"}}, OWN),
    ("flocker", {"flocker": {}}, OWN),
    ("gcePersistentDisk", {"gcePersistentDisk": {"pdName": "p"}}, OWN),
    ("glusterfs", {"glusterfs": {"endpoints": "e", "path": "p"}}, OWN),
    ("photonPersistentDisk", {"photonPersistentDisk": {"pdID": "p"}}, OWN),
    ("portworxVolume", {"portworxVolume": {"volumeID": "v"}}, OWN),
    ("quobyte", {"quobyte": {"registry": "r", "volume": "v"}}, OWN),
    ("rbd", {"rbd": {"monitors": [], "image": "i"}}, OWN),
    ("scaleIO", {"scaleIO": {"gateway": "g", "system": "s"}}, OWN),
    ("storageos", {"storageos": {}}, OWN),
    ("vsphereVolume", {"vsphereVolume": {"volumePath": "p"}}, OWN),
    ("a kind that is not known", {"ofALaterRelease": {}}, OWN),
]


@cases("volume, blamed", *VOLUMES)
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
