"""All findings of doctor: of kube-schedulers (schedulers.py), extenders, gates, health pods, rights, versions. Pure."""

from collections.abc import Iterator

from cli.doctor.agents import of_agents
from cli.doctor.facts import Facts, GateFacts, HealthSet, Replica
from cli.doctor.findings import Finding, Severity, error, note, unknown, warning
from cli.doctor.schedulers import closed_most, minor_of, nodes_of, of_schedulers
from cli.lint.findings import Level
from cli.lint.gates import examine as examine_gates

SUPPORTED = ((1, 35), (1, 37))  # first and last minor version of Kubernetes that the tests run
STATIC = "Node"  # kind of the owner of a static pod's mirror pod
RENEWAL = "readygate-extender-token"  # the systemd service and timer on the host of a static pod
TOKEN_WARNS, TOKEN_ENDS = (
    1 / 2,
    1 / 4,
)  # remaining share of a static pod's token; its timer renews the token at three quarters
MIN_READY_LEAST_S = 30  # a failing check of the agent's default profile takes this long to show
_ORDER = list(Severity)


def examine(facts: Facts) -> list[Finding]:
    """Returns all findings, the worst first."""
    found = [*of_schedulers(facts), *_of_readygate(facts)]
    return sorted(found, key=lambda one: (_ORDER.index(one.severity), one.name, one.about))


def _of_readygate(facts: Facts) -> Iterator[Finding]:
    yield from _replicas(facts)
    yield from _configuration(facts)
    for gate in facts.gates:
        yield from _gate(gate, facts)
    yield from of_agents(facts.agents)
    yield from _rights(facts)
    yield from _versions(facts)
    for fault in facts.faults:
        yield warning("order-broken", "orders", fault, "correct or delete the entry; it is ignored until then")
    known = {gate.name for gate in facts.gates}
    for order in facts.orders:
        if known and order.scope.gate and order.scope.gate not in known:
            what = f"{order.order} names gate {order.scope.gate}, which is not configured: it has no effect"
            about = f"run readygate lift {order.id}, or order it for one of {', '.join(sorted(known))}"
            yield warning("order-of-no-gate", f"order {order.id}", what, about)
    for text in facts.unread:
        yield unknown("unread", "cluster", text, "request the right to read it, or run doctor with another --context")


def _replicas(facts: Facts) -> Iterator[Finding]:
    if not facts.replicas and facts.replicas_asked:
        yield error("no-extender", "readygate-extender", "no pod of the extender exists", "run the playbook site.yml")
    for replica in facts.replicas:
        yield from _replica(replica)
    by_node = {replica.node for replica in facts.replicas}
    hosts = {scheduler.node: scheduler.name for scheduler in facts.schedulers if scheduler.node}
    for node in sorted(set(facts.control_plane) - set(hosts)):
        if hosts:
            yield warning(
                "no-scheduler-on-host",
                f"node {node}",
                "it has the role control-plane and no kube-scheduler runs there",
                "check /etc/kubernetes/manifests and the kubelet's log on that host",
            )
    for node, scheduler in sorted(hosts.items()):
        if facts.replicas and node not in by_node:
            yield error(
                "no-extender-beside",
                scheduler,
                f"no extender runs on its host {node}, where it calls one",
                "let the extender's DaemonSet run on that node (selector, tolerations), or rerun the playbook site.yml",
            )


def _replica(replica: Replica) -> Iterator[Finding]:
    if not replica.ready:
        yield error(
            "extender-not-ready",
            replica.name,
            "its pod is not Ready",
            f"run kubectl describe pod {replica.name}, and read the log of its container extender",
        )
    if replica.problem:
        yield unknown(
            "extender-unread", replica.name, replica.problem, "query it on its host with --server http://127.0.0.1:9377"
        )
    elif replica.not_answering:
        yield error(
            "not-answering",
            replica.name,
            f"kube-scheduler gets no verdicts: {replica.not_answering}",
            "see the extender's log; it may not reach the API server",
        )
    if replica.owner == STATIC and replica.token_left_s is not None:
        yield from _token(replica, replica.token_left_s)


def _token(replica: Replica, left_s: float) -> Iterator[Finding]:
    """Findings about a token. Without its lifetime, which earlier releases do not report, only its end is one."""
    life_s = replica.token_life_s or 0.0
    if left_s >= life_s * TOKEN_WARNS and left_s > 0:
        return
    ends = f"ends in {left_s / 3600:.1f} hours" if left_s > 0 else "has ended"
    what = (
        f"the API token of the extender {ends}, and its renewal fails: two minutes later the extender gives no"
        " verdicts, and in enforce no pod is placed"
    )
    remedy = (
        f"on the host of {replica.node}: systemctl start {RENEWAL}.service, and journalctl --unit {RENEWAL} for the"
        f" cause; systemctl status {RENEWAL}.timer shows whether it runs; the playbook site.yml renews the token too"
    )
    if left_s < life_s * TOKEN_ENDS or left_s <= 0:
        yield error("token-ends", replica.name, what, remedy)
    else:
        yield warning("token-ends", replica.name, what, remedy)


