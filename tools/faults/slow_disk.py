"""A disk whose syncs are slow, or never come back: a file system of our own (FUSE), all the rest of which is quick."""

from tools.faults.fault import Fault

DISK = "/var/lib/readygate-fault-slow"
_MODE, _PID = "/run/readygate-fault-slow.mode", "/run/readygate-fault-slow.pid"
SLOW_S = 0.7
# What open, write, fsync and unlink take of FUSE's protocol (7.31), by the numbers of its header; the folder is node 1,
# and sizes and times are nobody's business. It ends by itself after six hours: who has it bound sees no other later.
_SERVES = f"""
import ctypes, os, signal, struct, threading, time
signal.alarm(21600)
pack, unpack = struct.pack, struct.unpack_from
link = os.open('/dev/fuse', os.O_RDWR)
libc = ctypes.CDLL(None, use_errno=True)
told = f'fd={{link}},rootmode=40000,user_id=0,group_id=0'.encode()
assert libc.mount(b'readygate-fault', b'{DISK}', b'fuse.readygate-fault', 0, told) == 0, ctypes.get_errno()
names, last = dict(), 1
def attributes(node):
    mode, links = (0o040700, 2) if node == 1 else (0o100600, 1)
    return pack('<6Q10I', node, 0, 0, 0, 0, 0, 0, 0, 0, mode, links, 0, 0, 0, 4096, 0)
def entry(node):
    return pack('<4Q2I', node, 0, 0, 0, 0, 0) + attributes(node)
def reply(unique, body=b'', error=0):
    os.write(link, pack('<IiQ', 16 + len(body), -error, unique) + body)
def mode():
    try:
        return open('{_MODE}').read().strip()
    except OSError:
        return ''
def sync(unique):
    time.sleep({SLOW_S} if mode() == 'slow' else 0)
    while mode() == 'hangs':
        time.sleep(0.05)
    try:
        reply(unique)
    except OSError:
        pass
while True:
    request = os.read(link, 1 << 20)
    _, what, unique, node = unpack('<IIQQ', request)
    body = request[40:]
    try:
        if what == 26:
            reply(unique, pack('<4I2H8I', 7, 31, 65536, 0, 12, 9, 65536, 1, 0, 0, 0, 0, 0, 0))
        elif what in (2, 36, 42):
            pass
        elif what in (3, 4):
            reply(unique, pack('<Q2I', 0, 0, 0) + attributes(node))
        elif what == 1:
            found = names.get(body.rstrip(bytes(1)))
            reply(unique, entry(found)) if found else reply(unique, error=2)
        elif what == 35:
            last += 1
            names[body[16:].rstrip(bytes(1))] = last
            reply(unique, entry(last) + pack('<QII', 0, 0, 0))
        elif what == 10:
            names.pop(body.rstrip(bytes(1)), None)
            reply(unique)
        elif what == 16:
            reply(unique, pack('<II', *unpack('<I', body, 16), 0))
        elif what == 17:
            reply(unique, pack('<5Q4I24x', 1 << 20, 1 << 20, 1 << 20, 0, 0, 4096, 255, 4096, 0))
        elif what == 20:
            threading.Thread(target=sync, args=(unique,), daemon=True).start()
        elif what in (18, 25, 27, 29):
            reply(unique, bytes(16) if what == 27 else b'')
        else:
            reply(unique, error=38)
    except OSError:
        pass
"""
_RUNS = f"[ -e {_PID} ] && kill -0 $(cat {_PID}) 2> /dev/null && mountpoint -q {DISK}"
_START = f'{{ setsid python3 -c "{_SERVES}" > /dev/null 2>&1 < /dev/null & echo $! > {_PID}; }}'
_WAIT = f"n=0; until mountpoint -q {DISK} || [ $((n += 1)) -gt 50 ]; do sleep 0.1; done; mountpoint -q {DISK}"
_GOES = f"umount -l {DISK} 2> /dev/null; [ ! -e {_PID} ] || kill -KILL $(cat {_PID}) 2> /dev/null; rm -f {_PID}"
_STANDS = (
    "[ -e /dev/fuse ] || mknod /dev/fuse c 10 229",
    f"{_RUNS} || {{ {_GOES}; mkdir -p {DISK}; {_START}; {_WAIT}; }}",
)
_HEAL = (f"rm -f {_MODE}", *_STANDS, "sleep 0.5")  # until then whoever was killed in a sync cannot end
_CLEAR = (f"rm -f {_MODE}; {_GOES}; [ ! -e {DISK} ] || rmdir {DISK}",)
_SETTINGS = f"{{look: [cpu], folder: {DISK}}}"
# On a busy machine a sync is late here that does come back: that is the other fault.
_HANGS = f"{{look: [cpu], folder: {DISK}, fsyncWarnMilliseconds: 10000}}"

FAULTS = [
    Fault(
        "syncs-hang",
        "pressure",
        "a sync does not come back; anything else on that disk does",
        (*_STANDS, f"echo hangs > {_MODE}"),
        _HEAL,
        _HANGS,
        _CLEAR,
    ),
    Fault(
        "syncs-slow",
        "pressure",
        f"each sync takes {SLOW_S} s, which warns until a hundred have been quick",
        (*_STANDS, f"echo slow > {_MODE}"),
        _HEAL,
        _SETTINGS,
        _CLEAR,
    ),
]
