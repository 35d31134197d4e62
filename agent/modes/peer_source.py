"""The API server as the source of the list of peers: pages of EndpointSlices, single ones, NetworkPolicies."""

from collections.abc import Sequence

from agent.wire.endpoint_slice import EndpointSlice, parse_endpoint_slice
from agent.wire.network_policy import NetworkPolicy
from kube import paths
from kube.client import Client
from kube.errors import MalformedReply
from kube.listing import ListerWatcher
from kube.objects import UNREADABLE

SERVICE_LABEL = "kubernetes.io/service-name"
PAGE = 4  # slices, of 25 KB as a rule
POLICIES = 500  # to a page; a namespace has a few


class PeerSource:
    """A Source. `client` is closed with it, and so are the others, which it needs to say who it is."""

    def __init__(self, client: Client, namespace: str, service: str, *others: Client) -> None:
        self._client = client
        self._others = others
        self._namespace = namespace
        self._slices = ListerWatcher(
            client, paths.endpoint_slices(namespace), EndpointSlice, label_selector=f"{SERVICE_LABEL}={service}"
        )
        self._policies = ListerWatcher(client, paths.network_policies(namespace), NetworkPolicy)

    def page(self, more: str) -> tuple[Sequence[EndpointSlice], str]:
        page = self._slices.page(limit=PAGE, more=more)
        return page.items, page.more

    def slice(self, name: str) -> EndpointSlice:
        path = paths.endpoint_slice(self._namespace, name)
        try:
            return parse_endpoint_slice(self._client.get(path))
        except UNREADABLE as e:
            raise MalformedReply(path=path, message=f"no EndpointSlice: {e}") from e

    def policies(self) -> Sequence[NetworkPolicy]:
        found: list[NetworkPolicy] = []
        more = ""
        while True:
            page = self._policies.page(limit=POLICIES, more=more)
            found += page.items
            more = page.more
            if not more:
                return found

    def close(self) -> None:
        """Unblocks a call under way; final."""
        self._slices.close()
        self._policies.close()
        for client in (self._client, *self._others):
            client.close()
