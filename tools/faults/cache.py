"""A DNS cache on the node that ends, or whose address goes: one of ours, on a link of its own as the usual one has."""

from tools.faults.fault import Fault

# Any name has one address, by UDP and TCP. It ends by itself after an hour.
SERVER = "169.254.20.10"
PORT = 53
_LINK = "readygate-dns"
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
_RUNS = f"[ -e {_PID} ] && kill -0 $(cat {_PID}) 2> /dev/null"
_START = f'{{ setsid python3 -c "{_SERVES}" > /dev/null 2>&1 < /dev/null & echo $! > {_PID}; }}'
_LISTENS = f"import socket; socket.create_connection(('{SERVER}', {PORT}), 1)"
_ENDS = f"if {_RUNS}; then kill $(cat {_PID}); fi; rm -f {_PID}"
_GOES = f"! ip link show {_LINK} > /dev/null 2>&1 || ip link delete {_LINK}"
# A bridge without ports for a dummy link, which not every kernel has.
_STANDS = (
    f"ip link show {_LINK} > /dev/null 2>&1 || ip link add name {_LINK} type bridge",
    f"ip address replace {SERVER}/32 dev {_LINK}; ip link set {_LINK} up",
    f"{_RUNS} || {_START}",
    f'n=0; until python3 -c "{_LISTENS}" 2> /dev/null || [ $((n += 1)) -gt 50 ]; do sleep 0.1; done',
)
_SETTINGS = f"{{nodeLocal: {SERVER}}}"
_CLEAR = (_ENDS, _GOES)

FAULTS = [
    Fault(
        "dns-server-ends",
        "dns",
        "the DNS server on the node ends; one of ours, in the place of a node-local cache",
        (_ENDS, "sleep 0.3"),
        _STANDS,
        _SETTINGS,
        _CLEAR,
    ),
    Fault(
        "dns-link-gone",
        "dns",
        "the link with the node-local cache's address is gone; the kernel tells of it (netlink)",
        (_GOES,),
        _STANDS,
        _SETTINGS,
        _CLEAR,
    ),
]
