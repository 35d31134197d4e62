"""Faults of the network of a host's pods, of which the kubelet sees nothing as long as its own network is well."""

from tools.faults.fault import Fault

BRIDGE = "cni0"
PORT = 9375  # of the agents
_MARK = "-m comment --comment readygate-fault"
_ROUTES = "/run/readygate-fault-pod-routes"
_TABLE = "nft delete table ip kube-proxy"  # of its mode nftables
_HAS_RULES = (
    "nft list table ip kube-proxy | grep -q service- || iptables -w -t nat -S KUBE-SERVICES | grep -q KUBE-SVC-"
)
_SHOWN = "ip -4 route show | grep ' via ' | grep -v default"
_RIGHT = f"ip route del $net dev {BRIDGE} 2> /dev/null; ip route replace $net $rest"
_PORTS = f"ip -o link show master {BRIDGE} | cut -d: -f2 | cut -d@ -f1"
CHECK = "podNetwork"


def _rule(name: str, what: str, place: str, match: str) -> Fault:
    """Packets that this host forwards are dropped where they match."""
    rule = f"{place} {match} {_MARK} -j DROP"
    inject = f"iptables -w -C {rule} 2>/dev/null || iptables -w -I {rule}"
    return Fault(name, CHECK, what, (inject,), (f"while iptables -w -D {rule} 2>/dev/null; do :; done",))


FAULTS = [
    Fault(
        "pod-bridge-down",
        CHECK,
        "the bridge of the pods is down",
        (f"ip link set {BRIDGE} down",),
        (f"ip link set {BRIDGE} up",),
    ),
    Fault(
        "pod-links-down",
        CHECK,
        "the links from the host to its pods are down",
        (f"for link in $({_PORTS}); do ip link set $link down || exit 1; done",),
        (f"for link in $({_PORTS}); do ip link set $link up || exit 1; done",),
    ),
    _rule("forward-dropped", "packets of pods are not forwarded", "FORWARD", f"-i {BRIDGE}"),
    _rule(
        "pod-packets-large",
        "packets of more than 1000 bytes between pods are lost without a word, as where the MTU is too large",
        "FORWARD",
        "-m length --length 1000:65535",
    ),
    Fault(
        "pod-routes-wrong",
        CHECK,
        "the routes to the pods of other hosts lead to this host's own pods",
        (
            f"[ -s {_ROUTES} ] || {{ {_SHOWN} > {_ROUTES}.new && mv {_ROUTES}.new {_ROUTES}; }}",
            f"while read -r net rest; do ip route replace $net dev {BRIDGE} || exit 1; done < {_ROUTES}",
        ),
        (
            f"[ ! -e {_ROUTES} ] || {{ while read -r net rest; do {_RIGHT} || exit 1; done < {_ROUTES}; }}",
            f"rm -f {_ROUTES} {_ROUTES}.new",
        ),
    ),
    Fault(
        "services-flushed",
        CHECK,
        "kube-proxy is gone, and so are its rules for Services",
        ("systemctl stop kube-proxy", f"{_TABLE} 2> /dev/null || iptables -w -t nat -F KUBE-SERVICES"),
        # It is over once kube-proxy, which starts in some seconds, has written its rules.
        (
            "systemctl start kube-proxy",
            f"for _ in $(seq 300); do {{ {_HAS_RULES}; }} 2> /dev/null && break; sleep 0.1; done",
        ),
    ),
]
