"""What the benchmark measured: figures, the arithmetic over rounds, the table, the file."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Figure:
    """One row. unit: `us`, `ms`, `s`, `MiB`, `m` (thousandths of a core), `pods/s`, `1/s`, `calls`, `patches`,
    `threads`, `descriptors`, `faults`, `tasks`, `files`, `nodes`, `processes` or `ratio`; note: other arms, spread,
    how."""

    name: str
    value: float
    unit: str
    note: str = ""


@dataclass(frozen=True)
class Target:
    """What a figure should reach: at most, or at least."""

    limit: float
    at_least: bool = False

    def met(self, value: float) -> bool:
        return value >= self.limit if self.at_least else value <= self.limit

    def __str__(self) -> str:
        return f"{'>=' if self.at_least else '<='} {self.limit:g}"


SIZES = (100, 420, 812, 5000)
TARGETS = {
    "filter_812_p50_ms": Target(1.0),
    "filter_812_busy_p99_ms": Target(2.0),
    "filter_5000_p50_ratio_to_go": Target(0.7),
    "filter_5000_p99_ratio_to_go": Target(0.7),
    **{f"filter_{names}_cpu_ratio_to_null": Target(0.55) for names in SIZES},
    **{f"filter_{names}_p50_ratio_to_null": Target(0.6) for names in SIZES},
    **{f"filter_{names}_p99_ratio_to_null": Target(0.9) for names in SIZES},
    **{f"filter_{names}_p99_ratio_to_go400": Target(0.6) for names in SIZES},
    **{f"gates_5_cpu_ratio_{names}": Target(1.05) for names in SIZES},
    **{f"parser_{names}_known_{part}_ratio": Target(1.15) for names in (100, 812) for part in ("p50", "cpu")},
    "lease_update_cpu_us": Target(20.0),
    "lease_return_cpu_us": Target(20.0),
    "cold_start_5000_s": Target(3.0),
    "cold_start_5000_rss_mib": Target(128.0),
    "stalled_200_filter_p99_ms": Target(50.0),
    "stalled_200_failed": Target(0),
    "status_api_4_filter_p99_ratio": Target(1.1),
    "rate_5000_p50_ms": Target(2.0),
    "rate_5000_p99_ms": Target(5.0),
    "rate_5000_calls_s": Target(500, at_least=True),
    "rate_5000_many_p99_ms": Target(40.0),
    "rate_5000_many_failed": Target(0),
    "rate_812_at_once_p99_ms": Target(100.0),  # a tenth of httpTimeout, as the next
    "rate_16000_p99_ms": Target(100.0),
    "rate_5000_beside_crowd_ms": Target(1000.0),
    "stop_silent_s": Target(1.0),
    "killed_worker_served_s": Target(1.0),
    "killed_master_free_s": Target(1.0),
    "killed_master_served_s": Target(1.0),
    "reload_100_failed": Target(0),
    "peak_8mib_names_mib": Target(160.0),
    "peak_worst_body_mib": Target(160.0),
    "kick_300_patches": Target(4),
    "kick_300_bound_s": Target(1.0),
    "outage_116_fresh_s": Target(3.0),
    "status_5000_cpu_s": Target(2.0),
    "agent_20_rss_mib": Target(32.0),
    "agent_20_cpu_m": Target(10.0),
    "agent_100_cpu_share": Target(0.1),
    "agent_start_jitter_p99_ms": Target(50.0),
    "agent_grpc_rss_mib": Target(80.0),
    "agent_cri_grpc_rss_mib": Target(80.0),
    "fault_gate_p99_s": Target(6.0),
    "fault_gate_event_p99_s": Target(1.5),
    "fault_gate_kmsg_p99_s": Target(1.5),
    "fault_gate_netlink_p99_s": Target(1.5),
    "fault_gate_inotify_p99_s": Target(1.5),
    "heal_bound_p99_s": Target(2.0),
    "heal_bound_ready_p99_s": Target(2.0),
    "dead_node_gate_p99_s": Target(10.0),
    "dead_node_lease_gate_p99_s": Target(25.0),
    "dead_kubelet_gate_p99_s": Target(25.0),
    "agent_node_rss_mib": Target(64.0),
    "agent_node_cpu_m": Target(20.0),
    "deploy_1_first_s": Target(90.0),
    "deploy_1_second_s": Target(25.0),
    **{f"deploy_{controls}_second_changed": Target(0) for controls in (1, 3)},
    **{f"deploy_{controls}_scheduler_absent_s": Target(15.0) for controls in (1, 3)},
    "deploy_3_all_absent_s": Target(0),
    **{f"deploy_{controls}_left": Target(0) for controls in (1, 3)},
    "fleet_left_ready": Target(0),
    "fleet_lease_p99_ms": Target(1000.0),  # Kubernetes' own objective for a call that writes one object
    "scheduler_1000_ratio_to_null": Target(1.0, at_least=True),
    "scheduler_1000_ratio_to_go": Target(1.1, at_least=True),
}


def quantile(values: Sequence[float], fraction: float) -> float:
    """The smallest value that at least `fraction` of all values do not exceed (nearest rank); values in any order."""
    if not values or not 0 < fraction <= 1:
        raise ValueError("a quantile needs values and a fraction in (0, 1]")
    ordered = sorted(values)
    rank = -int(-fraction * len(ordered) // 1)  # ceiling
    return ordered[max(rank, 1) - 1]


def median(values: Sequence[float]) -> float:
    """The middle value, or the mean of the two middle ones."""
    if not values:
        raise ValueError("a median needs values")
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def median_ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """The median of the ratios round by round: a slow minute of the machine hits both arms of its round alike."""
    return median([a / b for a, b in zip(ours, theirs, strict=True)])


def spread(values: Iterable[float], digits: int = 2) -> str:
    """`low..high` of the rounds."""
    found = list(values)
    return f"{min(found):.{digits}f}..{max(found):.{digits}f}"


def table(figures: Sequence[Figure]) -> str:
    """The figures as lines of text, each with its target where it has one."""
    lines = [("figure", "value", "unit", "target", "note")]
    for figure in figures:
        target = TARGETS.get(figure.name)
        wanted = "" if target is None else f"{target} {'met' if target.met(figure.value) else 'MISSED'}"
        lines.append((figure.name, f"{figure.value:.3g}", figure.unit, wanted, figure.note))
    widths = [max(len(line[column]) for line in lines) for column in range(4)]
    return "\n".join(
        f"{name:<{widths[0]}}  {value:>{widths[1]}} {unit:<{widths[2]}}  {wanted:<{widths[3]}}  {note}".rstrip()
        for name, value, unit, wanted, note in lines
    )


def save(figures: Sequence[Figure], path: Path) -> None:
    """Writes the list of `{name, value, unit, note}`; values with four significant digits. Whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [{**asdict(figure), "value": float(f"{figure.value:.4g}")} for figure in figures]
    path.with_name(f".{path.name}.new").write_text(json.dumps(rows, indent=1) + "\n")
    path.with_name(f".{path.name}.new").replace(path)
