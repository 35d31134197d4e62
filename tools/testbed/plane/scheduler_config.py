"""KubeSchedulerConfiguration texts, with and without the extender."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path


def extender(
    url: str,
    *,
    mode: str = "protect",
    node_cache_capable: bool = True,
    timeout: str = "1s",
    tls: Mapping[str, str] | None = None,
    preempt: bool = True,
    weight: int = 0,
    managed_resources: Sequence[str] = (),
) -> dict[str, object]:
    """One entry of `extenders`, as the playbooks write it. mode: `protect` (a dead extender never stops scheduling) or
    `enforce`. tls: files. weight: of its scores, 0 = it is not asked for any. managed_resources: only pods that ask for
    one of them are sent, none = all pods."""
    return {
        "urlPrefix": url,
        "filterVerb": "filter",
        **({"preemptVerb": "preempt"} if preempt else {}),
        **({"prioritizeVerb": "prioritize", "weight": weight} if weight else {}),
        **({"managedResources": [{"name": name} for name in managed_resources]} if managed_resources else {}),
        "nodeCacheCapable": node_cache_capable,
        "httpTimeout": timeout,
        "ignorable": {"protect": True, "enforce": False}[mode],
        **({"enableHTTPS": True, "tlsConfig": dict(tls)} if tls else {}),
    }


def write(
    path: Path,
    *,
    kubeconfig: Path,
    extenders: list[dict[str, object]] | None = None,
    queries_per_s: float = 50,
    burst: int = 100,
    profiles: Sequence[str] = (),
    elected: bool = False,
    lease_s: int = 15,
) -> Path:
    """JSON is YAML. The defaults of the client's limits are those of kube-scheduler. profiles: names. elected: it leads
    once it has the Lease, as where there are several. lease_s: how long the Lease of one that was killed holds; the
    other two times of the election in kube-scheduler's own proportion to it."""
    election = {"leaderElect": elected}
    if elected:
        times = {"leaseDuration": lease_s, "renewDeadline": lease_s * 2 / 3, "retryPeriod": lease_s * 2 / 15}
        election |= {key: f"{seconds:.3f}s" for key, seconds in times.items()}
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(kubeconfig), "qps": queries_per_s, "burst": burst},
        "leaderElection": election,
        "extenders": extenders or [],
        **({"profiles": [{"schedulerName": name} for name in profiles]} if profiles else {}),
    }
    path.write_text(json.dumps(document, indent=1))
    return path
