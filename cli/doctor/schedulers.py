"""Findings about kube-schedulers: whether each calls readygate, and with which settings. Pure.

Mirrors kubernetes cmd/kube-scheduler/app/options (which flags --config overrides) and pkg/scheduler (how many nodes an
attempt samples, what an extender switches off).
"""

import re
from collections.abc import Iterator

from cli.doctor.facts import Extender, Facts, Loaded, Scheduler
from cli.doctor.findings import Finding, error, note, unknown, warning
from cli.shared.addresses import is_local_extender, port_of
from kube import contract

TIMEOUT_DEFAULT_S = 5.0
TIMEOUT_MOST_S = 1.0  # a hung extender delays every pod by this long
TIMEOUT_LEAST_S = 0.2  # a page fault or a garbage collection must not count as a failure
SAMPLE_LEAST_NODES = 100
SAMPLE_LEAST_PERCENT = 5
VERBS = ("filter_verb", "preempt_verb", "prioritize_verb", "bind_verb")
REGISTER = "run the playbook site.yml, which registers readygate and rolls back if the scheduler does not start"
# Flags that --config overrides, and the field of the loaded configuration with the value in effect.
VOID = {
    "profiling": "profiling",
    "contention-profiling": "contention_profiling",
    "kube-api-qps": "qps",
    "kube-api-burst": "burst",
    "kube-api-content-type": "content_type",
    "kubeconfig": "kubeconfig",
}
KEYS = {
    "profiling": "enableProfiling",
    "contention-profiling": "enableContentionProfiling",
    "kube-api-qps": "clientConnection.qps",
    "kube-api-burst": "clientConnection.burst",
    "kube-api-content-type": "clientConnection.contentType",
    "kubeconfig": "clientConnection.kubeconfig",
}
BATCHES_SINCE = (1, 35)  # opportunistic batching: beta and on


def of_schedulers(facts: Facts) -> Iterator[Finding]:
    """All findings about kube-schedulers."""
    if not facts.schedulers and facts.schedulers_asked:
        yield unknown(
            "no-scheduler-found",
            "kube-scheduler",
            "no pod with the label component=kube-scheduler in kube-system",
            "if it runs outside the cluster, run doctor on its host with --scheduler https://127.0.0.1:10259",
        )
    for scheduler in facts.schedulers:
        yield from _flags(scheduler)
        if scheduler.loaded is None:
            yield unknown(
                "scheduler-unread",
                scheduler.name,
                f"its loaded configuration could not be read: {scheduler.unread}",
                "run doctor on its host with --scheduler https://127.0.0.1:10259 and a client certificate",
            )
            continue
        own = [one for one in scheduler.loaded.extenders if is_readygate(one, facts)]
        yield from _registration(scheduler, own, facts)
        for one in own:
            yield from _entry(scheduler, one, facts)
        if own:
            yield from _batching(scheduler, facts)
            yield from _sampling(scheduler, scheduler.loaded, facts)
    yield from _profiles(facts)
    yield from _differing(facts)


def is_readygate(entry: Extender, facts: Facts) -> bool:
    """Whether the port is the extender's: as configured, or a default port if the configuration is unread."""
    port = port_of(entry.url_prefix)
    if facts.settings is None:
        return port in contract.PORTS
    static = any(
        replica.owner == "Node" for replica in facts.replicas
    )  # a static pod has its own configuration and port
    return port == facts.settings.listen.port or (static and port == contract.PORT_STATIC)


def _registration(scheduler: Scheduler, own: list[Extender], facts: Facts) -> Iterator[Finding]:
    loaded = scheduler.loaded.extenders if scheduler.loaded else ()
    elsewhere = [one.url_prefix for one in loaded if one not in own and is_local_extender(one.url_prefix)]
    if elsewhere and facts.settings is not None:
        port = facts.settings.listen.port
        yield error(
            "asks-elsewhere",
            scheduler.name,
            f"it calls {', '.join(elsewhere)}, but the extender listens on port {port}: nothing answers there, "
            "or another program does",
            f"{REGISTER}; or set urlPrefix in its configuration to port {port}, and restart it",
        )
    elif not own:
        others = len(loaded)
        listed = f"{others} other extenders, not readygate" if others else "no extenders at all"
        yield error(
            "not-registered",
            scheduler.name,
            f"its loaded configuration lists {listed}: it never calls readygate",
            REGISTER,
        )
    if len(own) > 1:
        yield error(
            "registered-twice",
            scheduler.name,
            f"{len(own)} entries name readygate: {', '.join(one.url_prefix for one in own)}",
            "keep one of them in its configuration; each costs a call for every pod",
        )


