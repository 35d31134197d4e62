"""Which devices a claim requests: look-ups for requests, in dictionaries that the reflectors' threads fill.

There is no lock: each dictionary has one writer, and readers need no two of them from the same moment.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

from extender.cluster import objects
from extender.policy.devices import DeviceClass, Request, class_by_prefix

# The names of the caches.
RESOURCE_CLAIMS, CLAIM_TEMPLATES, DEVICE_CLASSES = "resourceclaims", "resourceclaimtemplates", "deviceclasses"

_Key = tuple[str, str]  # namespace, name
_Requests = tuple[Request, ...] | None  # None = an unknown form


class Devices:
    """Claims, templates of claims and device classes of the cluster, reduced to what identifies a device.

    missing: lists that have not come yet, by the names of their caches. on_listed(): called when one has come.
    """

    def __init__(self, on_listed: Callable[[], None] = lambda: None) -> None:
        self._on_listed = on_listed
        self._claims: dict[_Key, _Requests] = {}
        self._templates: dict[_Key, _Requests] = {}
        self._classes: dict[str, DeviceClass] = {}
        self._serving: dict[str, str] = {}  # extended resource -> name of the class that serves it
        self._drivers: dict[str, frozenset[str]] = {}  # extended resource -> drivers of its classes
        self.missing: frozenset[str] = frozenset({RESOURCE_CLAIMS, CLAIM_TEMPLATES, DEVICE_CLASSES})

    def requests_of_claim(self, namespace: str, name: str) -> _Requests:
        return self._claims.get((namespace, name))

    def requests_of_template(self, namespace: str, name: str) -> _Requests:
        return self._templates.get((namespace, name))

    def device_class(self, name: str) -> DeviceClass | None:
        return self._classes.get(name)

    def class_of_resource(self, resource: str) -> str:
        return class_by_prefix(resource) or self._serving.get(resource, "")

    def drivers_of_resource(self, resource: str) -> frozenset[str]:
        return self._drivers.get(resource, frozenset())

    # Stores of the reflectors.

    def replace_claims(self, claims: Sequence[objects.ResourceClaim]) -> None:
        self._claims = {_key(one): _shared(one.requests) for one in claims}
        self._listed(RESOURCE_CLAIMS)

    def upsert_claim(self, claim: objects.ResourceClaim) -> None:
        self._claims[_key(claim)] = _shared(claim.requests)

    def remove_claim(self, claim: objects.ResourceClaim) -> None:
        self._claims.pop(_key(claim), None)

    def replace_templates(self, templates: Sequence[objects.ResourceClaimTemplate]) -> None:
        self._templates = {_key(one): _shared(one.requests) for one in templates}
        self._listed(CLAIM_TEMPLATES)

    def upsert_template(self, template: objects.ResourceClaimTemplate) -> None:
        self._templates[_key(template)] = _shared(template.requests)

    def remove_template(self, template: objects.ResourceClaimTemplate) -> None:
        self._templates.pop(_key(template), None)

    def replace_classes(self, classes: Sequence[objects.DeviceClass]) -> None:
        self._take({one.metadata.name: one.known for one in classes})
        self._listed(DEVICE_CLASSES)

    def upsert_class(self, device_class: objects.DeviceClass) -> None:
        self._take(self._classes | {device_class.metadata.name: device_class.known})

    def remove_class(self, device_class: objects.DeviceClass) -> None:
        self._take({name: one for name, one in self._classes.items() if name != device_class.metadata.name})

    # Inside.

    def _take(self, classes: dict[str, DeviceClass]) -> None:
        """Takes all classes. A cluster has few, so everything is built again when one changes."""
        serving = [one for one in classes.values() if one.resource]
        self._drivers = {
            resource: frozenset().union(*(one.drivers or () for one in serving if one.resource == resource))
            for resource in {one.resource for one in serving}
        }
        self._serving = {one.resource: one.name for one in _latest_last(serving)}
        self._classes = classes

    def _listed(self, name: str) -> None:
        if name in self.missing:
            self.missing -= {name}
            self._on_listed()


@lru_cache(maxsize=1024)
def _shared(requests: _Requests) -> _Requests:
    """Returns one object for equal requests. Thousands of claims are equal: 211 bytes a claim instead of 652."""
    return requests


def _latest_last(classes: Iterable[DeviceClass]) -> Sequence[DeviceClass]:
    """Sorts classes so that the one that kube-scheduler uses comes last: the newest, and of equal age the first by name
    (kubernetes dynamic-resource-allocation/deviceclass/extendedresourcecache)."""
    return sorted(sorted(classes, key=lambda one: one.name, reverse=True), key=lambda one: one.created)


def _key(item: objects.ResourceClaim | objects.ResourceClaimTemplate) -> _Key:
    return item.metadata.namespace, item.metadata.name
