"""A network port that has no link: one end of a pair of interfaces of its own."""

from tools.faults.fault import Fault

PORT, _PEER = "rgfault0", "rgfault1"
_MADE = (
    f"ip link show {PORT} > /dev/null 2>&1 || ip link add {PORT} type veth peer name {_PEER}; "
    f"ip link set {PORT} up; ip link set {_PEER} up"
)
_REMOVED = f"ip link delete {PORT} 2> /dev/null || true"
_FLAP = f"ip link set {_PEER} down; sleep 0.2; ip link set {_PEER} up; sleep 0.2"

FAULTS = [
    Fault(
        "link-down",
        "link",
        "a needed network port has no link",
        (_MADE, f"ip link set {_PEER} down"),
        (_MADE,),
        f"{{ports: [{PORT}]}}",
        (_REMOVED,),
    ),
    Fault(
        "link-flaps",
        "link",
        "the link of a needed network port goes down four times; it is over ten seconds later",
        (_MADE, *[_FLAP] * 4),
        (_MADE,),
        f"{{ports: [{PORT}], flapSeconds: 10}}",
        (_REMOVED,),
    ),
]
