"""The tables of a campaign, and whether it reaches what is demanded. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any

from tools.power.results import Result

DEMANDED_OF_GATE, DEMANDED_OF_WHOLE = 95.0, 90.0
"""Percent: of what the whole proof catches in the second half, the gate; of all faults, the whole proof."""
RINGS = (0, 1, 2, 3)


def tables(rows: Iterable[Result], *, without_result: int = 0) -> dict[str, Any]:
    """parts: part -> faults, caught by ring, uncaught. gate: half -> figures. whole_only, uncaught: one row a fault.

    without_result: how many faults of the catalogue have none yet; the figures are of the others.
    """
    listed = list(rows)
    parts: dict[str, dict[str, int]] = {}
    for row in listed:
        counts = parts.setdefault(row.part, dict.fromkeys(("faults", *(f"ring {r}" for r in RINGS), "uncaught"), 0))
        counts["faults"] += 1
        counts[f"ring {row.ring}" if row.is_caught else "uncaught"] += 1
    return {
        "parts": parts,
        "gate": {half: _of_gate([row for row in listed if row.half == half]) for half in (1, 2)},
        "whole": _percent(sum(row.is_caught for row in listed), len(listed)),
        "whole_only": [_facts(row) for row in listed if row.is_caught and not row.gate],
        "uncaught": [_facts(row) for row in listed if not row.is_caught],
        "without_result": without_result,
        "unreliable": sorted({test for row in listed for test in row.unreliable}),
    }


def _of_gate(rows: list[Result]) -> dict[str, float]:
    caught = [row for row in rows if row.is_caught]
    gate = sum(row.gate for row in caught)
    return {"faults": len(rows), "whole": len(caught), "gate": gate, "percent": _percent(gate, len(caught))}


def _percent(part: int, whole: int) -> float:
    return round(100 * part / whole, 1) if whole else 0.0


def _facts(row: Result) -> dict[str, Any]:
    return {
        "fault": row.fault,
        "part": row.part,
        "what": row.what,
        "ring": row.ring,
        "test": row.test,
        "outcome": row.outcome,
    }


def falls_short(found: Mapping[str, Any]) -> bool:
    return found["gate"][2]["percent"] < DEMANDED_OF_GATE or found["whole"] < DEMANDED_OF_WHOLE


def text(found: Mapping[str, Any]) -> str:
    heads = ["faults", *(f"ring {ring}" for ring in RINGS), "uncaught"]
    lines = [f"| part | {' | '.join(heads)} |", "|---" * (len(heads) + 1) + "|"]
    for part, counts in found["parts"].items():
        lines.append(f"| {part} | {' | '.join(str(counts[head]) for head in heads)} |")
    sums = [str(sum(counts[head] for counts in found["parts"].values())) for head in heads]
    lines += [f"| all | {' | '.join(sums)} |", "", f"The whole proof catches {found['whole']} % of the faults."]
    if found["without_result"]:
        lines.append(f"{found['without_result']} more faults have no result yet: they are in no figure.")
    for half, use in ((1, "by which the gate is chosen"), (2, "by which it is reported")):
        gate = found["gate"][half]
        lines.append(
            f"Half {half}, {use}: {gate['faults']} faults, the whole proof catches {gate['whole']}, "
            f"the gate {gate['gate']} of these ({gate['percent']} %)."
        )
    for title, key in (("Only the whole proof catches", "whole_only"), ("Nothing catches", "uncaught")):
        lines += ["", f"{title}:", *(_line(row) for row in found[key])]
    if found["unreliable"]:
        lines += ["", "Failed with and without a fault:", *(f"- {test}" for test in found["unreliable"])]
    return "\n".join(lines)


def _line(row: Mapping[str, Any]) -> str:
    file = row["fault"].partition(":")[0]
    caught = f" (ring {row['ring']}: {row['test']})" if row["test"] else f" ({row['outcome']})"
    return f"- {row['part']}: {file}, {row['what']}{caught}"


def coverage_text(rows: Mapping[str, Mapping[str, float]]) -> str:
    lines = ["| package | lines | covered | branches | covered |", "|---|---|---|---|---|"]
    for package, row in rows.items():
        figures = (
            f"{row['lines']:,.0f} | {row['lines_percent']} % | {row['branches']:,.0f} | {row['branches_percent']} %"
        )
        lines.append(f"| {package} | {figures} |")
    return "\n".join(lines)
