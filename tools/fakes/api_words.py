"""What an API server says of kinds and of requests that it refuses, in its own words."""

from collections.abc import Iterable

Object = dict
Key = tuple[str, str, str]  # resource, namespace, name

KINDS = {
    "pods": ("v1", "Pod"),
    "nodes": ("v1", "Node"),
    "events": ("v1", "Event"),
    "namespaces": ("v1", "Namespace"),
    "configmaps": ("v1", "ConfigMap"),
    "services": ("v1", "Service"),
    "leases": ("coordination.k8s.io/v1", "Lease"),
    "daemonsets": ("apps/v1", "DaemonSet"),
    "persistentvolumeclaims": ("v1", "PersistentVolumeClaim"),
    "persistentvolumes": ("v1", "PersistentVolume"),
    "storageclasses": ("storage.k8s.io/v1", "StorageClass"),
    "resourceclaims": ("resource.k8s.io/v1", "ResourceClaim"),
    "resourceclaimtemplates": ("resource.k8s.io/v1", "ResourceClaimTemplate"),
    "deviceclasses": ("resource.k8s.io/v1", "DeviceClass"),
}
RESOURCES = {kind: resource for resource, (_, kind) in KINDS.items()}
CLUSTER_SCOPED = frozenset({"nodes", "namespaces", "persistentvolumes", "storageclasses", "deviceclasses"})
STORED_AS = {"nodes": "minions", "services": "services/specs"}
# Of these a replacement must say which version it replaces.
NO_BLIND_REPLACEMENT = frozenset({"leases"})
SUBRESOURCES = {
    "status": frozenset(KINDS)
    - {"events", "configmaps", "leases", "storageclasses", "resourceclaimtemplates", "deviceclasses"},
    "binding": frozenset({"pods"}),
}
WITH_GENERATION = frozenset({"pods", "daemonsets"})

_CHANGED = "the object has been modified; please apply your changes to the latest version and try again"


class Refused(Exception):  # noqa: N818 - what is done, not an error
    """code, reason, message, details of the Status to answer with."""

    def __init__(
        self, code: int, reason: str, message: str = "", details: Object | None = None, go_on: str = ""
    ) -> None:
        """go_on: a continue token."""
        self.code, self.reason, self.message, self.details, self.go_on = code, reason, message, details, go_on

    @property
    def status(self) -> Object:
        said = status(self.code, self.reason, self.message, self.details)
        return said | ({"metadata": {"continue": self.go_on}} if self.go_on else {})


def status(code: int, reason: str, message: str, details: Object | None = None) -> Object:
    """A metav1.Status that says no."""
    said = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code}
    more = {"message": message, "reason": reason, "details": details}
    return said | {name: value for name, value in more.items() if value or value == {}}


def success(*, code: int | None = None, details: Object | None = None) -> Object:
    said = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    return said | ({"code": code} if code else {}) | ({"details": details} if details else {})


def group_of(resource: str) -> str:
    api_version, _ = KINDS[resource]
    return api_version.partition("/")[0] if "/" in api_version else ""


def details(key: Key, *, kind: str = "", **more: object) -> Object:
    """kind: instead of the resource."""
    group = group_of(key[0])
    about = {"name": key[2], **({"group": group} if group else {}), "kind": kind or key[0]}
    return {name: value for name, value in about.items() if value} | more


def not_found(key: Key) -> Refused:
    return Refused(404, "NotFound", f'{_full(key[0])} "{key[2]}" not found', details(key))


def already_exists(key: Key) -> Refused:
    return Refused(409, "AlreadyExists", f'{_full(key[0])} "{key[2]}" already exists', details(key))


def conflict(key: Key, why: str = _CHANGED, *, kind: str = "") -> Refused:
    name = f"{kind}.{group_of(key[0])}".rstrip(".") if kind else _full(key[0])
    message = f'Operation cannot be fulfilled on {name} "{key[2]}": {why}'
    return Refused(409, "Conflict", message, details(key, kind=kind))


def another_uid(key: Key, wanted: str, there: str) -> str:
    """Of an update with a precondition, as the storage says it."""
    where = "/".join(filter(None, ("/registry", STORED_AS.get(key[0], key[0]), key[1], key[2])))
    return (
        f"StorageError: invalid object, Code: 4, Key: {where}, ResourceVersion: 0, AdditionalErrorMsg: "
        f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {there}"
    )


def deletion_conflict(key: Key, what: str, wanted: str, there: str) -> Refused:
    """what: UID or ResourceVersion."""
    happened = "deleted and then recreated" if what == "UID" else "modified"
    why = f"the {what} in the precondition ({wanted}) does not match the {what} in record ({there}). "
    return conflict(key, f"{why}The object might have been {happened}", kind=KINDS[key[0]][1])


def invalid(key: Key, field: str, why: str, *, reason: str = "FieldValueInvalid", by_kind: bool = True, times: int = 1):
    """by_kind: named by its kind, as validation does, and not by its resource."""
    kind = KINDS[key[0]][1]
    name = f"{kind}.{group_of(key[0])}".rstrip(".") if by_kind else _full(key[0])
    causes = [{"reason": reason, "message": why, "field": field}] * times
    about = details(key, kind=kind if by_kind else "", causes=causes)
    return Refused(422, "Invalid", f'{name} "{key[2]}" is invalid: {field}: {why}', about)


def unconditional(key: Key) -> Refused:
    return invalid(key, "metadata.resourceVersion", "Invalid value: 0: must be specified for an update", by_kind=False)


def nameless(key: Key) -> Refused:
    why = "Required value: name or generateName is required"
    return invalid(key, "metadata.name", why, reason="FieldValueRequired")


def immutable_uid(key: Key, uid: str) -> Refused:
    return invalid(key, "metadata.uid", f'Invalid value: "{uid}": field is immutable', times=2)


def bad_request(message: str) -> Refused:
    return Refused(400, "BadRequest", message)


def invalid_version(version: str) -> Refused:
    why = f'Invalid value: "{version}": strconv.ParseUint: parsing "{version}": invalid syntax'
    return Refused(500, "", f"resourceVersion: {why}")


def expired_token(go_on: str) -> Refused:
    message = (
        "The provided continue parameter is too old to display a consistent list result. You can start a new list "
        "without the continue parameter, or use the continue token in this response to retrieve the remainder of the "
        "results. Continuing with the provided token results in an inconsistent list - objects that were created, "
        "modified, or deleted between the time the first chunk was returned and now may show up in the list."
    )
    return Refused(410, "Expired", message, go_on=go_on)


def no_such_resource() -> Refused:
    return Refused(404, "NotFound", "the server could not find the requested resource", {})


def no_such_method() -> Refused:
    return Refused(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {})


def not_acceptable() -> Refused:
    kinds = ("json", "yaml", "vnd.kubernetes.protobuf", "json;stream=watch", "vnd.kubernetes.protobuf;stream=watch")
    offered = ", ".join(f"application/{kind}" for kind in kinds)
    return Refused(406, "NotAcceptable", f"406: Not Acceptable\n\nAvailable representations: {offered}", {})


def unsupported() -> Refused:
    return Refused(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})


def metadata_only(value: Object) -> Object:
    """An object as PartialObjectMetadata, a list as its list."""
    said = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": value["metadata"]}
    if "items" in value:
        items: Iterable[Object] = value["items"]
        return {**said, "kind": "PartialObjectMetadataList", "items": [metadata_only(item) for item in items]}
    return said


def _full(resource: str) -> str:
    return f"{resource}.{group_of(resource)}".rstrip(".")
