"""Ways of packets, cut on one host: to DNS, to the Service of the API server, to the other nodes; and who lays them."""

from tools.faults.fault import Fault

DNS, API = "10.96.0.10", "10.96.0.1"  # Services of a cluster that kubeadm has made
_MARK = "-m comment --comment readygate-fault"
_ROUTES = "/run/readygate-fault-routes"


def _dropped(name: str, check: str, what: str, match: str, settings: str, chain: str = "raw -I OUTPUT") -> Fault:
    """Packets of this host that match are dropped: those that it sends, before kube-proxy's rules see them."""
    table, _, hook = chain.partition(" -I ")
    iptables, rule = f"iptables -w -t {table}", f"{hook} {match} {_MARK} -j DROP"
    return Fault(
        name,
        check,
        what,
        (f"{iptables} -C {rule} 2>/dev/null || {iptables} -I {rule}",),
        (f"while {iptables} -D {rule} 2>/dev/null; do :; done",),
        settings,
    )


FAULTS = [
    _dropped(
        "dns-service",
        "dns",
        "the address of the DNS Service leads nowhere; the servers behind it are reached",
        f"-d {DNS} -p udp --dport 53",
        f"{{service: {DNS}, servers: [addresses of the CoreDNS pods]}}",
    ),
    _dropped(
        "dns-service-tcp",
        "dns",
        "the address of the DNS Service leads nowhere by TCP alone",
        f"-d {DNS} -p tcp --dport 53",
        f"{{service: {DNS}, servers: [addresses of the CoreDNS pods]}}",
    ),
    _dropped(
        "service-path",
        "servicePath",
        "the Service address of the API server leads nowhere; the API server is reached",
        f"-d {API} -p tcp --dport 443",
        f"{{service: {API}, apiServers: [addresses of the control planes]}}",
    ),
    _dropped(
        "full-size-packets",
        "servicePath",
        "packets of more than 1000 bytes to kubelets are lost without a word",
        "-p tcp --dport 10250 -m length --length 1000:65535",
        f"{{service: {API}, peers: [addresses of the other nodes]}}",
    ),
    _dropped(
        "full-size-packets-service",
        "servicePath",
        "packets of more than 1000 bytes that come from the Service address of the API server are lost without a word",
        f"-p tcp -m conntrack --ctorigdst {API} -m length --length 1000:65535",
        f"{{service: {API}, apiServers: [addresses of the control planes]}}",
        "mangle -I INPUT",
    ),
    Fault(
        "default-route-gone",
        "servicePath",
        "the default route is gone, so nothing can be sent to Service addresses; the kernel tells of it (netlink)",
        (
            f"[ -s {_ROUTES} ] || {{ ip -4 route show default > {_ROUTES}.new && mv {_ROUTES}.new {_ROUTES}; }}",
            "while ip -4 route del default 2> /dev/null; do :; done",
        ),
        (
            f"[ ! -e {_ROUTES} ] || {{ while read -r route; do ip route replace $route || exit 1; done < {_ROUTES}; }}",
            f"rm -f {_ROUTES} {_ROUTES}.new",
        ),
        f"{{service: {API}, apiServers: [addresses of the control planes]}}",
    ),
]
