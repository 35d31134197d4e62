"""A file system below a folder that the service has bound answers nobody, as of a server that is gone: the service is
started all the same, and what it looks at beside that is well."""

from collections.abc import Iterator
from contextlib import contextmanager

from tests.hosts.service.conftest import Service
from tests.hosts.service.node_mode import UNIT, Node, Verdicts
from tests.hosts.waiting import wait_until
from tools.kit.programs import Program

PLACE, PID = "/var/lib/kubelet/readygate-test-dead", "/run/readygate-test-dead.pid"
# A FUSE file system whose server holds the descriptor and never reads from it; it ends by itself after ten minutes.
SILENT = f"""
import ctypes, os, signal, time
signal.alarm(600)
link = os.open('/dev/fuse', os.O_RDWR)
told = f'fd={{link}},rootmode=40000,user_id=0,group_id=0'.encode()
assert ctypes.CDLL(None).mount(b'silent', b'{PLACE}', b'fuse.silent', 0, told) == 0
time.sleep(600)
"""
CHECK = {"name": "filesystem", "filesystem": {"mounts": ["/host/var/lib/kubelet"]}}


@contextmanager
def dead_volume(node: Node) -> Iterator[None]:
    """/proc tells whether it is there: to look at it would be to wait."""
    start = f'setsid python3 -c "{SILENT}" > /dev/null 2>&1 < /dev/null & echo $! > {PID}'
    there = f"n=0; until grep -q {PLACE} /proc/mounts || [ $((n += 1)) -gt 50 ]; do sleep 0.1; done"
    try:
        node.ssh(f"[ -e /dev/fuse ] || mknod /dev/fuse c 10 229; mkdir -p {PLACE}; {start}; {there}")
        assert PLACE in node.ssh("cat /proc/mounts")
        yield
    finally:
        node.ssh(f"kill -KILL $(cat {PID}); umount -l {PLACE}; rmdir {PLACE}; rm -f {PID}")


def test_the_service_starts_beside_a_volume_that_answers_nobody(service: Service, extender: Program) -> None:
    node = service.nodes[0]
    service.play(readygate_node_profile="fast", readygate_node_checks=[CHECK])

    def passes() -> bool:
        return node.checks().get("filesystem", {}).get("state") == "passed"

    wait_until(passes, lambda: f"it passes: {node.checks()}")
    with Verdicts(extender, node.name).asked() as verdicts, dead_volume(node):
        node.ssh(f"timeout 60 systemctl restart {UNIT}")
        wait_until(passes, lambda: f"it passes: {node.checks()}")
        told = node.ssh(f"systemctl show {UNIT} --property=ActiveState,Result,NRestarts")
    assert {"ActiveState=active", "Result=success", "NRestarts=0"} == set(told.split())
    assert ["open"] == verdicts.words
