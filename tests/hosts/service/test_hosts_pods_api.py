"""The API server cannot be reached, and the agent has just been started: its kubelet tells it the health pods."""

import time
from itertools import groupby

from tests.hosts.service.conftest import PODS_API
from tests.hosts.service.node_mode import UNIT, Node
from tests.hosts.waiting import wait_until

CUT_OFF = "OUTPUT -p tcp --dport 6443 -j REJECT --reject-with tcp-reset"
FOUND = 'judge found finding="{}"'


def test_without_the_api_server_the_kubelets_own_pods_are_looked_at(nodes: list[Node]) -> None:
    """A kubelet of 1.35 tells none: the agent says that it knows no health pods, until it has the API server back."""
    node = nodes[0]

    def words() -> list[bool | None]:
        return [one.containers_ready for one in node.ours() if one.at >= since]

    def word() -> bool | None:
        return words()[-1] if words() else None

    def log() -> str:
        return node.log.read_text(errors="replace")[before:]

    with node.read():
        wait_until(node.ours, "it has said something")
        before = len(node.log.read_text(errors="replace"))
        node.ssh(f"iptables -w -I {CUT_OFF}")
        try:
            since = time.time()
            node.ssh(f"systemctl restart --no-block {UNIT}")
            if PODS_API:
                wait_until(lambda: word() is True, lambda: f"it looks at its pod: {log()}")
                node.mode("failing")
                wait_until(lambda: word() is False, lambda: f"it sees its probe fail: {log()}")
                node.mode("ok")
                wait_until(lambda: word() is True, lambda: f"it sees it pass again: {log()}")
                finding = "APIServerAway"
            else:
                finding = "PodsUnknown"
            wait_until(lambda: FOUND.format(finding) in log(), lambda: f"it says so: {log()}")
        finally:
            node.ssh(f"iptables -w -D {CUT_OFF}")
        over = f'judge found no longer finding="{finding}"'
        wait_until(lambda: over in log(), lambda: f"it has the API server back: {log()}")
        wait_until(lambda: word() is True, lambda: f"and its pod: {log()}")
    known = (word for word in words() if word is not None)
    assert ([True, False, True] if PODS_API else [True]) == [word for word, _ in groupby(known)]
