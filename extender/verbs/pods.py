"""The part of a request's pod that exemptions, gates and `readygate why` read. Nothing else of the pod is decoded.

Containers, volumes and claims are decoded only if a gate selects pods by resources, devices or volumes.
"""

from collections.abc import Iterator

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
NO_STATUS = WholeStatus()


def mask_of(classes: Classes, pod: Pod | None) -> int:
    """Returns the mask of the gates that apply to the pod."""
    return classes.all if classes.everybody else classes.mask_of(seen_of(pod or NOBODY))


def seen_of(pod: Pod) -> PodSeen:
    meta, spec = pod.metadata or NO_META, pod.spec or NO_SPEC
    if not isinstance(spec, WholeSpec):
        return PodSeen(meta.namespace, meta.labels or {}, spec.priority or 0, spec.scheduler_name)
    status = pod.status if isinstance(pod.status, WholeStatus) else NO_STATUS
    claims = spec.resource_claims or status.extended_resource_claim_status is not None
    return PodSeen(
        meta.namespace,
        meta.labels or {},
        spec.priority or 0,
        spec.scheduler_name,
        _resources(spec),
        tuple(_volumes(spec, meta.name)) if spec.volumes else (),
        tuple(_claims(spec, status)) if claims else (),
    )


def _resources(spec: WholeSpec) -> frozenset[str]:
    found: set[str] = set()
    holders = (*(spec.containers or ()), *(spec.init_containers or ()))
    for resources in (spec.resources, *(holder.resources for holder in holders)):
        if resources is not None:
            found.update(resources.requests or (), resources.limits or ())
    return frozenset(found)


def _volumes(spec: WholeSpec, pod: str) -> Iterator[PodVolume]:
    for volume in spec.volumes or ():
        if volume.csi is not None:
            yield PodVolume(driver=volume.csi.driver)
        elif volume.persistent_volume_claim is not None:
            yield PodVolume(claim=volume.persistent_volume_claim.claim_name)
        elif volume.ephemeral is not None:
            template = volume.ephemeral.volume_claim_template
            asked = None if template is None or template.spec is None else template.spec.storage_class_name
            # The claim that the controller of ephemeral volumes creates (kubernetes pkg/controller/volume/ephemeral).
            yield PodVolume(claim=f"{pod}-{volume.name}", storage_class=asked or "")


def _claims(spec: WholeSpec, status: WholeStatus) -> Iterator[PodClaim]:
    """Returns the ResourceClaims of the pod, found as kube-scheduler finds them (kubernetes
    dynamic-resource-allocation/resourceclaim, Name): the status names a claim from a template once the claim exists. A
    status without a name means that no claim is needed.

    kube-scheduler creates one more claim if DRA serves an extended resource, and names it when it binds the pod.
    """
    made = {one.name: one.resource_claim_name or "" for one in status.resource_claim_statuses or ()}
    for one in spec.resource_claims or ():
        claim, template = one.resource_claim_name or "", one.resource_claim_template_name or ""
        if template and one.name in made:
            claim = made[one.name]
            if not claim:
                continue
        yield PodClaim(claim, template)
    if status.extended_resource_claim_status is not None:
        yield PodClaim(status.extended_resource_claim_status.resource_claim_name)
