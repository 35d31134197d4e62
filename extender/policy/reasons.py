"""Pure: why a node is closed, as kube-scheduler shows it after "0/N nodes are available:".

These texts never change and hold no names, digits, times or percent signs: kube-scheduler counts equal texts, and
retries a pod without pause when its text changes. There are at most seven.
"""

OPEN = ""
CLOSED_NODE_LOST = "node(s) lost: the kubelet no longer reports"
CLOSED_NO_HEALTH_POD = "node(s) without a health pod"
CLOSED_UNHEALTHY = "node(s) reported unhealthy"
CLOSED_NOT_READY = "node(s) with a health pod that is not Ready"
CLOSED_UNKNOWN = "node(s) whose health is unknown"
CLOSED_STARTS_FAIL = "node(s) on which pods fail to start"
CLOSED_HELD = "node(s) held closed by an operator"

REASONS = (
    CLOSED_NODE_LOST,
    CLOSED_NO_HEALTH_POD,
    CLOSED_UNHEALTHY,
    CLOSED_NOT_READY,
    CLOSED_UNKNOWN,
    CLOSED_STARTS_FAIL,
    CLOSED_HELD,
)
