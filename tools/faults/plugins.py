"""A plugin of the kubelet that hangs or was killed: one of ours, with the one answer that a registration takes."""

from tools.faults.fault import Fault

NAME = "readygate-fault.example.com"
_SOCKET = "/var/lib/kubelet/plugins_registry/readygate-fault.sock"
_PID = "/run/readygate-fault-plugin.pid"
# GetInfo by hand, as the hosts have no gRPC: HTTP/2 frames (RFC 9113) and a PluginInfo. The type is one that a kubelet
# has no handler for, so that it registers nothing. It ends by itself after an hour.
_SERVES = f"""
import os, signal, socket, struct, threading
signal.alarm(3600)
def text(number, value):
    return bytes([8 * number + 2, len(value)]) + value
def frame(kind, flags, stream, body=b''):
    return struct.pack('>I', len(body))[1:] + bytes([kind, flags]) + struct.pack('>I', stream) + body
info = text(1, b'ReadygateFault') + text(2, b'{NAME}') + text(3, b'{_SOCKET}') + text(4, b'1.0.0')
began = bytes.fromhex('880f1010') + b'application/grpc'
ended = bytes.fromhex('000b') + b'grpc-status' + bytes.fromhex('0130')
def answer(link):
    try:
        reads = link.makefile('rb')
        reads.read(24)
        link.sendall(frame(4, 0, 0))
        while head := reads.read(9):
            body = reads.read(int.from_bytes(head[:3], 'big'))
            kind, flags, stream = head[3], head[4], int.from_bytes(head[5:], 'big')
            if kind in (4, 6) and not flags & 1:
                link.sendall(frame(kind, 1, 0, body if kind == 6 else b''))
            if kind == 0 and flags & 1:
                said = bytes(1) + struct.pack('>I', len(info)) + info
                link.sendall(frame(1, 4, stream, began) + frame(0, 0, stream, said) + frame(1, 5, stream, ended))
    except OSError:
        pass
    link.close()
listening = socket.socket(socket.AF_UNIX)
if os.path.exists('{_SOCKET}'):
    os.unlink('{_SOCKET}')
listening.bind('{_SOCKET}'), listening.listen()
while True:
    threading.Thread(target=answer, args=listening.accept()[:1], daemon=True).start()
"""
_RUNS = f"[ -e {_PID} ] && kill -0 $(cat {_PID}) 2> /dev/null"
_START = f'{{ setsid python3 -c "{_SERVES}" > /dev/null 2>&1 < /dev/null & echo $! > {_PID}; }}'
_LISTENS = f"import socket; socket.socket(socket.AF_UNIX).connect('{_SOCKET}')"
_WAIT = f'n=0; until python3 -c "{_LISTENS}" 2> /dev/null || [ $((n += 1)) -gt 50 ]; do sleep 0.1; done'
_STANDS = (f"mkdir -p {_SOCKET.rpartition('/')[0]}", f"{_RUNS} || {{ {_START}; {_WAIT}; }}")
_ENDS = f"if {_RUNS}; then kill -KILL $(cat {_PID}); fi; rm -f {_PID}"
_SETTINGS = f"{{expected: [{NAME}]}}"

FAULTS = [
    Fault(
        "plugin-hangs",
        "kubeletPlugins",
        "a plugin stands still (SIGSTOP): its socket lets everybody in and answers nobody",
        (*_STANDS, f"kill -STOP $(cat {_PID})"),
        (*_STANDS, f"kill -CONT $(cat {_PID})"),
        _SETTINGS,
        (f"{_ENDS} {_SOCKET}",),
    ),
    Fault(
        "plugin-gone",
        "kubeletPlugins",
        "a plugin was killed, and left its socket",
        (_ENDS,),
        _STANDS,
        _SETTINGS,
        (f"{_ENDS} {_SOCKET}",),
    ),
]
