"""Writes docs/checks.md from the catalogue: `python -m tests.agent.checks.document`, part of `make manifests`."""

import json
import sys
from pathlib import Path

import msgspec

from agent.checks.catalogue import KINDS, Kind
from agent.checks.pages import body_of, needs
from agent.checks.profiles import PROFILES, checks_of
from tools.bench.faults import results
from tools.faults.registry import FAULTS

ROOT = Path(__file__).resolve().parents[3]
DOCUMENT = ROOT / "docs/checks.md"
# Copies of build/bench-faults.json, and `taken`: how. Of a fault that the first has not, the second has it.
MEASURED = ROOT / "tools/bench/faults/measured.json"
ADDED = MEASURED.with_name("measured-added.json")
HEAD = """# The checks

Made by `make manifests` of `agent/checks/builtin`: change it there. The same texts come from
`readygate-agent --config agent.yaml --explain CHECK`, with the values of your settings; `--once` runs each check once
and ends with 0 or 1, and `GET /checks` on the agent's port tells all of them as JSON. The keys that every check has
(period, timeout, thresholds, severity, what unknown means) are in [configuration.md](configuration.md).

A check says passed, warned (a success that is reported), failed, hung (its run was killed), or unknown (it could not
look): unknown is never taken for a failure. Shared is what lies beyond this node, for all nodes alike: it closes none.
Not applicable means that this node has nothing which the check could judge: neither a success nor a failure.
The first run gives the first verdict. Numbers stand in what a check says, never in a reason.

| kind | passes when | needs |
|---|---|---|
"""


LISTS = """
## Ready-made lists

`readygate_agent_check_profile` (of the pods, and of the service unless said otherwise), `readygate_node_check_profile`
(of the service) and the chart's `agent.checkProfile` choose one; `default` is the default. Empty means no list: there
is `cni` alone then, which closes.

"""


LISTS_END = """
`closes`: of severity `gate`, so what fails closes the node; `warns`: it is reported, and closes nothing. A check of
yours with the same name and another `severity` changes that. In no list: {others}.

A pod cannot run `certificates`, `connection-tables` and `kernel-log`: they take the host's files, network and devices.
The service does not run `pod-network`: the pod beside it does, and its readiness has the result. `readygate doctor`
lists what nothing runs (`not-examined`); with `readygate_agent_form: both` all of it is run.

**Upgrades.** A check that joins a list in a later release only warns, on every installation, until your settings name
it with `severity: gate`. So no upgrade closes a node for something that it did not examine before.

**Small clusters.** `podNetwork` compares a node with others: with fewer than two other agents it is not applicable.

`dns` asks the DNS server of the pod's own `resolv.conf`; the service needs addresses of your cluster for it, and for
`servicePath`. The service finds them (`readygate_node_find_addresses`), and runs `dns` and `service-path`, which warn:

| address | where it is found |
|---|---|
| DNS Service, or a cache on the node (by its link-local address); the cluster's domain | the kubelet's settings |
| the API server's Service, and its port behind that | the API server, asked with the kubelet's certificate |
| `apiServers` | the control planes of the inventory; where it has none, what is behind the Service |
| `peers` | the inventory: the next nine nodes on a ring of hashes, so a new node changes nine others' settings |
| `peerPort` | the kubelet's settings |
| `proxy` | the node: where something listens at kube-proxy's port 10256, also while it stands still |

Where the kubelet names DNS servers of two families there is a check for each (`dns-ipv6` or `dns-ipv4`). Of the
inventory `ip` (kubespray's) counts, else `ansible_host`, where it is an address that the node has itself: else the
inventory speaks of another network, and is not used. What is left out is told at the end of the play. Where the API
server does not answer, what it told the last time holds, and so does where kube-proxy was while it is started again.
The kubelet's settings are its flags, then the files of its `--config-dir`, then that of its `--config`. Its
`cgroupRoot`, where that is not `/`, becomes that of the check `pressure`.

So **without settings of yours no node is closed for DNS or kube-proxy as such**. It is closed by `podNetwork` where it
does not reach the API server, DNS or other nodes while most of its peers do. Look at what the others say for a while,
then have them close:

```yaml
# close.yml
readygate_node_checks:
- {{name: dns, severity: gate}}
- {{name: service-path, severity: gate}}
```

A check of yours of the same kind takes the place of the one that is found. This has all addresses written out, with
those of the inventory and its names of groups:

```yaml
# addresses.yml
readygate_node_checks:
- name: dns
  dns: {{service: 10.96.0.10}}      # with NodeLocal DNSCache also nodeLocal: 169.254.20.10
- name: service-path
  servicePath:
    service: 10.96.0.1            # with kube-proxy also proxy: 127.0.0.1
    apiServers: "{{{{ groups.control_plane | map('extract', hostvars, 'ansible_host') | list }}}}"
    peers: "{{{{ (groups.control_plane + groups.workers) | map('extract', hostvars, 'ansible_host') | list }}}}"
```

A node without a kube-proxy, as with Cilium in its place, is without `proxy`, unless that listens there for it; a play
that finds neither it nor its pod takes `proxy` away. `kubectl get service kubernetes` and
`kubectl get service -n kube-system kube-dns` tell the addresses of the Services. A Service's address that leads nowhere
closes a node only where what is behind it is reached: `apiServers`, and for DNS `servers`, without which that is
unknown. Those are the addresses of the DNS pods, so new pods have others; to have old ones here closes nothing.
`nodeLocal` and `proxy` are of the node itself: what is silent there closes it, also because it was never there. A
kube-proxy that goes while it is replaced leaves its rules: that warns for `proxyMaxAgeSeconds`.
"""


