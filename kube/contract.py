"""Words that must be spelled alike wherever they stand: condition types and their reasons, labels, names of what is
deployed. No imports, no code. Why a node is closed stands in `extender.policy.reasons`, the kick's annotation in
`extender.outlets.kick`: nobody else of ours says those.

The rule they serve: a gate reads the pod condition `Ready` (and `readygate.dev/NodeHealthy` where present) and explains
itself with `ContainersReady`; the n/m column of kubectl is never read, because a dead kubelet leaves ContainersReady
True.
"""

# Pod conditions the kubelet owns. Outside the agent's `kubelet` mode nobody of ours writes them.
CONDITION_READY = "Ready"
CONDITION_CONTAINERS_READY = "ContainersReady"
CONDITION_INITIALIZED = "Initialized"
CONDITION_POD_SCHEDULED = "PodScheduled"
CONDITION_POD_READY_TO_START_CONTAINERS = "PodReadyToStartContainers"
CONDITION_POD_RESIZE_IN_PROGRESS = "PodResizeInProgress"
CONDITION_POD_RESIZE_PENDING = "PodResizePending"
CONDITION_ALL_CONTAINERS_RESTARTING = "AllContainersRestarting"
# Shared between kubelet and control plane.
CONDITION_DISRUPTION_TARGET = "DisruptionTarget"

# Ours: on the health pod (readiness gate).
CONDITION_NODE_HEALTHY = "readygate.dev/NodeHealthy"

STATUS_TRUE = "True"
STATUS_FALSE = "False"
STATUS_UNKNOWN = "Unknown"

# Reason words of our condition: one word per cause.
REASON_CHECKS_PASSED = "ChecksPassed"
REASON_CHECK_FAILED = "CheckFailed"
REASON_CHECK_UNKNOWN = "CheckUnknown"
REASON_STARTING = "Starting"
REASON_TERMINATING = "Terminating"

# How the health DaemonSet that we deploy is found.
LABEL_NAME = "app.kubernetes.io/name"
LABEL_PART_OF = "app.kubernetes.io/part-of"
NAME_AGENT = "readygate-agent"
NAME_EXTENDER = "readygate-extender"
PART_OF = "readygate"
NAMESPACE = "readygate-system"

# The kubelet's heartbeats.
NAMESPACE_NODE_LEASE = "kube-node-lease"
