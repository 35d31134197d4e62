"""Pure: one run of the playbooks at a time, by a Lease of the cluster. Its holder renews it while it runs.

A holder that is known to be dead, or was not heard of for as long as it has said (SILENT_S), holds it no more. Wall
clock times are of the host.
"""

import calendar
import time

NAME = "readygate-playbooks"
NAMESPACE = "kube-system"
SILENT_S = 600
FREE, OURS, HELD = "free", "ours", "held"


def standing(lease: dict, holder: str, wall: float, dead: str = "") -> str:
    """FREE, OURS or HELD by another. lease: {} where there is none. dead: a holder that is known to be no more."""
    by = lease.get("spec", {}).get("holderIdentity") or ""
    if by == holder:
        return OURS
    return FREE if not by or by == dead or wall - renewed(lease) > silent_s(lease) else HELD


def silent_s(lease: dict) -> int:
    return lease.get("spec", {}).get("leaseDurationSeconds") or SILENT_S


def taken(lease: dict, holder: str, wall: float, seconds: int = SILENT_S) -> dict:
    """The Lease as its holder writes it; an earlier one keeps its version, so that of two who try at once one wins.
    seconds: for how long nothing may be heard of it."""
    spec, ours = lease.get("spec", {}), lease.get("spec", {}).get("holderIdentity") == holder
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": dict(lease.get("metadata", {}), name=NAME, namespace=NAMESPACE),
        "spec": {
            "holderIdentity": holder,
            "leaseDurationSeconds": seconds,
            "acquireTime": spec.get("acquireTime", "") if ours else stamp(wall),
            "renewTime": stamp(wall),
        },
    }


def told(lease: dict, wall: float) -> str:
    """Who holds it, for people."""
    spec = lease["spec"]
    return (
        f"another run has not ended: that of {spec['holderIdentity']}, since {spec.get('acquireTime', '?')[:19]}Z, "
        f"last heard of {wall - renewed(lease):.0f} s ago. Wait for its end. If it is dead: "
        f"-e readygate_take_over=true, or wait until nothing was heard of it for {silent_s(lease)} s"
    )


def renewed(lease: dict) -> float:
    """Seconds since the epoch; 0 if never."""
    text = lease.get("spec", {}).get("renewTime") or ""
    return float(calendar.timegm(time.strptime(text[:19], "%Y-%m-%dT%H:%M:%S"))) if text else 0.0


def stamp(wall: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime(wall))