_NOT_RUN = {"dns": "by the role"}  # which finds the addresses


SOON = """
## How soon

Seconds on the hosts of ring 3, from a fault's first command until the extender refuses the node (by then a new pod is
refused), and from the command that heals until the pod that waited is bound. Profile `fast`: a run every 2 s, two
failures. What the kernel tells makes a check look at once: a line of its log closes by itself, its news of files, links
and routes are one failure, and the second is looked for 0.4 s later. Where the kubelet itself has called its node not
ready by then (a network or a runtime that is gone), the pod waits for the kubelet's next status too, up to ten seconds.
What the kernel averages over a minute (a disk that everybody waits for) takes the part of it that is the limit.
Made by `make bench-faults`, the same with `ARGS="--record TEXT"`, and `make manifests`.
"""


def page() -> str:
    rows = "".join(f"| [`{name}`](#{name.lower()}) | {kind.doc} | {_cell(kind)} |\n" for name, kind in KINDS.items())
    return HEAD + rows + _lists() + _soon() + "".join(_section(name, kind) for name, kind in KINDS.items())


def _lists() -> str:
    """Which check is in which list, which forms run it, and whether it can close a node."""
    found = {(mode, name): checks_of(name, mode, "/host") for mode in ("pod", "node") for name in PROFILES}
    severities = {
        (name, check["name"]): "warns" if check.get("severity") == "warn" else "closes"
        for (_, name), checks in found.items()
        for check in checks
    }
    runs = {(mode, check["name"]) for (mode, _), checks in found.items() for check in checks}
    kinds = {check["name"]: kind for checks in found.values() for check in checks for kind in check if kind in KINDS}
    head = f"| check | kind | {' | '.join(f'`{name}`' for name in PROFILES)} | in a pod | as a service |\n"
    rows = "".join(
        f"| `{check}` | [`{kind}`](#{kind.lower()}) | "
        f"{' | '.join(severities.get((name, check), '-') for name in PROFILES)} | "
        f"{' | '.join('yes' if (mode, check) in runs else _NOT_RUN.get(check, 'no') for mode in ('pod', 'node'))} |\n"
        for check, kind in kinds.items()
    )
    *others, last = [f"`{kind}`" for kind in KINDS if kind not in kinds.values()]
    end = LISTS_END.format(others=f"{', '.join(others)} and {last}")
    return f"{LISTS}{head}{'|---' * (len(PROFILES) + 4)}|\n{rows}{end}"


def _soon() -> str:
    """Nothing where nothing was measured."""
    if not MEASURED.exists():
        return ""
    measured = json.loads(MEASURED.read_text())
    added = json.loads(ADDED.read_text()) if ADDED.exists() else {"figures": []}
    unknown = set(results.tried(added["figures"])) - set(results.tried(measured["figures"]))
    new = [row for row in added["figures"] if row["name"].startswith(tuple(unknown))]
    values = {row["name"]: row["value"] for row in (*measured["figures"], *new)}
    faults = {fault.name: (fault.check, fault.what) for fault in FAULTS.values()}
    tables = "".join(
        f"\nProfile `{profile}`:\n\n{made}"
        for profile in ("fast", "default")
        if (made := results.table(values, faults, profile)).count("\n") > 2
    )
    later = f"\n{added['taken']}\n" if new else ""
    return f"{SOON}\n{measured['taken']}\n{later}{tables}"


def _cell(kind: Kind) -> str:
    return _keys_marked("; ".join(kind.rights.lines), kind) or "-"


def _section(name: str, kind: Kind) -> str:
    fields = msgspec.structs.fields(kind.settings)
    keys = "".join(f"| `{field.encode_name}` | {_default(field)} |\n" for field in fields)
    table = f"\n| key | default |\n|---|---|\n{keys}" if keys else ""
    faults = [fault for fault in FAULTS.values() if fault.check == name]
    tried = "".join(f"- `python -m tools.faults {fault.name} HOST`: {fault.what}.\n" for fault in faults)
    tried = f"\nFaults to try it with, on a host of ring 3 (`--heal` takes them back):\n\n{tried}" if tried else ""
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
