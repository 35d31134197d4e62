"""A token of the health pod's service account, bound to that pod, asked for when it is needed and before it ends.

The API server gives it to the kubelet's certificate as long as the pod is on the node; nothing but memory keeps it.
While the last one holds it is renewed in a thread of its own: what is written meanwhile, heartbeats above all, does not
wait. Times are measured by the monotonic clock, so a step of the wall's makes no token old or young.
"""

import logging
import math
import random as random_module
import threading
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

from agent.wire.token import parse_issued, token_request
from component.text import one_line
from kube import paths
from kube.errors import CredentialsInvalid, KubeError, NotFound
from kube.objects import UNREADABLE

log = logging.getLogger(__name__)

LIFETIME_S = 3600  # as the tokens that a kubelet mounts
RENEW_AT = 0.8  # of its lifetime at the latest, as the kubelet does
RENEW_EARLIER = 0.1  # up to so much, so that agents which were started together do not ask together each time
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


def in_a_thread(renewal: Callable[[], None]) -> None:
    """Raises RuntimeError where there is none to be had. It is not waited for: looking up a name knows no deadline."""
    threading.Thread(target=renewal, name="token", daemon=True).start()


class BoundToken:
    """kube.auth.Credentials. `client` has the kubelet's certificate. Thread-safe: two threads may both ask, none waits
    for the other. `background`: runs what renews it."""

    def __init__(
        self,
        client: Requester,
        *,
        namespace: str,
        account: str,
        pod_name: str,
        pod_uid: str,
        monotonic: Callable[[], float] = time.monotonic,
        random: Callable[[], float] = random_module.random,
        background: Callable[[Callable[[], None]], None] = in_a_thread,
    ) -> None:
        self._client = client
        self._path = paths.service_account_token(namespace, account or "default")
        self._request = token_request(pod_name=pod_name, pod_uid=pod_uid, lifetime_s=LIFETIME_S)
        self._pod = f"{namespace}/{pod_name}"
        self._monotonic = monotonic
        self._random = random
        self._background = background
        self._held: _Held | None = None
        self._not_before = -math.inf
        self._renewing = threading.Lock()  # held while a renewal is under way

    def headers(self, monotonic: float) -> Mapping[str, str]:
        """Raises CredentialsInvalid where there is no token, and none can be had."""
        held = self._held
        if held is None or monotonic >= held.ends_at:
            return self._asked().headers
        if monotonic >= max(held.renew_at, self._not_before) and self._renewing.acquire(blocking=False):
            try:
                self._background(self._renew)
            except RuntimeError as e:
                self._renewing.release()
                self._failed(e)
        return (self._held or held).headers

    def refresh(self) -> None:
        """The API server has refused it: its pod is gone, or the key that signs tokens is another one."""
        self._held, self._not_before = None, -math.inf

    def _renew(self) -> None:
        try:
            self._asked()
        except CredentialsInvalid as e:
            self._failed(e)
        finally:
            self._renewing.release()

    def _failed(self, error: Exception) -> None:
        self._not_before = self._monotonic() + AGAIN_S
        extra = {"pod": self._pod, "error": one_line(error)}
        log.warning("token not renewed, the last one still holds", extra=extra)

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
        held = self._held = _Held(
            headers, began + (RENEW_AT - RENEW_EARLIER * self._random()) * lifetime_s, began + lifetime_s
        )
        return held