def _entry(scheduler: Scheduler, one: Extender, facts: Facts) -> Iterator[Finding]:
    about = f"{scheduler.name} -> {one.url_prefix}"
    if one.filter_verb.strip("/") != "filter":
        yield error("filter-verb", about, f'filterVerb is "{one.filter_verb}"', "set filterVerb: filter")
    if not one.node_cache_capable:
        yield error(
            "nodes-mode",
            about,
            "nodeCacheCapable is false: whole Nodes are sent, and each call is answered with an Error",
            "set nodeCacheCapable: true",
        )
    if one.bind_verb:
        yield error(
            "bind-verb", about, f'bindVerb is "{one.bind_verb}", and readygate binds nothing', "remove bindVerb"
        )
    if not one.preempt_verb:
        yield warning(
            "no-preempt-verb",
            about,
            "preemptVerb is not set: preemption may evict pods from a closed node in vain",
            "set preemptVerb: preempt (the playbook does)",
        )
    yield from _timeout(about, one)
    yield from _ignorable(about, one, facts)
    gates = () if facts.settings is None else facts.settings.gates
    prefers = any(gate.severity_in_force == "preferNot" for gate in gates)
    if prefers and not one.prioritize_verb:
        yield warning(
            "no-prioritize-verb",
            about,
            "a gate has the severity preferNot, and prioritizeVerb is not set: that gate does nothing",
            "set prioritizeVerb: prioritize and a weight",
        )
    by_device = next((gate.name for gate in gates if gate.pods_for.by_device), None)
    if one.managed_resources and by_device is not None:
        yield warning(
            "claims-not-asked",
            about,
            f"managedResources: pods that only claim devices (DRA) are not sent, and gate {by_device} misses them",
            "remove managedResources, if such pods exist",
        )
    if one.prioritize_verb and not prefers and facts.settings is not None:
        yield note(
            "prioritize-verb-idle",
            about,
            "prioritizeVerb is set and no gate has the severity preferNot: a call for every pod that changes nothing",
            "remove prioritizeVerb and weight",
        )


def _timeout(about: str, one: Extender) -> Iterator[Finding]:
    timeout_s = TIMEOUT_DEFAULT_S if one.timeout_s is None else one.timeout_s
    if timeout_s > TIMEOUT_MOST_S:
        yield warning(
            "timeout-long",
            about,
            f"httpTimeout is {timeout_s:g} s: a hung extender delays every pod by that long, one after the other",
            "set httpTimeout: 1s",
        )
    elif timeout_s < TIMEOUT_LEAST_S:
        yield warning(
            "timeout-short",
            about,
            f"httpTimeout is {timeout_s:g} s: a short delay counts as a failure",
            "set httpTimeout: 1s",
        )


def _ignorable(about: str, one: Extender, facts: Facts) -> Iterator[Finding]:
    owners = {replica.owner for replica in facts.replicas if replica.owner}
    if not one.ignorable and owners & {"DaemonSet", "ReplicaSet"}:
        yield error(
            "enforce-deadlock",
            about,
            f"ignorable is false and the extender's pods are made by a {' and a '.join(sorted(owners))}: "
            "when it is gone, its replacement waits for the scheduler, which waits for the extender",
            "set ignorable: true (mode protect), or run the extender as a static pod or a service of the host",
        )


def _flags(scheduler: Scheduler) -> Iterator[Finding]:
    if "config" not in scheduler.flags:
        return
    for flag, field in VOID.items():
        if flag not in scheduler.flags:
            continue
        given = scheduler.flags[flag]
        loaded = getattr(scheduler.loaded, field) if scheduler.loaded is not None and field else None
        if loaded is not None and _same(given, loaded):
            continue
        in_effect = f"; the value in effect is {_text(loaded)}" if loaded is not None else ""
        yield warning(
            "flag-void",
            scheduler.name,
            f"--{flag}={given} is ignored because --config is given{in_effect}",
            f"write {KEYS[flag]} into its configuration file",
        )


