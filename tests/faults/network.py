"""Ways of packets, cut on one host: to DNS, to the Service of the API server, to the other nodes."""

from tests.faults.fault import Fault

DNS, API = "10.96.0.10", "10.96.0.1"  # Services of a cluster that kubeadm has made
_MARK = "-m comment --comment readygate-fault"


def _dropped(name: str, check: str, what: str, match: str, settings: str) -> Fault:
    """Packets of this host that match are dropped before kube-proxy's rules see them."""
    rule = f"OUTPUT {match} {_MARK} -j DROP"
    return Fault(
        name,
        check,
        what,
        (f"iptables -w -t raw -C {rule} 2>/dev/null || iptables -w -t raw -I {rule}",),
        (f"while iptables -w -t raw -D {rule} 2>/dev/null; do :; done",),
        settings,
    )


# In the place of a DNS cache on the node: any name has one address, by UDP and TCP. It ends by itself after an hour.
SERVER = "127.0.0.153"
PORT = 53
_PID = "/run/readygate-fault-dns.pid"
_SERVES = f"""
import signal, socket, threading
signal.alarm(3600)
def reply(q):
    end = q.index(0, 12) + 5
    answer = bytes.fromhex('c00c000100010000001e0004') + bytes([10, 96, 0, 1])
    return q[:2] + bytes.fromhex('81800001000100000000') + q[12:end] + answer
def tcp():
    while True:
        peer = listening.accept()[0]
        try:
            said = reply(peer.recv(1024)[2:])
            peer.sendall(len(said).to_bytes(2, 'big') + said)
        except Exception:
            pass
        peer.close()
udp, listening = socket.socket(2, 2), socket.socket()
listening.setsockopt(1, 2, 1)
udp.bind(('{SERVER}', {PORT})), listening.bind(('{SERVER}', {PORT})), listening.listen()
threading.Thread(target=tcp, daemon=True).start()
while True:
    try:
        said, peer = udp.recvfrom(1024)
        udp.sendto(reply(said), peer)
    except Exception:
        pass
"""
_START = f'{{ setsid python3 -c "{_SERVES}" > /dev/null 2>&1 < /dev/null & echo $! > {_PID}; }}'
_LISTENS = f"import socket; socket.create_connection(('{SERVER}', {PORT}), 1)"

FAULTS = [
    Fault(
        "dns-server-ends",
        "dns",
        "the DNS server on the node ends; one of ours, in the place of a node-local cache",
        (f"kill $(cat {_PID} 2> /dev/null) 2> /dev/null; rm -f {_PID}", "sleep 0.3"),
        (
            f"[ -e {_PID} ] && kill -0 $(cat {_PID}) 2> /dev/null || {_START}",
            f'n=0; until python3 -c "{_LISTENS}" 2> /dev/null || [ $((n += 1)) -gt 50 ]; do sleep 0.1; done',
        ),
        f"{{nodeLocal: {SERVER}}}",
    ),
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
        "the same for TCP alone",
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
]
