"""Words that two of agent, extender and playbooks must spell alike: condition types and statuses, and the names of what
is deployed and its ports. No imports, no code. Words of one room stand there: reasons for a closed node in
`extender.policy.reasons`, the kick's annotation in `extender.outlets.kick`, the kubelet's other conditions in
`agent.status.conditions`, reasons of our condition in `agent.wire.condition`.

The rule they serve: a gate reads the pod condition `Ready` (and `readygate.dev/NodeHealthy` where present) and explains
itself with `ContainersReady`; the n/m column of kubectl is never read, because a dead kubelet leaves ContainersReady
True.
"""

# Pod conditions the kubelet owns. Outside the agent's `kubelet` mode nobody of ours writes them.
CONDITION_READY = "Ready"
CONDITION_CONTAINERS_READY = "ContainersReady"
CONDITION_POD_SCHEDULED = "PodScheduled"
CONDITION_POD_READY_TO_START_CONTAINERS = "PodReadyToStartContainers"

# Ours: on the health pod (readiness gate).
CONDITION_NODE_HEALTHY = "readygate.dev/NodeHealthy"

# How its message begins where the node is healthy and something is to be said all the same: checks that warn, say.
HEALTHY_BUT = "no gate check fails; "

# A condition's status; three words that belong together.
STATUS_TRUE = "True"
STATUS_FALSE = "False"
STATUS_UNKNOWN = "Unknown"

# A pod of our own namespace, made by no controller, by which a deployment sees that kube-scheduler asks and keeps to
# the answer: it is refused everywhere, whatever is known of the nodes. The reason is constant for ever, as all are.
LABEL_CANARY = "readygate.dev/canary"
CANARY_REFUSED = "readygate: canary: refused everywhere on purpose"

# How the health DaemonSet that we deploy is found.
LABEL_NAME = "app.kubernetes.io/name"
NAME_AGENT = "readygate-agent"
NAME_EXTENDER = "readygate-extender"
NAMESPACE = "readygate-system"

# Where kube-scheduler asks the extender on its own host: each form has a port of its own, so that one takes over from
# the other without a gap. Below 1024 no ordinary user of the host takes it meanwhile; the last is for who may take no
# such port, and was the DaemonSet's before.
PORT_DAEMON_SET = 338
PORT_STATIC = 337
PORT_UNPRIVILEGED = 9376
PORTS = (PORT_DAEMON_SET, PORT_STATIC, PORT_UNPRIVILEGED)

# The kubelet's heartbeats.
NAMESPACE_NODE_LEASE = "kube-node-lease"
