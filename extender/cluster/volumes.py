"""Which CSI driver serves a claim: look-ups for requests, in dictionaries that the reflectors' threads fill.

There is no lock: each dictionary has one writer, and readers need no two of them from the same moment.
"""

from collections.abc import Callable, Sequence

from extender.cluster import objects

CLAIMS, VOLUMES, STORAGE_CLASSES = "claims", "volumes", "storageclasses"  # the names of the caches

_Claim = tuple[str, str]  # namespace, name


class Volumes:
    """Claims, volumes and storage classes of the cluster, reduced to what identifies a driver.

    missing: lists that have not come yet, by the names of their caches. on_listed(): called when one has come.
    """

    def __init__(self, on_listed: Callable[[], None] = lambda: None) -> None:
        self._on_listed = on_listed
        self._claims: dict[_Claim, tuple[str, str]] = {}  # -> name of its volume, of its storage class; "" without
        self._volumes: dict[str, str] = {}  # -> driver, "" for none
        self._classes: dict[str, str] = {}  # -> provisioner, which is the name of the driver
        self.missing: frozenset[str] = frozenset({CLAIMS, VOLUMES, STORAGE_CLASSES})

    def driver_of_claim(self, namespace: str, name: str) -> str | None:
        """Returns the driver by the claim's volume, or by its storage class while it has no volume. "" if no driver
        serves it, None if unknown."""
        found = self._claims.get((namespace, name))
        if found is None:
            return None
        volume, storage_class = found
        driver = self._volumes.get(volume)
        return self.driver_of_class(storage_class) if driver is None else driver

    def driver_of_class(self, name: str) -> str | None:
        return self._classes.get(name)

    # Stores of the reflectors.

    def replace_claims(self, claims: Sequence[objects.Claim]) -> None:
        self._claims = {_claim(one): _bound_to(one) for one in claims}
        self._listed(CLAIMS)

    def upsert_claim(self, claim: objects.Claim) -> None:
        self._claims[_claim(claim)] = _bound_to(claim)

    def remove_claim(self, claim: objects.Claim) -> None:
        self._claims.pop(_claim(claim), None)

    def replace_volumes(self, volumes: Sequence[objects.Volume]) -> None:
        self._volumes = {one.metadata.name: one.driver for one in volumes}
        self._listed(VOLUMES)

    def upsert_volume(self, volume: objects.Volume) -> None:
        self._volumes[volume.metadata.name] = volume.driver

    def remove_volume(self, volume: objects.Volume) -> None:
        self._volumes.pop(volume.metadata.name, None)

    def replace_classes(self, classes: Sequence[objects.StorageClass]) -> None:
        self._classes = {one.metadata.name: one.provisioner for one in classes}
        self._listed(STORAGE_CLASSES)

    def upsert_class(self, storage_class: objects.StorageClass) -> None:
        self._classes[storage_class.metadata.name] = storage_class.provisioner

    def remove_class(self, storage_class: objects.StorageClass) -> None:
        self._classes.pop(storage_class.metadata.name, None)

    def _listed(self, name: str) -> None:
        if name in self.missing:
            self.missing -= {name}
            self._on_listed()


def _claim(claim: objects.Claim) -> _Claim:
    return claim.metadata.namespace, claim.metadata.name


def _bound_to(claim: objects.Claim) -> tuple[str, str]:
    return claim.spec.volume_name, claim.spec.storage_class_name or ""
