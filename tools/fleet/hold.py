"""Waits until a fleet is Ready, and then sees for a while that it stays so: the figures of `python -m tools.fleet`."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

from tools.bench.figures import Figure
from tools.bench.processes import cpu_s, memory
from tools.fleet import watching
from tools.fleet.fleet import Fleet, State
from tools.kit.waiting import wait_until
from tools.testbed.plane.plane import API_SERVER, ETCD, Plane
from tools.testbed.shared import bare

EVERY_S = 15.0  # one list of all nodes, one line of progress
LIMIT_S = 600.0  # beyond the ramp
PROBE = {"exec": {"command": ["virtual"]}, "periodSeconds": 10}
WRITERS = 8


def ready_within(
    plane: Plane, fleet: Fleet, *, pods: int, namespace: str, began: float, say: Callable[[str], None]
) -> float:
    """Makes the pods, and waits for all nodes and pods to be Ready; the seconds since `began` (monotonic) until the
    nodes were. Raises ProcessError, AssertionError."""
    tell = _Seldom(say)
    limit_s = fleet.size.ramp_s + LIMIT_S
    fleet.wait_ready(timeout_s=limit_s, progress=lambda ready: tell(f"{ready} of {len(fleet.names)} are registered"))

    def all_ready() -> bool:
        fleet.check()
        found = watching.nodes(plane.api, fleet.names)
        tell(f"{found.ready} of {len(fleet.names)} are Ready")
        return found.ready == len(fleet.names)

    wait_until(all_ready, "all nodes are Ready", timeout_s=LIMIT_S, every_s=2.0)
    ready_s = time.monotonic() - began
    wanted = pods * len(fleet.full)
    if wanted:
        spec = bare.pod_spec(["virtual"])
        spec["containers"][0]["readinessProbe"] = PROBE

        def add(node: str) -> None:
            for number in range(pods):
                body = {"metadata": {"name": f"{node}-{number}"}, "spec": {**spec, "nodeName": node}}
                plane.api.create(f"/api/v1/namespaces/{namespace}/pods", body)

        with ThreadPoolExecutor(WRITERS) as pool:
            list(pool.map(add, fleet.full))

        def all_run() -> bool:
            found = watching.ready_pods(plane.api, namespace)
            tell(f"{found} of {wanted} pods are Ready")
            return found == wanted

        wait_until(all_run, f"{wanted} pods are Ready", timeout_s=LIMIT_S, every_s=2.0)
    return ready_s


def hold(plane: Plane, fleet: Fleet, *, seconds: float, ready_s: float, say: Callable[[str], None]) -> list[Figure]:
    """Raises ProcessError where a process of nodes or the control plane ended."""
    began_text, began = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}", time.monotonic()
    servers = {name: plane.run.ledger.processes[name].pid for name in (API_SERVER, ETCD)}
    spent = {name: cpu_s(pid) for name, pid in servers.items()}
    first, before = fleet.state(), watching.served(plane.api.text("/metrics"))
    least = len(fleet.names)
    earlier, at = first, began
    while (left_s := began + seconds - time.monotonic()) > 0:
        time.sleep(min(EVERY_S, left_s))
        plane.check()
        fleet.check()
        found, now, monotonic = watching.nodes(plane.api, fleet.names), fleet.state(), time.monotonic()
        least = min(least, found.ready)
        counts = now.counts.since(earlier.counts)
        requests_s = counts.requests.total() / (monotonic - at)
        lease_ms, failed = 1000 * counts.lease.quantile_s(0.99), counts.failures.total()
        say(
            f"{found.ready} of {len(fleet.names)} are Ready; light nodes: {requests_s:.0f} requests/s, Lease p99 "
            f"{lease_ms:.0f} ms, {failed} failed"
        )
        earlier, at = now, monotonic
    took_s = time.monotonic() - began
    last, after = fleet.state(), watching.served(plane.api.text("/metrics"))
    left = watching.nodes(plane.api, fleet.names).left_since(began_text)
    if left:
        say(f"not Ready all the time: {', '.join(left[:10])}{' ...' if len(left) > 10 else ''}")
    cores = {name: 1000 * (cpu_s(pid) - spent[name]) / took_s for name, pid in servers.items()}
    rss = {name: memory(pid).rss_mib for name, pid in servers.items()}
    return [
        Figure("fleet_left_ready", max(len(left), len(fleet.names) - least), "nodes", f"in {took_s:.0f} s"),
        Figure("fleet_ready_s", ready_s, "s", f"{len(fleet.names)} nodes, registered over {fleet.size.ramp_s:.0f} s"),
        *_of_nodes(fleet, first, last, took_s),
        *_of_server(after.since(before), took_s),
        Figure("fleet_api_server_cpu_m", cores[API_SERVER], "m", f"{rss[API_SERVER]:.0f} MiB"),
        Figure("fleet_etcd_cpu_m", cores[ETCD], "m", f"{rss[ETCD]:.0f} MiB"),
    ]


def _of_nodes(fleet: Fleet, first: State, last: State, took_s: float) -> list[Figure]:
    counts = last.counts.since(first.counts)
    failures = ", ".join(f"{cause} {n}" for cause, n in sorted(counts.failures.items()) if n) or "none failed"
    late_ms = 1000 * counts.late.quantile_s(0.99)
    lease = [1000 * counts.lease.quantile_s(fraction) for fraction in (0.5, 0.99, 1.0)]
    what = f"{counts.lease.total()} renewals of light nodes"
    return [
        Figure("fleet_lease_p50_ms", lease[0], "ms", what),
        Figure("fleet_lease_p99_ms", lease[1], "ms", f"slowest {lease[2]:.0f} ms; {failures}"),
        Figure("fleet_late_p99_ms", late_ms, "ms", "how much later than wanted a turn of a light node began"),
        Figure("fleet_full_mib", last.full_mib, "MiB", f"of one of {len(fleet.full)} full nodes"),
        Figure("fleet_light_mib", last.light_mib, "MiB", f"of one of {len(fleet.light)} light nodes"),
        Figure("fleet_processes", fleet.processes, "processes", f"{last.threads} threads"),
        Figure("fleet_cpu_m", 1000 * (last.cpu_s - first.cpu_s) / took_s, "m", "of all processes with nodes"),
    ]


def _of_server(served: watching.Served, took_s: float) -> list[Figure]:
    most = ", ".join(f"{what} {n / took_s:.0f}" for what, n in served.requests.most_common(4))
    p99_ms = 1000 * watching.bound_s(served.renewals, 0.99)
    return [
        Figure("fleet_requests_s", served.requests.total() / took_s, "1/s", f"of the API server; {most}"),
        Figure("fleet_lease_server_p99_ms", p99_ms, "ms", "the same by the API server's histogram, of all nodes"),
    ]


class _Seldom:
    """Says a line, and no other one for a while."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say, self._due = say, 0.0

    def __call__(self, text: str) -> None:
        if time.monotonic() >= self._due:
            self._due = time.monotonic() + EVERY_S
            self._say(text)
