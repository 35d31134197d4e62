"""From rounds to figures, and to the table of docs/checks.md. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from tools.bench.faults.plan import AVERAGED, KUBELET, NEWS
from tools.bench.faults.rounds import Round
from tools.bench.figures import Figure, quantile

PROFILE = "fast"  # that the figures of seconds without a profile's name are of
USUAL = "default"  # that those of cost are of


def figures(
    rounds: Sequence[Round],
    dead_s: Sequence[float],
    costs: Mapping[str, tuple[float, float]],
    unheard_s: Sequence[float] = (),
) -> list[Figure]:
    """Of the whole run first, then of each check. costs: MiB and thousandths of a core, by profile. unheard_s: of dead
    hosts whose agents nobody hears."""
    good = [each for each in rounds if each.whole and each.profile == PROFILE]
    polled = [each for each in good if each.fault not in (*NEWS, *AVERAGED) and each.check != KUBELET]
    events = [each for each in good if each.fault in NEWS]
    kmsg, netlink, inotify = (
        [each for each in good if NEWS.get(each.fault) == word] for word in ("kmsg", "netlink", "inotify")
    )
    back = [*polled, *netlink, *inotify]
    kubelets = [_of(each.closed_s) for each in good if each.check == KUBELET]
    rows = [
        Figure(
            "fault_rounds",
            len(rounds),
            "faults",
            f"{sum(not each.whole for each in rounds)} not to their end; the kernel's log counts on each host",
        ),
        *_both("fault_gate", [_of(each.closed_s) for each in polled], "fault to node closed, polled"),
        *_both("fault_refused", [_of(each.refused_s) for each in polled], "fault to a pod refused, polled"),
        *_both("fault_gate_event", [_of(each.closed_s) for each in events], "by what the kernel tells, all of it"),
        *_both("fault_gate_kmsg", [_of(each.closed_s) for each in kmsg], "by the kernel's log"),
        *_both("fault_gate_netlink", [_of(each.closed_s) for each in netlink], "by the kernel's news of links, routes"),
        *_both("fault_gate_inotify", [_of(each.closed_s) for each in inotify], "by the kernel's news of files"),
        *_both(
            "heal_bound",
            [_of(each.bound_s) for each in back],
            "healed to the pending pod bound, but for the log's",
        ),
        *_both(
            "heal_bound_ready",
            [_of(each.bound_s) for each in back if not each.by_kubelet],
            "the same where the kubelet calls its node ready when it is healed, and after it",
        ),
        *_both(
            "heal_bound_unready",
            [_of(each.bound_s) for each in back if each.by_kubelet],
            "the same where it does not: Kubernetes itself lets no pod in until it does",
        ),
        *_both(
            "heal_open_bound",
            [_of(each.bound_s) - _of(each.opened_s) for each in back],
            "of that from the node open to the pod bound: kube-scheduler's part",
        ),
        *_both("heal_bound_event", [_of(each.bound_s) for each in kmsg], "the same by the kernel's log"),
        *_both("dead_node_gate", dead_s, "host without a network to node closed, by the heartbeats of agents"),
        *_both("dead_node_lease_gate", unheard_s, "the same by the kubelet's Lease"),
        *_both("dead_kubelet_gate", kubelets, "kubelet that stands still to node closed"),
    ]
    for profile, (rss_mib, cpu_m) in costs.items():
        prefix = "agent_node" if profile == USUAL else f"agent_node_{profile}"
        rows += [
            Figure(f"{prefix}_rss_mib", rss_mib, "MiB", f"of the service and what its checks start, profile {profile}"),
            Figure(f"{prefix}_cpu_m", cpu_m, "m", "of the same"),
        ]
    for profile, check, name in sorted({(each.profile, each.check, each.fault) for each in rounds}):
        mine = [each for each in rounds if (each.profile, each.fault) == (profile, name)]
        whole = [each for each in mine if each.whole]
        prefix = f"fault_{profile}_{check}_{name}".replace("-", "_")
        rows.append(Figure(f"{prefix}_rounds", len(mine), "faults", f"{len(mine) - len(whole)} not to their end"))
        rows += _both(f"{prefix}_gate", [_of(each.closed_s) for each in whole])
        rows += _both(f"{prefix}_bound", [_of(each.bound_s) for each in whole])
    return rows


def _both(name: str, values: Sequence[float], note: str = "") -> list[Figure]:
    if not values:
        return []
    note = f"{note}; " if note else ""
    return [
        Figure(f"{name}_p50_s", quantile(values, 0.5), "s", f"{note}{len(values)} samples"),
        Figure(f"{name}_p99_s", quantile(values, 0.99), "s", f"{note}{len(values)} samples, worst {max(values):.2f}"),
    ]


def _of(value: float | None) -> float:
    assert value is not None
    return value


def tried(figures: Sequence[Mapping[str, Any]]) -> list[str]:
    """With what the names of figures begin that are of one fault in one profile."""
    names = [row["name"] for row in figures]
    return [name.removesuffix("rounds") for name in names if name.endswith("_rounds") and name != "fault_rounds"]


def table(values: Mapping[str, float], faults: Mapping[str, tuple[str, str]], profile: str = PROFILE) -> str:
    """Markdown, one row a fault that was tried. `values`: figures by name; `faults`: name to (check, what breaks)."""
    lines = ["| check | fault | tried | closed, s: p50, p99 | pod bound after, s: p50, p99 |", "|---|---|---|---|---|"]
    for name, (check, what) in sorted(faults.items(), key=lambda item: (item[1][0], item[0])):
        prefix = f"fault_{profile}_{check}_{name}".replace("-", "_")
        if (tried := values.get(f"{prefix}_rounds")) is None:
            continue
        gate, bound = (
            ", ".join(f"{values[f'{prefix}_{part}_{q}_s']:.1f}" for q in ("p50", "p99"))
            if f"{prefix}_{part}_p50_s" in values
            else "-"
            for part in ("gate", "bound")
        )
        shown = f"[`{check}`](#{check.lower()})" if check != KUBELET else "mode `node`"
        lines.append(f"| {shown} | {what} | {tried:.0f} | {gate} | {bound} |")
    return "\n".join(lines) + "\n"
