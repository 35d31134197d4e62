"""When a cluster that has just started may be used."""

import time
from collections.abc import Sequence
from datetime import datetime

from tools.testbed.hosts.errors import HostsError
from tools.testbed.shared.api import Api, ApiError, Object, condition

LIMIT_S = 240.0
_EVERY_S = 0.1
# Set by the controller manager on a node that is not Ready or does not answer.
_LIFECYCLE = "node.kubernetes.io/"
_ACCOUNT = "/api/v1/namespaces/default/serviceaccounts/default"


def wait(api: Api, names: Sequence[str], since: float) -> None:
    """Returns when each node is Ready, and pods can be created. Raises HostsError with what is missing after LIMIT_S.

    since: seconds since 1970. What a node has reported before counts for nothing: a snapshot contains such reports.
    """
    deadline = time.monotonic() + LIMIT_S
    while missing := _missing(api, names, since):
        if time.monotonic() > deadline:
            raise HostsError(f"the cluster is not ready after {LIMIT_S:.0f} s: {missing}")
        time.sleep(_EVERY_S)


def _missing(api: Api, names: Sequence[str], since: float) -> str:
    """ "" when nothing is."""
    try:
        if lack := unready(api.items("/api/v1/nodes"), names, since):
            return lack
        # A pod can only be created once the controller manager has made the namespace's service account.
        api.get(_ACCOUNT)
    except ApiError as e:  # also for a moment after the API server has begun to answer
        return str(e)
    return ""


def unready(nodes: Sequence[Object], names: Sequence[str], since: float) -> str:
    """Pure. The first of `names` that is not Ready or has a lifecycle taint, with the reason; "" when none is left."""
    by_name = {node["metadata"]["name"]: node for node in nodes}
    for name in names:
        if name not in by_name:
            return f"{name} has not joined"
        ready = condition(by_name[name], "Ready")
        if ready.get("status") != "True":
            return f"{name} is not Ready: {ready.get('message', 'no report')}"
        reported = datetime.fromisoformat(ready["lastHeartbeatTime"]).timestamp()
        if reported < int(since):
            return f"{name} has not reported since the start"
        taints = [taint["key"] for taint in by_name[name]["spec"].get("taints") or []]
        if lifecycle := [taint for taint in taints if taint.startswith(_LIFECYCLE)]:
            return f"{name} is tainted: {', '.join(lifecycle)}"
    return ""
