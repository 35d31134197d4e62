"""Everybody waits for a disk: a control group of our own, whose one process waits for a read that never comes back.
What the kernel says of that group (version 2) stands in the place of what it says of the machine: nobody else waits."""

from tools.faults.fault import Fault

PROC = "/run/readygate-fault-stalls"
_DISK, _MODE, _WAITS, _SERVER = (f"{PROC}/{name}" for name in ("disk", "hangs", "waits", "server.pid"))
_GROUPS = f"{PROC}/groups"
_GROUP = f"{_GROUPS}/readygate-fault-$(cat /etc/machine-id || uname -n)"  # all hosts see those of the machine
_PRESSURE = f"{PROC}/pressure/io"
# Of FUSE's protocol (7.31) what one file takes that is read, by the numbers of its header; it is node 2. It ends by
# itself after six hours.
_SERVES = f"""
import ctypes, os, signal, struct, threading, time
signal.alarm(21600)
pack, unpack = struct.pack, struct.unpack_from
link = os.open('/dev/fuse', os.O_RDWR)
told = f'fd={{link}},rootmode=40000,user_id=0,group_id=0'.encode()
assert ctypes.CDLL(None).mount(b'readygate-fault', b'{_DISK}', b'fuse.readygate-fault', 0, told) == 0
def attributes(node):
    mode, size = (0o040700, 0) if node == 1 else (0o100600, 65536)
    return pack('<6Q10I', node, size, 0, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)
def reply(unique, body=b'', error=0):
    try:
        os.write(link, pack('<IiQ', 16 + len(body), -error, unique) + body)
    except OSError:
        pass
def read(unique, size):
    open('{_WAITS}', 'w').close()
    while os.path.exists('{_MODE}'):
        time.sleep(0.05)
    reply(unique, bytes(size))
while True:
    request = os.read(link, 1 << 20)
    _, what, unique, node = unpack('<IIQQ', request)
    if what == 26:
        reply(unique, pack('<4I2H8I', 7, 31, 65536, 0, 12, 9, 65536, 1, 0, 0, 0, 0, 0, 0))
    elif what == 3:
        reply(unique, pack('<Q2I', 0, 0, 0) + attributes(node))
    elif what == 1:
        reply(unique, pack('<4Q2I', 2, 0, 0, 0, 0, 0) + attributes(2))
    elif what in (14, 18, 25):
        reply(unique, pack('<QII', 0, 0, 0) if what == 14 else b'')
    elif what == 15:
        threading.Thread(target=read, args=(unique, unpack('<I', request, 56)[0]), daemon=True).start()
    elif what not in (2, 36, 42):
        reply(unique, error=38)
"""
_RUNS = f"[ -e {_SERVER} ] && kill -0 $(cat {_SERVER}) 2> /dev/null && mountpoint -q {_DISK}"
_START = f'{{ setsid python3 -c "{_SERVES}" > /dev/null 2>&1 < /dev/null & echo $! > {_SERVER}; }}'
_WAIT = f"n=0; until mountpoint -q {_DISK} || [ $((n += 1)) -gt 50 ]; do sleep 0.1; done; mountpoint -q {_DISK}"
_GOES = f"umount -l {_DISK} 2> /dev/null; [ ! -e {_SERVER} ] || kill -KILL $(cat {_SERVER}) 2> /dev/null"
_STANDS = (
    "[ -e /dev/fuse ] || mknod /dev/fuse c 10 229",
    f"mkdir -p {_DISK} {_GROUPS} {PROC}/pressure; mountpoint -q {_GROUPS} || mount -t cgroup2 none {_GROUPS}",
    f"mkdir -p {_GROUP}; touch {_PRESSURE}",
    f"mountpoint -q {_PRESSURE} || mount --bind {_GROUP}/io.pressure {_PRESSURE}",
    f"{_RUNS} || {{ {_GOES}; {_START}; {_WAIT}; }}",
)
# The one outside the group waits for the disk, those in it for the page that the other has locked: that the kernel
# counts. Two, as it brings no averages up to date of a group of one that is on the processor that would do so.
_READ, _ALONE = f"exec cat {_DISK}/file", "> /dev/null 2>&1 < /dev/null &"
_READS = (
    f"rm -f {_WAITS}; setsid sh -c '{_READ}' {_ALONE} "
    f"n=0; until [ -e {_WAITS} ] || [ $((n += 1)) -gt 100 ]; do sleep 0.1; done; "
    f'for i in 1 2; do setsid sh -c "echo \\$\\$ > {_GROUP}/cgroup.procs; {_READ}" {_ALONE} done; sleep 0.3'
)

FAULTS = [
    Fault(
        "stalls",
        "pressure",
        "everybody waits for a disk, by the kernel's word on a control group; a fifth of a minute is the limit",
        (
            *_STANDS,
            f"[ -e {_MODE} ] || {{ touch {_MODE}; {_READS}; }}",
        ),
        (f"rm -f {_MODE}", *_STANDS, "sleep 0.5"),
        f"{{look: [io], proc: {PROC}, ioFailPercent: 20}}",
        (
            f"rm -f {_MODE}; sleep 0.5; ! mountpoint -q {_PRESSURE} || umount {_PRESSURE}",
            f"! mountpoint -q {_GROUPS} || {{ [ ! -e {_GROUP} ] || rmdir {_GROUP}; umount -l {_GROUPS}; }}",
            f"{_GOES}; rm -rf {PROC}",
        ),
    ),
]