def _same(given: str, loaded: object) -> bool:
    if isinstance(loaded, bool):
        return given.lower() in (("", "true", "t", "1") if loaded else ("false", "f", "0"))
    if isinstance(loaded, int | float):
        try:
            return float(given) == float(loaded)
        except ValueError:
            return False
    return given == loaded


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)


def _batching(scheduler: Scheduler, facts: Facts) -> Iterator[Finding]:
    if (minor_of(scheduler.version or facts.api_version) or (0, 0)) >= BATCHES_SINCE:
        yield note(
            "batching-off",
            scheduler.name,
            "an extender switches off opportunistic batching (feature gate OpportunisticBatching) in every profile",
            "nothing to do; it matters for large jobs of equal pods",
        )


def sample_nodes(nodes: int, percent: int | None) -> int:
    """How many feasible nodes one scheduling attempt samples (kubernetes pkg/scheduler/schedule_one.go
    numFeasibleNodesToFind)."""
    if nodes < SAMPLE_LEAST_NODES:
        return nodes
    share = percent or max(SAMPLE_LEAST_PERCENT, 50 - nodes // 125)
    return max(SAMPLE_LEAST_NODES, nodes * share // 100)


def _sampling(scheduler: Scheduler, loaded: Loaded, facts: Facts) -> Iterator[Finding]:
    limit = closed_most(facts)
    if limit is None:
        return
    shares = {profile.percentage_of_nodes_to_score for profile in loaded.profiles} or {None}
    sample = min(
        sample_nodes(facts.nodes, share if share is not None else loaded.percentage_of_nodes_to_score)
        for share in shares
    )
    if sample <= limit < facts.nodes:
        yield warning(
            "sample-within-cap",
            scheduler.name,
            f"an attempt looks at {sample} feasible nodes of {facts.nodes}, and up to {limit} may be closed: "
            "all of these may be closed while others are open",
            "raise percentageOfNodesToScore, or lower the cap",
        )


def closed_most(facts: Facts) -> int | None:
    """How many nodes all gates together may close under the cap; None if that is unknown."""
    if facts.settings is None or not facts.nodes:
        return None
    cap = facts.settings.cap
    if isinstance(cap, bool) or cap.cluster is None:
        return facts.nodes
    return nodes_of(cap.cluster, facts.nodes)


def nodes_of(limit: object, nodes: int) -> int:
    """A limit as a number of nodes. A percentage is rounded down, and at least one."""
    text = str(limit)
    return max(1, nodes * int(text[:-1]) // 100) if text.endswith("%") else int(text)


def _profiles(facts: Facts) -> Iterator[Finding]:
    known = {
        profile.scheduler_name
        for scheduler in facts.schedulers
        if scheduler.loaded is not None
        for profile in scheduler.loaded.profiles
    }
    if not known or facts.settings is None or any(one.loaded is None for one in facts.schedulers):
        return
    for gate in facts.settings.gates:
        missing = sorted(set(gate.pods_for.scheduler_names or ()) - known)
        if missing:
            yield warning(
                "profile-unknown",
                f"gate {gate.name}",
                f"it is for pods of schedulerName {', '.join(missing)}, and there are {', '.join(sorted(known))}",
                "correct for.schedulerNames; an extender serves every profile",
            )


def _differing(facts: Facts) -> Iterator[Finding]:
    by_scheduler = {
        scheduler.name: sorted((one for one in scheduler.loaded.extenders if is_readygate(one, facts)), key=str)
        for scheduler in facts.schedulers
        if scheduler.loaded is not None
    }
    if len({str([_without_host(one) for one in entries]) for entries in by_scheduler.values() if entries}) > 1:
        yield warning(
            "schedulers-differ",
            "kube-scheduler",
            f"{', '.join(sorted(by_scheduler))} call readygate with different settings: those of the leader apply",
            REGISTER,
        )


def _without_host(entry: Extender) -> tuple[object, ...]:
    return (
        *(getattr(entry, verb) for verb in VERBS),
        entry.timeout_s,
        entry.ignorable,
        entry.node_cache_capable,
        entry.managed_resources,
        entry.weight,
    )


def minor_of(version: str) -> tuple[int, int] | None:
    """Major and minor version: (1, 36) for "v1.36.3"; None for another text."""
    match = re.match(r"v?([0-9]+)\.([0-9]+)", version)
    return (int(match[1]), int(match[2])) if match else None
