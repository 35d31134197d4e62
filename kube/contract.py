"""Words that two of agent, extender and playbooks must spell alike: condition types and statuses, names of deployed
objects, and ports. No imports, no code. Words of one room are defined there: reasons for a closed node in
`extender.policy.reasons`, the kick's annotation in `extender.outlets.kick`, the kubelet's other conditions in
`agent.kubelet.status.conditions`, reasons of readygate's condition in `agent.wire.condition`.

The rule behind them: a gate reads the pod condition `Ready` (and `readygate.dev/NodeHealthy` if present) and explains
itself with `ContainersReady`. The n/m column of kubectl is never read, because a dead kubelet leaves ContainersReady
True.
"""

# Pod conditions of the kubelet. Outside the agent's `kubelet` mode readygate never writes them.
CONDITION_READY = "Ready"
CONDITION_CONTAINERS_READY = "ContainersReady"
CONDITION_POD_SCHEDULED = "PodScheduled"
CONDITION_POD_READY_TO_START_CONTAINERS = "PodReadyToStartContainers"

# readygate's own: on the health pod (readiness gate).
CONDITION_NODE_HEALTHY = "readygate.dev/NodeHealthy"

# The beginning of its message if the node is healthy and there is a warning, as of a check.
HEALTHY_BUT = "no gate check fails; "

# The statuses of a condition.
STATUS_TRUE = "True"
STATUS_FALSE = "False"
STATUS_UNKNOWN = "Unknown"

# A pod of readygate's own namespace without a controller, by which a deployment sees that kube-scheduler calls the
# extender and obeys the answer: all nodes are refused to it, in any state. The reason never changes, like all reasons.
LABEL_CANARY = "readygate.dev/canary"
CANARY_REFUSED = "readygate: canary: refused everywhere on purpose"

# The selector of the deployed health DaemonSet.
LABEL_NAME = "app.kubernetes.io/name"
NAME_AGENT = "readygate-agent"
NAME_EXTENDER = "readygate-extender"
NAMESPACE = "readygate-system"

# Ports at which kube-scheduler calls the extender on its own host. Each form of deployment has its own, so that one
# replaces another without a gap. Below 1024 no ordinary user of the host can take the port in between; the last one is
# for deployments without that privilege, and was the DaemonSet's before.
PORT_DAEMON_SET = 338
PORT_STATIC = 337
PORT_UNPRIVILEGED = 9376
PORTS = (PORT_DAEMON_SET, PORT_STATIC, PORT_UNPRIVILEGED)

# The kubelet's heartbeats.
NAMESPACE_NODE_LEASE = "kube-node-lease"
