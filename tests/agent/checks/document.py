"""Writes docs/checks.md from the catalogue: `python -m tests.agent.checks.document`, part of `make manifests`."""

import json
import sys
from pathlib import Path

import msgspec

from agent.checks.catalogue import KINDS, Kind
from agent.checks.pages import body_of, needs
from tests.bench.faults import results
from tests.faults.registry import FAULTS

ROOT = Path(__file__).resolve().parents[3]
DOCUMENT = ROOT / "docs/checks.md"
MEASURED = ROOT / "tests/bench/faults/measured.json"  # a copy of build/bench-faults.json, and `taken`: how
HEAD = """# The checks

Made by `make manifests` of `agent/checks/builtin`: change it there. The same texts come from
`readygate-agent --config agent.yaml --explain CHECK`, with the values of your settings; `--once` runs each check once
and ends with 0 or 1, and `GET /checks` on the agent's port tells all of them as JSON. The keys that every check has
(period, timeout, thresholds, severity, what unknown means) are in [configuration.md](configuration.md).

A check says passed, warned (a success that is reported), failed, hung (its run was killed), or unknown (it could not
look): unknown is never taken for a failure. Shared is what lies beyond this node, for all nodes alike: it closes none.
The first run gives the first verdict. Numbers stand in what a check says, never in a reason.

| kind | passes when | needs |
|---|---|---|
"""


SOON = """
## How soon

Seconds on the hosts of ring 3, from a fault's first command until the extender refuses the node (by then a new pod is
refused), and from the command that heals until the pod that waited is bound. Profile `fast`: a run every 2 s, two
failures. What the kernel tells makes a check look at once: a line of its log closes by itself, its news of files, links
and routes are one failure, and the second is looked for 0.4 s later. Made by `make bench-faults`, the same with
`ARGS="--record TEXT"`, and `make manifests`.
"""


UNTRIED = {
    "timeSync": "There is no fault to try it with: hosts of ring 3 have the machine's one clock, not theirs to break."
}


def page() -> str:
    rows = "".join(f"| [`{name}`](#{name.lower()}) | {kind.doc} | {_cell(kind)} |\n" for name, kind in KINDS.items())
    return HEAD + rows + _soon() + "".join(_section(name, kind) for name, kind in KINDS.items())


def _soon() -> str:
    """Nothing where nothing was measured."""
    if not MEASURED.exists():
        return ""
    measured = json.loads(MEASURED.read_text())
    values = {row["name"]: row["value"] for row in measured["figures"]}
    faults = {fault.name: (fault.check, fault.what) for fault in FAULTS.values()}
    tables = "".join(
        f"\nProfile `{profile}`:\n\n{made}"
        for profile in ("fast", "default")
        if (made := results.table(values, faults, profile)).count("\n") > 2
    )
    return f"{SOON}\n{measured['taken']}\n{tables}"


def _cell(kind: Kind) -> str:
    return _keys_marked("; ".join(kind.rights.lines), kind) or "-"


def _section(name: str, kind: Kind) -> str:
    fields = msgspec.structs.fields(kind.settings)
    keys = "".join(f"| `{field.encode_name}` | {_default(field)} |\n" for field in fields)
    table = f"\n| key | default |\n|---|---|\n{keys}" if keys else ""
    faults = [fault for fault in FAULTS.values() if fault.check == name]
    tried = "".join(f"- `python -m tests.faults {fault.name} HOST`: {fault.what}.\n" for fault in faults)
    tried = f"\nFaults to try it with, on a host of ring 3 (`--heal` takes them back):\n\n{tried}" if tried else ""
    tried = tried or (f"\n{UNTRIED[name]}\n" if name in UNTRIED else "")
    needed = _keys_marked(needs(kind.rights), kind)
    return f"\n## {name}\n\nPasses when {kind.doc}.\n\n{body_of(kind.about)}\n{table}\n{needed}\n{tried}"


def _default(field: msgspec.structs.FieldInfo) -> str:
    if field.required:
        return "to be given"
    value = field.default_factory() if field.default is msgspec.NODEFAULT else field.default
    return f"`{json.dumps(msgspec.to_builtins(value))}`"


def _keys_marked(text: str, kind: Kind) -> str:
    """The names of keys as code."""
    keys = {entry for entry in (*kind.rights.reads, *kind.rights.writes) if not entry.startswith("/")}
    for key in sorted(keys):
        text = text.replace(key, f"`{key}`")
    return text


def main() -> int:
    DOCUMENT.write_text(page())
    print(f"{DOCUMENT.relative_to(ROOT)} written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
