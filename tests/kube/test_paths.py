"""Paths as the API server spells them."""

import pytest

from kube import paths


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (paths.pods(), "/api/v1/pods"),
        (paths.pods("ns"), "/api/v1/namespaces/ns/pods"),
        (paths.pod("ns", "p"), "/api/v1/namespaces/ns/pods/p"),
        (paths.pod_status("ns", "p"), "/api/v1/namespaces/ns/pods/p/status"),
        (paths.node("n"), "/api/v1/nodes/n"),
        (paths.node_status("n"), "/api/v1/nodes/n/status"),
        (paths.leases(), "/apis/coordination.k8s.io/v1/leases"),
        (paths.daemon_sets("a/b"), "/apis/apps/v1/namespaces/a%2Fb/daemonsets"),
        (paths.daemon_set("a", "b/c"), "/apis/apps/v1/namespaces/a/daemonsets/b%2Fc"),
        (paths.config_map("a", "b"), "/api/v1/namespaces/a/configmaps/b"),
        (paths.subject_access_reviews(), "/apis/authorization.k8s.io/v1/subjectaccessreviews"),
        (paths.config_maps("a"), "/api/v1/namespaces/a/configmaps"),
        (paths.persistent_volume_claims(), "/api/v1/persistentvolumeclaims"),
        (paths.persistent_volumes(), "/api/v1/persistentvolumes"),
        (paths.storage_classes(), "/apis/storage.k8s.io/v1/storageclasses"),
        (paths.resource_claims(), "/apis/resource.k8s.io/v1/resourceclaims"),
        (paths.resource_claim_templates(), "/apis/resource.k8s.io/v1/resourceclaimtemplates"),
        (paths.device_classes(), "/apis/resource.k8s.io/v1/deviceclasses"),
        (paths.lease("ns", "l"), "/apis/coordination.k8s.io/v1/namespaces/ns/leases/l"),
        (paths.node("../pods?x=1#y"), "/api/v1/nodes/..%2Fpods%3Fx%3D1%23y"),
    ],
)
def test_path(found, expected):
    assert expected == found
