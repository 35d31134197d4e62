"""Pure: a Lease of the cluster that allows one run of the playbooks at a time. Its holder renews it while it runs.

A holder loses it if its process is known to be dead, or if it has not renewed it for the Lease's duration (SILENT_S).
Wall clock times are of the host.
"""

import calendar
import time

NAME = "readygate-playbooks"
NAMESPACE = "kube-system"
SILENT_S = 600
FREE, OWN, HELD = "free", "own", "held"


def state_of(lease: dict, holder: str, wall: float, dead: str = "") -> str:
    """FREE, OWN, or HELD by another run. lease: {} if there is none. dead: a holder whose process has ended."""
    by = lease.get("spec", {}).get("holderIdentity") or ""
    if by == holder:
        return OWN
    return FREE if not by or by == dead or wall - renewed(lease) > silent_s(lease) else HELD


def silent_s(lease: dict) -> int:
    return lease.get("spec", {}).get("leaseDurationSeconds") or SILENT_S


def taken(lease: dict, holder: str, wall: float, seconds: int = SILENT_S) -> dict:
    """The Lease as its holder writes it. It has the resource version of the earlier one, so only one of two runs wins.

    seconds: how long it holds without a renewal.
    """
    spec, is_own = lease.get("spec", {}), lease.get("spec", {}).get("holderIdentity") == holder
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": dict(lease.get("metadata", {}), name=NAME, namespace=NAMESPACE),
        "spec": {
            "holderIdentity": holder,
            "leaseDurationSeconds": seconds,
            "acquireTime": spec.get("acquireTime", "") if is_own else stamp(wall),
            "renewTime": stamp(wall),
        },
    }


def explained(lease: dict, wall: float) -> str:
    """The run that holds it, and what to do, for operators."""
    spec = lease["spec"]
    return (
        f"another run has not ended: that of {spec['holderIdentity']}, since {spec.get('acquireTime', '?')[:19]}Z, "
        f"last seen {wall - renewed(lease):.0f} s ago. Wait for its end. If it is dead: "
        f"-e readygate_take_over=true, or wait until it was last seen {silent_s(lease)} s ago"
    )


def renewed(lease: dict) -> float:
    """The time of the last renewal in seconds since the epoch; 0 if never."""
    text = lease.get("spec", {}).get("renewTime") or ""
    return float(calendar.timegm(time.strptime(text[:19], "%Y-%m-%dT%H:%M:%S"))) if text else 0.0


def stamp(wall: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime(wall))