def _configuration(facts: Facts) -> Iterator[Finding]:
    if facts.settings is None:
        yield unknown(
            "configuration-unread",
            "readygate-extender",
            f"its configuration could not be read: {facts.settings_unread}",
            "give the right to read ConfigMaps of its namespace, or name a copy of the file with --config",
        )
        return
    limit = closed_most(facts)
    if limit is not None and limit >= facts.nodes:
        yield warning(
            "no-cap",
            "cap",
            "no cap limits how many nodes may be closed at once: one wrong check can close all",
            'set cap.cluster to "30%"',
        )
    for one in examine_gates(facts.settings):
        if one.level is not Level.NOTE:
            yield warning("gate-by-lint", one.where, one.text, one.remedy)


def _gate(gate: GateFacts, facts: Facts) -> Iterator[Finding]:
    about = f"gate {gate.name}"
    if not gate.armed and gate.refuses:
        yield note(
            "shadow",
            about,
            "it is in shadow: it refuses nothing, and reports what it would refuse",
            f"check readygate status, then run readygate arm --gate {gate.name}",
        )
    if gate.asked and gate.named_set and gate.health_set is None:
        yield error(
            "no-health-daemonset",
            about,
            f"there is no DaemonSet {gate.named_set}",
            "correct healthPods.namespace and healthPods.daemonSet",
        )
    if gate.pods == 0:
        yield error(
            "selects-nothing",
            about,
            "its label selector matches no pod: no node counts as healthy",
            "correct healthPods.namespace and healthPods.labelSelector",
        )
    if gate.health_set is not None:
        yield from _health_set(about, gate.health_set, facts)


def _health_set(about: str, pods: HealthSet, facts: Facts) -> Iterator[Finding]:
    where = f"{about}, DaemonSet {pods.namespace}/{pods.name}"
    if not pods.probed and not pods.gated:
        yield error(
            "no-readiness-probe",
            where,
            "no container has a readiness probe: Ready means only that processes run",
            "add a readinessProbe, or a gate condition that reports whether the node works",
        )
    if pods.strategy != "RollingUpdate":
        yield note(
            "update-on-delete",
            where,
            f"its update strategy is {pods.strategy}: nothing limits how many nodes lose their pod at once",
        )
        return
    limit = closed_most(facts)
    at_once = nodes_of(pods.max_unavailable, pods.desired) if pods.desired else 0
    if limit is not None and 1 < limit < facts.nodes and at_once > limit:
        yield warning(
            "roll-out-above-cap",
            where,
            f"maxUnavailable {pods.max_unavailable} is {at_once} nodes, the cap is {limit}: a roll-out can use it up",
            "lower maxUnavailable below the cap",
        )
    if pods.min_ready_s < MIN_READY_LEAST_S and pods.desired > 1:
        yield warning(
            "no-min-ready",
            where,
            f"minReadySeconds is {pods.min_ready_s}: an image that fails late reaches many nodes first",
            f"set minReadySeconds to {2 * MIN_READY_LEAST_S}",
        )


def _rights(facts: Facts) -> Iterator[Finding]:
    missing: dict[str, list[str]] = {}
    for right in facts.rights:
        if not right.allowed:
            where = f" in namespace {right.namespace}" if right.namespace else ""
            missing.setdefault(right.resource + where, []).append(right.verb)
    for resource, verbs in sorted(missing.items()):
        yield error(
            "right-missing",
            "readygate-extender",
            f"its account may not {', '.join(verbs)} {resource}",
            "run the playbook site.yml, which grants exactly what is needed",
        )


def _versions(facts: Facts) -> Iterator[Finding]:
    releases = {replica.release for replica in facts.replicas if replica.release}
    if len(releases) > 1:
        yield warning(
            "releases-differ",
            "readygate-extender",
            f"the replicas are of the releases {', '.join(sorted(releases))}",
            "wait for the roll-out, or find out why it does not finish",
        )
    elif releases and releases != {facts.cli_release}:
        yield note(
            "release-of-command", "readygate", f"this command is {facts.cli_release}, the extenders {releases.pop()}"
        )
    first, last = SUPPORTED
    for about, version in [("API server", facts.api_version), *((one.name, one.version) for one in facts.schedulers)]:
        minor = minor_of(version)
        if minor is not None and not first <= minor <= last:
            yield warning(
                "version-unsupported",
                about,
                f"it is {version}; tested versions are {first[0]}.{first[1]} to {last[0]}.{last[1]}",
                "update readygate or the cluster, or try it in shadow first",
            )
