"""NetworkPolicy (networking.k8s.io/v1), as far as it decides on packets between pods of one namespace. Pure."""

import msgspec

from kube.objects import BareMeta


class LabelRequirement(msgspec.Struct, frozen=True, gc=False):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] | None = None


class LabelSelector(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    match_labels: dict[str, str] | None = None
    match_expressions: tuple[LabelRequirement, ...] | None = None


class PolicyPeer(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    pod_selector: LabelSelector | None = None
    namespace_selector: LabelSelector | None = None
    ip_block: dict[str, object] | None = None


class PolicyPort(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    port: int | str | None = None
    protocol: str = "TCP"
    end_port: int | None = None


class PolicyRule(msgspec.Struct, frozen=True, gc=False):
    """Of either direction: an ingress rule has `from`, an egress rule has `to`."""

    ports: tuple[PolicyPort, ...] | None = None
    from_: tuple[PolicyPeer, ...] | None = msgspec.field(name="from", default=None)
    to: tuple[PolicyPeer, ...] | None = None

    @property
    def peers(self) -> tuple[PolicyPeer, ...]:
        """Empty: all there are."""
        return self.from_ or self.to or ()


class PolicySpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    pod_selector: LabelSelector = LabelSelector()
    policy_types: tuple[str, ...] | None = None
    ingress: tuple[PolicyRule, ...] | None = None
    egress: tuple[PolicyRule, ...] | None = None


class NetworkPolicy(msgspec.Struct, frozen=True, gc=False):
    metadata: BareMeta = BareMeta()
    spec: PolicySpec = PolicySpec()
