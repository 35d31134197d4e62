"""The pod of a request: what exemptions, gates and whoever asks why look at. No more of it is decoded.

Containers, volumes and claims are decoded only where a gate speaks for pods by their resources, devices or volumes.
"""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from extender.policy.devices import PodClaim
from extender.policy.pods import Classes, PodSeen, PodVolume
from kube.objects import OwnerReference


class PodMeta(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    labels: dict[str, str] | None = None
    owner_references: list[OwnerReference] | None = None


class PodSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    priority_class_name: str = ""
    priority: int | None = None
    scheduler_name: str = ""


class PodStatus(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    nominated_node_name: str = ""


class Pod(msgspec.Struct, frozen=True, gc=False):
    metadata: PodMeta | None = None
    spec: PodSpec | None = None
    status: PodStatus | None = None


class _Resources(msgspec.Struct, frozen=True, gc=False):
    requests: dict[str, msgspec.Raw] | None = None
    limits: dict[str, msgspec.Raw] | None = None


class _Container(msgspec.Struct, frozen=True, gc=False):
    resources: _Resources | None = None


class _Csi(msgspec.Struct, frozen=True, gc=False):
    driver: str = ""


class _Claim(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    claim_name: str = ""


class _TemplateSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    storage_class_name: str | None = None


class _Template(msgspec.Struct, frozen=True, gc=False):
    spec: _TemplateSpec | None = None


class _Ephemeral(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    volume_claim_template: _Template | None = None


class _Volume(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    name: str = ""
    csi: _Csi | None = None
    persistent_volume_claim: _Claim | None = None
    ephemeral: _Ephemeral | None = None


class _ResourceClaim(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class _ClaimStatus(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    name: str = ""
    resource_claim_name: str | None = None


class _ExtendedClaimStatus(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    resource_claim_name: str = ""


class WholeStatus(PodStatus, frozen=True, gc=False, rename="camel"):
    resource_claim_statuses: list[_ClaimStatus] | None = None
    extended_resource_claim_status: _ExtendedClaimStatus | None = None


class WholeSpec(PodSpec, frozen=True, gc=False, rename="camel"):
    containers: list[_Container] | None = None
    init_containers: list[_Container] | None = None
    resources: _Resources | None = None
    volumes: list[_Volume] | None = None
    resource_claims: list[_ResourceClaim] | None = None


class WholePod(Pod, frozen=True, gc=False):
    spec: WholeSpec | None = None
    status: WholeStatus | None = None


NOBODY = Pod()
NO_META = PodMeta()
NO_SPEC = PodSpec()


def mask_of(classes: Classes, pod: Pod | None) -> int:
    """Of the gates that speak for the pod."""
    return classes.all if classes.everybody else classes.mask_of(seen_of(pod or NOBODY))


def seen_of(pod: Pod) -> PodSeen:
    meta, spec = pod.metadata or NO_META, pod.spec or NO_SPEC
    whole = spec if isinstance(spec, WholeSpec) else WholeSpec()
    return PodSeen(
        namespace=meta.namespace,
        labels=meta.labels or {},
        priority=spec.priority or 0,
        scheduler_name=spec.scheduler_name,
        resources=frozenset(_resources(whole)),
        volumes=tuple(_volumes(whole, meta.name)),
        claims=_claims(whole, pod.status),
    )


def _resources(spec: WholeSpec) -> Iterator[str]:
    holders: Iterable[_Container] = (*(spec.containers or ()), *(spec.init_containers or ()))
    for resources in (spec.resources, *(holder.resources for holder in holders)):
        if resources is not None:
            yield from resources.requests or ()
            yield from resources.limits or ()


def _volumes(spec: WholeSpec, pod: str) -> Iterator[PodVolume]:
    for volume in spec.volumes or ():
        if volume.csi is not None:
            yield PodVolume(driver=volume.csi.driver)
        elif volume.persistent_volume_claim is not None:
            yield PodVolume(claim=volume.persistent_volume_claim.claim_name)
        elif volume.ephemeral is not None:
            template = volume.ephemeral.volume_claim_template
            asked = None if template is None or template.spec is None else template.spec.storage_class_name
            # The claim that the controller of ephemeral volumes makes (kubernetes pkg/controller/volume/ephemeral).
            yield PodVolume(claim=f"{pod}-{volume.name}", storage_class=asked or "")


def _claims(spec: WholeSpec, status: PodStatus | None) -> Sequence[PodClaim]:
    """The ResourceClaims of the pod, as the scheduler finds them (kubernetes dynamic-resource-allocation/resourceclaim,
    Name): one by its template is named in the status once it is made. A status without a name says that none is needed.

    kube-scheduler makes one claim more where DRA serves an extended resource, and names it when it binds the pod.
    """
    whole = status if isinstance(status, WholeStatus) else None
    if not spec.resource_claims and (whole is None or whole.extended_resource_claim_status is None):
        return ()
    made = {one.name: one.resource_claim_name for one in (whole.resource_claim_statuses or () if whole else ())}
    found = []
    for one in spec.resource_claims or ():
        claim, template = one.resource_claim_name or "", one.resource_claim_template_name or ""
        if template and one.name in made:
            claim = made[one.name] or ""
            if not claim:
                continue
        found.append(PodClaim(claim, template))
    if whole is not None and whole.extended_resource_claim_status is not None:
        found.append(PodClaim(whole.extended_resource_claim_status.resource_claim_name))
    return found
