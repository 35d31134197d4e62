"""Paths of the API server; no other module spells them. Names are escaped, so none can leave its segment."""

from urllib.parse import quote

FROM_MEMORY = {"resourceVersion": "0"}  # query of a GET: the API server answers from its cache and does not ask etcd
_DEVICES = "resource.k8s.io/v1"  # served since Kubernetes 1.34


def _segment(name: str) -> str:
    return quote(name, safe="")


def _core(namespace: str | None, resource: str) -> str:
    if namespace is None:
        return f"/api/v1/{resource}"
    return f"/api/v1/namespaces/{_segment(namespace)}/{resource}"


def _group(group_version: str, namespace: str | None, resource: str) -> str:
    if namespace is None:
        return f"/apis/{group_version}/{resource}"
    return f"/apis/{group_version}/namespaces/{_segment(namespace)}/{resource}"


def version() -> str:
    """The cheapest request, which every identity may send."""
    return "/version"


def pods(namespace: str | None = None) -> str:
    """All pods of a namespace, or of the cluster for None."""
    return _core(namespace, "pods")


def pod(namespace: str, name: str) -> str:
    return f"{pods(namespace)}/{_segment(name)}"


def pod_status(namespace: str, name: str) -> str:
    return f"{pod(namespace, name)}/status"


def service_account_token(namespace: str, account: str) -> str:
    """Where a token of the account is requested."""
    return f"{_core(namespace, 'serviceaccounts')}/{_segment(account)}/token"


def pod_port_forward(namespace: str, name: str) -> str:
    """Where a connection to a port of a pod is opened; the query names the port."""
    return f"{pod(namespace, name)}/portforward"


def nodes() -> str:
    return _core(None, "nodes")


def node(name: str) -> str:
    return f"{nodes()}/{_segment(name)}"


def node_status(name: str) -> str:
    return f"{node(name)}/status"


def leases(namespace: str | None = None) -> str:
    return _group("coordination.k8s.io/v1", namespace, "leases")


def lease(namespace: str, name: str) -> str:
    return f"{leases(namespace)}/{_segment(name)}"


def daemon_sets(namespace: str) -> str:
    return _group("apps/v1", namespace, "daemonsets")


def daemon_set(namespace: str, name: str) -> str:
    return f"{daemon_sets(namespace)}/{_segment(name)}"


def endpoint_slices(namespace: str) -> str:
    return _group("discovery.k8s.io/v1", namespace, "endpointslices")


def endpoint_slice(namespace: str, name: str) -> str:
    return f"{endpoint_slices(namespace)}/{_segment(name)}"


def network_policies(namespace: str) -> str:
    return _group("networking.k8s.io/v1", namespace, "networkpolicies")


def config_maps(namespace: str) -> str:
    return _core(namespace, "configmaps")


def config_map(namespace: str, name: str) -> str:
    return f"{config_maps(namespace)}/{_segment(name)}"


def persistent_volume_claims() -> str:
    """Of all namespaces."""
    return _core(None, "persistentvolumeclaims")


def persistent_volumes() -> str:
    return _core(None, "persistentvolumes")


def storage_classes() -> str:
    return _group("storage.k8s.io/v1", None, "storageclasses")


def resource_claims() -> str:
    """Of all namespaces, as templates of them are."""
    return _group(_DEVICES, None, "resourceclaims")


def resource_claim_templates() -> str:
    return _group(_DEVICES, None, "resourceclaimtemplates")


def device_classes() -> str:
    return _group(_DEVICES, None, "deviceclasses")


def subject_access_reviews() -> str:
    return _group("authorization.k8s.io/v1", None, "subjectaccessreviews")


def events(namespace: str) -> str:
    return _core(namespace, "events")


def event(namespace: str, name: str) -> str:
    return f"{events(namespace)}/{_segment(name)}"


def self_subject_reviews() -> str:
    """Returns the identity that the API server sees."""
    return _group("authentication.k8s.io/v1", None, "selfsubjectreviews")
