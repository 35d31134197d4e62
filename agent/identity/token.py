"""A token of the health pod's service account, bound to that pod, asked for when it is needed and before it ends.

The API server gives it to the kubelet's certificate as long as the pod is on the node; nothing but memory keeps it.
Times are measured by the monotonic clock, so a step of the wall's makes no token old or young.
"""

import logging
import math
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

from agent.wire.token import parse_issued, token_request
from kube import paths
from kube.errors import CredentialsInvalid, KubeError, NotFound
from kube.objects import UNREADABLE

log = logging.getLogger(__name__)

LIFETIME_S = 3600  # as the tokens that a kubelet mounts
RENEW_AT = 0.8  # of its lifetime, as the kubelet does
LIFETIME_MIN_S = 60.0  # a reply that says less, or nothing, is taken to mean this: it is asked for again soon
AGAIN_S = 10.0  # between tries while the last token still holds
DEADLINE_S = 5.0


class Requester(Protocol):
    """The part of kube.client.Client that is used."""

    def create(self, path: str, body: bytes, *, deadline_s: float | None = None) -> bytes: ...


class _Held(NamedTuple):
    headers: Mapping[str, str]
    renew_at: float  # monotonic, as the next
    ends_at: float


class BoundToken:
    """kube.auth.Credentials. `client` has the kubelet's certificate. Thread-safe: two threads may both ask, none waits
    for the other."""

    def __init__(
        self,
        client: Requester,
        *,
        namespace: str,
        account: str,
        pod_name: str,
        pod_uid: str,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._path = paths.service_account_token(namespace, account or "default")
        self._request = token_request(pod_name=pod_name, pod_uid=pod_uid, lifetime_s=LIFETIME_S)
        self._pod = f"{namespace}/{pod_name}"
        self._monotonic = monotonic
        self._held: _Held | None = None
        self._not_before = -math.inf

    def headers(self, monotonic: float) -> Mapping[str, str]:
        """Raises CredentialsInvalid where there is no token, and none can be had."""
        held = self._held
        if held is not None and (
            monotonic < held.renew_at or (monotonic < self._not_before and monotonic < held.ends_at)
        ):
            return held.headers
        try:
            return self._asked().headers
        except CredentialsInvalid as e:
            if held is None or self._monotonic() >= held.ends_at:
                raise
            self._not_before = self._monotonic() + AGAIN_S
            log.warning("token not renewed, the last one still holds", extra={"pod": self._pod, "error": str(e)})
            return held.headers

    def refresh(self) -> None:
        """The API server has refused it: its pod is gone, or the key that signs tokens is another one."""
        self._held, self._not_before = None, -math.inf

    def _asked(self) -> _Held:
        began = self._monotonic()
        try:
            issued = parse_issued(self._client.create(self._path, self._request, deadline_s=DEADLINE_S))
        except NotFound as e:
            raise CredentialsInvalid(f"no token for the health pod {self._pod}: it is gone: {e}") from e
        except (KubeError, *UNREADABLE) as e:
            raise CredentialsInvalid(
                f"no token for the health pod {self._pod}: {e}; the API server gives it to the node's own certificate, "
                "for a pod that mounts a service account's token"
            ) from e
        lifetime_s = max(issued.lifetime_s, LIFETIME_MIN_S)
        headers = {"Authorization": f"Bearer {issued.token}"}
        held = self._held = _Held(headers, began + RENEW_AT * lifetime_s, began + lifetime_s)
        return held
