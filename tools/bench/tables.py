"""python -m tools.bench.tables [--write] [FILE]: the figures of build/bench.json as the tables of docs/performance.md.

Prints them, or puts each in its place there: between `<!-- table: NAME -->` and `<!-- end -->`. A figure that was not
measured is a dash; a table of which nothing was stays as it is, so build/bench-agent.json fills its own. What stands
between the tables is written by people.
"""

import argparse
import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tools.bench.figures import SIZES, TARGETS, Figure
from tools.bench.growth import SIZES as CLUSTERS
from tools.bench.parsers import PARSERS, SHIPPED
from tools.bench.parsers import SIZES as PARSED

ROOT = Path(__file__).resolve().parents[2]
SAVED = ROOT / "build" / "bench.json"
DOCUMENT = ROOT / "docs" / "performance.md"
MISSING = "-"
PLACE = re.compile(r"(<!-- table: (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)

FLEET = [
    ("nodes that did not stay Ready", "fleet_left_ready"),
    ("Lease as the light nodes see it: p50, ms", "fleet_lease_p50_ms"),
    ("p99, ms", "fleet_lease_p99_ms"),
    ("memory of a full node, MiB", "fleet_full_mib"),
    ("of a light node, MiB", "fleet_light_mib"),
    ("requests of the API server a second", "fleet_requests_s"),
    ("processor time of all processes with nodes, thousandths of a core", "fleet_cpu_m"),
    ("of the API server", "fleet_api_server_cpu_m"),
    ("of etcd", "fleet_etcd_cpu_m"),
]

# As gunicorn's threads answered, at 84b53b0 on a machine that did other things too: counts and orders of magnitude.
BEFORE = {
    "stalled_200_failed": "48 of 207",
    "stalled_200_filter_p99_ms": "1,000",
    "status_api_4_filter_p99_ratio": "30",
    "stop_silent_s": "5.2",
    "killed_worker_served_s": "-",
    "killed_master_free_s": "-",
    "killed_master_served_s": "-",
    "reload_100_failed": "107",
    "peak_8mib_names_mib": "1,018",
    "peak_worst_body_mib": "1,465",
    "kick_300_patches": "600",
    "kick_300_bound_s": "-",
    "outage_116_fresh_s": "20",
}
UNKIND = {
    "stalled_200_failed": "calls that fail beside 200 clients that do not finish, all four kinds",
    "stalled_200_filter_p99_ms": "p99 of a call beside them, worst kind, ms",
    "status_api_4_filter_p99_ratio": "p99 of a call beside four readers of `/api/v1/nodes`, to p99 without them",
    "stop_silent_s": "SIGTERM to exit with a silent connection, s",
    "killed_worker_served_s": "worker killed: until the next verdict, 5,000 nodes, s",
    "killed_master_free_s": "master killed: until the port is free and no worker left, s",
    "killed_master_served_s": "the same, started again at once: until the next verdict, s",
    "reload_100_failed": "calls that fail over 100 reloads",
    "peak_8mib_names_mib": "memory above idle for seven bodies of 8 MiB of names at once, MiB",
    "peak_worst_body_mib": "the same for the worst of fourteen bodies, MiB",
    "kick_300_patches": "writes to the API server when 300 refused nodes heal together",
    "kick_300_bound_s": "the same with the real kube-scheduler: until 20 pods that wait for any of them are bound, s",
    "outage_116_fresh_s": "API server away for 116 s: back until an answer shows what happened meanwhile, s",
}

AGENT = (
    ("20 exec checks at 10 s and 10 HTTP checks at 1 s: memory, MiB", "agent_20_rss_mib"),
    ("their processor time, thousandths of a core, commands included", "agent_20_cpu_m"),
    ("100 HTTP checks a second: share of a core", "agent_100_cpu_share"),
    ("their memory, MiB", "agent_100_rss_mib"),
    ("p99 of how far they start from their time beside a busy loop a core, ms", "agent_start_jitter_p99_ms"),
    ("mode `kubelet`, 110 pods with 330 probes at 10 s: memory, MiB", "agent_kubelet_rss_mib"),
    ("their processor time, thousandths of a core, commands of probes included", "agent_kubelet_cpu_m"),
    ("until all 110 are Ready, s", "agent_kubelet_ready_s"),
    ("mode `kubelet` with gRPC probes, without CRI: memory, MiB", "agent_grpc_rss_mib"),
    ("the same over the CRI, 110 pods with 220 probes: memory, MiB", "agent_cri_grpc_rss_mib"),
)

FAULTS = (
    ("faults played, of all kinds", "fault_rounds"),
    ("fault to node closed, checks that look: p50, s", "fault_gate_p50_s"),
    ("the same: p99, s", "fault_gate_p99_s"),
    ("fault to a new pod refused: p99, s", "fault_refused_p99_s"),
    ("fault that the kernel tells of (its log, files, links, routes) to node closed: p50, s", "fault_gate_event_p50_s"),
    ("the same: p99, s", "fault_gate_event_p99_s"),
    ("a line of its log alone: p50, s", "fault_gate_kmsg_p50_s"),
    ("the same: p99, s", "fault_gate_kmsg_p99_s"),
    ("its news of links and routes to node closed: p50, s", "fault_gate_netlink_p50_s"),
    ("the same: p99, s", "fault_gate_netlink_p99_s"),
    ("its news of files to node closed: p50, s", "fault_gate_inotify_p50_s"),
    ("the same: p99, s", "fault_gate_inotify_p99_s"),
    ("healed to the pending pod bound, checks that look: p50, s", "heal_bound_p50_s"),
    ("the same: p99, s", "heal_bound_p99_s"),
    ("the same where the kubelet called its node ready then: p99, s", "heal_bound_ready_p99_s"),
    ("the same where Kubernetes itself let no pod in yet: p99, s", "heal_bound_unready_p99_s"),
    ("of that from the node open to the pod bound: p99, s", "heal_open_bound_p99_s"),
    ("the same by the kernel's log: p99, s", "heal_bound_event_p99_s"),
    ("dead host to node closed, by the heartbeats of agents: p99, s", "dead_node_gate_p99_s"),
    ("the same without heartbeats, by the kubelet's Lease: p99, s", "dead_node_lease_gate_p99_s"),
    ("kubelet that stands still to node closed: p99, s", "dead_kubelet_gate_p99_s"),
    ("the service with the benchmark's checks, profile `default`: memory, MiB", "agent_node_rss_mib"),
    ("its processor time, thousandths of a core", "agent_node_cpu_m"),
    ("the same with profile `fast`, every 2 s", "agent_node_fast_cpu_m"),
)

DEPLOYING = {
    "first run, s": "first_s",
    "second run, s": "second_s",
    "tasks that it changed": "second_changed",
    "a run that starts each scheduler anew, s": "change_s",
    "uninstall, s": "uninstall_s",
    "longest time without one host's scheduler, s": "scheduler_absent_s",
    "longest time without any, s": "all_absent_s",
    "longest wait of a pod meanwhile, s": "pod_waited_s",
    "files that uninstall leaves other than they were": "left",
}

Figures = Mapping[str, Figure]


def number(value: float) -> str:
    """Three significant digits, no exponent; thousands as people write them."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value else "0"


def cell(figures: Figures, name: str) -> str:
    return number(figures[name].value) if name in figures else MISSING


def cells(figures: Figures, names: Sequence[str]) -> str:
    found = [cell(figures, name) for name in names]
    return MISSING if set(found) == {MISSING} else " / ".join(found)


def wanted(figures: Figures, names: Sequence[str]) -> str:
    """The target that these figures share, and whether all that were measured meet it; they have one."""
    targets = {name: TARGETS[name] for name in names}
    measured = [targets[name].met(figures[name].value) for name in names if name in figures]
    verdict = "" if not measured else ": met" if all(measured) else ": missed"
    return f"{targets[names[0]]}{verdict}"


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(line)} |\n".replace("|  |", "| |") for line in lines)


def goals(figures: Figures) -> str:
    """What this is measured for."""
    sized = {
        "processor time of a call, to null": [f"filter_{names}_cpu_ratio_to_null" for names in SIZES],
        "p50, to null": [f"filter_{names}_p50_ratio_to_null" for names in SIZES],
        "p99, to null": [f"filter_{names}_p99_ratio_to_null" for names in SIZES],
        "p99, to Go with GOGC=400": [f"filter_{names}_p99_ratio_to_go400" for names in SIZES],
        "processor time with five gates and all remembered refusals, to one gate": [
            f"gates_5_cpu_ratio_{names}" for names in SIZES
        ],
    }
    single = {
        "p99 at 812 names beside 500 updates/s, ms": "filter_812_busy_p99_ms",
        "5,000 names over one connection without a pause: p50, ms": "rate_5000_p50_ms",
        "the same: p99, ms": "rate_5000_p99_ms",
        "the same: calls/s": "rate_5000_calls_s",
        "over eight connections beside people and Prometheus: p99, ms": "rate_5000_many_p99_ms",
        "calls and pages that fail there": "rate_5000_many_failed",
        "812 names, 64 calls at once without a pause: p99, ms": "rate_812_at_once_p99_ms",
        "16,000 names in a cluster of as many: p99, ms": "rate_16000_p99_ms",
        "5,000 names without a pause, of one that was there before 120 that ask as much: slowest, ms": (
            "rate_5000_beside_crowd_ms"
        ),
        "pods/s of the real scheduler, to null": "scheduler_1000_ratio_to_null",
        "pods/s of the real scheduler, to Go": "scheduler_1000_ratio_to_go",
        "processor time by Lease, us": "lease_update_cpu_us",
        "the same when 5,000 come within a second and the nodes of 500 were lost, us": "lease_return_cpu_us",
        "cold start, s": "cold_start_5000_s",
        "memory then, MiB": "cold_start_5000_rss_mib",
        "processor time of `readygate status` of 5,000 nodes, s": "status_5000_cpu_s",
    }
    rows = [[label, cells(figures, names), wanted(figures, names)] for label, names in sized.items()]
    rows += [[label, cell(figures, name), wanted(figures, [name])] for label, name in single.items()]
    return markdown([f"figure (at {' / '.join(f'{names:,}' for names in SIZES)} names)", "measured", "wanted"], rows)


def calls(figures: Figures) -> str:
    """One row a load: milliseconds, and ratios."""
    loads = {f"{names:,} names": f"filter_{names}" for names in SIZES}
    for label, suffix in (("busy", "_busy"), ("heartbeats", "_heartbeats")):
        for names in SIZES:
            if f"filter_{names}{suffix}_p50_ms" in figures:
                loads[f"{names:,} names, {label}"] = f"filter_{names}{suffix}"
    rows = []
    for label, prefix in loads.items():
        times = cells(figures, [f"{prefix}_{part}_ms" for part in ("p50", "p99", "cpu")])
        others = [
            cells(figures, [f"{prefix}_{part}_ratio_to_{arm}" for part in ("p50", "p99", "cpu")])
            for arm in ("null", "go")
        ]
        rows.append([label, times, *others, cell(figures, f"{prefix}_p99_ratio_to_go400")])
    return markdown(["", "p50 / p99 / cpu, ms", "to null", "to Go", "p99 to GOGC=400"], rows)


def scheduler(figures: Figures) -> str:
    rows = [
        [arm, cell(figures, f"scheduler_1000_{name}_pods_s"), cell(figures, f"scheduler_1000_ratio_to_{name}")]
        for arm, name in (("no extender", "none"), ("null", "null"), ("Go", "go"))
    ]
    rows.append(["readygate", cell(figures, "scheduler_1000_readygate_pods_s"), ""])
    return markdown(["extender", "pods/s", "readygate's to it"], rows)


def costs(figures: Figures) -> str:
    rows = [
        [label, cell(figures, name), cell(figures, ratio)]
        for label, name, ratio in (
            ("processor time by pod update, us", "pod_update_cpu_us", "pod_update_cpu_ratio_to_go"),
            ("processor time by Lease, us", "lease_update_cpu_us", "lease_update_cpu_ratio_to_go"),
            ("processor time by scheduled pod, ms", "scheduler_1000_cpu_ms", "scheduler_1000_cpu_ratio_to_go"),
            ("cold start to `/readyz` 200, s", "cold_start_5000_s", "cold_start_5000_ratio_to_go"),
            ("memory then, MiB", "cold_start_5000_rss_mib", ""),
        )
    ]
    return markdown(["", "readygate", "to Go"], rows)


def growth(figures: Figures) -> str:
    columns = {
        "cold start, s": ["cold_start_s"],
        "memory, MiB": ["memory_mib"],
        "812 names, p50 / p99 / cpu, ms": ["filter_812_p50_ms", "filter_812_p99_ms", "filter_812_cpu_ms"],
        "by pod update, us": ["pod_update_cpu_us"],
        "by Lease, us": ["lease_update_cpu_us"],
    }
    rows = [
        [f"{nodes:,}", *(cells(figures, [f"growth_{nodes}_{name}" for name in names]) for names in columns.values())]
        for nodes in CLUSTERS
    ]
    return markdown(["nodes", *columns], rows)


def layers(figures: Figures) -> str:
    rows = [
        [label, *(cell(figures, f"layer_{names}_{name}_ms") for names in (420, 812)), what]
        for label, name, what in (
            ("server", "server", "client, sockets, HTTP parser: the event loop with nothing behind it"),
            ("frame", "frame", "exemption, staleness, counters, what is remembered"),
            (
                "decode",
                "decode",
                "request bytes to what counts of a Pod, by msgspec, and to names as they are spelled",
            ),
            ("look-up", "look_up", "one look-up per name; the names are fresh bytes, so each is hashed first"),
            ("encode", "encode", "the reply"),
            ("rest", "rest", "the larger reply on its way, caches that others have emptied"),
            ("**whole**", "whole", "as the client sees it"),
        )
    ]
    return markdown(["layer", "420 names", "812 names", "what it is"], rows)


def parsers(figures: Figures) -> str:
    rows = []
    for name, what in PARSERS.items():
        names = {part: [f"parser_{size}_{name}_{part}_ratio" for size in PARSED] for part in ("p50", "cpu")}
        wants = wanted(figures, [*names["p50"], *names["cpu"]]) if name == SHIPPED else ""
        rows.append([what, cells(figures, names["p50"]), cells(figures, names["cpu"]), wants])
    header = f"to the first, at {' / '.join(map(str, PARSED))} names"
    return markdown([header, "p50", "processor time", "wanted"], rows)


def unkind(figures: Figures) -> str:
    rows = [[label, BEFORE[name], cell(figures, name), wanted(figures, [name])] for name, label in UNKIND.items()]
    return markdown(["", "before", "now", "wanted"], rows)


def agent(figures: Figures) -> str:
    return listed(figures, AGENT)


def faults(figures: Figures) -> str:
    return listed(figures, FAULTS)


def fleet(figures: Figures) -> str:
    return listed(figures, FLEET)


def listed(figures: Figures, labels: Sequence[tuple[str, str]]) -> str:
    """One row a figure, with what is wanted of it."""
    rows = [[label, cell(figures, name), wanted(figures, [name]) if name in TARGETS else ""] for label, name in labels]
    return markdown(["", "measured", "wanted"], rows)


def deploying(figures: Figures) -> str:
    """One row a figure, with one control plane and with three."""
    rows = []
    for label, name in DEPLOYING.items():
        names = [f"deploy_{controls}_{name}" for controls in (1, 3)]
        wants = [
            f"{of}: {wanted(figures, [each])}"
            for of, each in zip(("one", "three"), names, strict=True)
            if each in TARGETS
        ]
        rows.append([label, *(cell(figures, each) for each in names), "; ".join(wants)])
    return markdown(["", "one control plane", "three", "wanted"], rows)


def differential(figures: Figures) -> str:
    prefix, suffix = "differential_", "_per_s"
    names = sorted(name for name in figures if name.startswith(prefix))
    rows = [[name.removeprefix(prefix).removesuffix(suffix), cell(figures, name)] for name in names]
    return markdown(["target", "histories by second of processor time"], rows)


TABLES: dict[str, Callable[[Figures], str]] = {
    "goals": goals,
    "calls": calls,
    "scheduler": scheduler,
    "costs": costs,
    "growth": growth,
    "layers": layers,
    "parsers": parsers,
    "unkind": unkind,
    "agent": agent,
    "faults": faults,
    "deploying": deploying,
    "fleet": fleet,
    "differential": differential,
}


def filled(document: str, figures: Figures) -> str:
    """The document with each table anew of which something was measured. Raises KeyError for a place whose table nobody
    knows."""

    def anew(place: re.Match[str]) -> str:
        made = TABLES[place[2]](figures)
        return place[0] if made == TABLES[place[2]]({}) else f"{place[1]}\n{made}\n{place[3]}"

    return PLACE.sub(anew, document)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.bench.tables", description=__doc__)
    parser.add_argument("file", type=Path, nargs="?", default=SAVED, help="default: build/bench.json")
    parser.add_argument("--write", action="store_true", help="into docs/performance.md")
    arguments = parser.parse_args()
    figures = {row["name"]: Figure(**row) for row in json.loads(arguments.file.read_text())}
    if arguments.write:
        DOCUMENT.write_text(filled(DOCUMENT.read_text(), figures))
    else:
        print("\n".join(f"{name}\n\n{make(figures)}" for name, make in TABLES.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
