"""EndpointSlice (discovery.k8s.io/v1): which addresses are behind a Service, on which nodes, in which zones. Pure."""

import msgspec

from kube.objects import BareMeta


class EndpointConditions(msgspec.Struct, frozen=True, gc=False):
    """ready None: as true, by the API's own words."""

    ready: bool | None = None
    terminating: bool | None = None


class Endpoint(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    addresses: tuple[str, ...] = ()
    conditions: EndpointConditions = EndpointConditions()
    node_name: str | None = None
    zone: str | None = None

    @property
    def is_ready(self) -> bool:
        return self.conditions.ready is not False and not self.conditions.terminating


class EndpointSlice(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    metadata: BareMeta = BareMeta()
    address_type: str = ""
    endpoints: tuple[Endpoint, ...] | None = None


_decoder = msgspec.json.Decoder(EndpointSlice)


def parse_endpoint_slice(raw: bytes) -> EndpointSlice:
    """Raises one of kube.objects.UNREADABLE."""
    return _decoder.decode(raw)
