"""Pods without a wish of their own, one after the other, and how long each waited for its node; and whether whom the
running kube-scheduler asks has answered all the time.
"""

import contextlib
import threading
import time
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, Self

from kube import contract
from tests.hosts.deployment.api import AdminApi
from tests.hosts.deployment.conftest import namespaces
from tests.hosts.deployment.playbook import Ansible
from tests.hosts.deployment.probing import PODS, clear, pod
from tests.hosts.waiting import wait_for
from tools.testbed.hosts.hosts import Hosts
from tools.testbed.hosts.images import PAUSE
from tools.testbed.shared.api import Api, ApiError

# Where kube-scheduler asks in mode protect, and in enforce.
POD_URL, STATIC_URL = (f"http://127.0.0.1:{port}" for port in (contract.PORT_DAEMON_SET, contract.PORT_STATIC))
_EVERY_S = 1.0  # each costs a sandbox on a worker; the time without an extender is told by Asking


class Landings:
    """A context: pods are sent to any worker meanwhile. waited_s: by pod, None for one that never landed. every_s:
    through minutes on three hosts, one a second would be most of what they do."""

    def __init__(self, api: Api, every_s: float = _EVERY_S) -> None:
        self._api = api
        self._every_s = every_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="landings", daemon=True)
        self._sent: dict[str, float] = {}
        self.waited_s: dict[str, float] = {}

    def __enter__(self) -> Self:
        clear(self._api)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        clear(self._api)

    def settle(self) -> float:
        """After three more none is sent, and all have landed. The longest wait, infinite if one has not landed."""
        before = len(self.waited_s)
        wait_for(lambda: len(self.waited_s) > before + 2)
        self._stop.set()
        self._thread.join()
        landed = wait_for(lambda: self._look() or len(self.waited_s) == len(self._sent))
        return max(self.waited_s.values()) if landed and self.waited_s else float("inf")

    def _run(self) -> None:
        while not self._stop.wait(self._every_s):
            name = f"probing-{len(self._sent) + 1}"
            try:
                self._api.create(PODS, pod(name, None, PAUSE))
            except ApiError:  # the API server is busy: what is not sent is not missed
                continue
            self._sent[name] = time.monotonic()
            self._look()

    def _look(self) -> None:
        monotonic = time.monotonic()
        try:
            found = self._api.items(f"{PODS}?labelSelector=app%3Dprobing")
        except ApiError:  # busy too: the next look sees it, and the wait is as long as it was seen
            return
        for seen in found:
            name = seen["metadata"]["name"]
            if name in self._sent and name not in self.waited_s and seen["spec"].get("nodeName"):
                self.waited_s[name] = monotonic - self._sent[name]
                with contextlib.suppress(ApiError):  # cleared away at the end
                    self._api.delete(f"{PODS}/{name}", grace_s=0)


_ASKING = r"""
import glob, re, time, urllib.request
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
last = []
def asked():
    for path in last or glob.glob('/proc/[0-9]*/cmdline'):
        try:
            words = open(path).read().split('\0')
        except OSError:
            continue
        if words[0].endswith('kube-scheduler'):
            last[:] = [path]  # until it ends: to look at all processes each time costs more than to ask
            for word in words:
                if word.startswith('--config='):
                    return re.findall(r'urlPrefix: (\S+)', open(word[9:]).read())
    last.clear()
    return []
while True:
    for url in asked():
        try:
            opener.open(url + '/readyz', timeout=LIMIT_S).read()
            print('answered', url, time.monotonic(), flush=True)
        except OSError as e:
            print('missed', url, e, flush=True)
    time.sleep(0.05)
"""


class Asking:
    """A context: on the host, whom kube-scheduler's process was started to ask is asked for /readyz all the time.
    limit_s: of one question; nobody there is told at once, whatever it is."""

    def __init__(self, hosts: Hosts, host: str = "control-1", limit_s: float = 60.0) -> None:
        self._hosts, self._host = hosts, host
        self._program = _ASKING.replace("LIMIT_S", str(limit_s))

    def __enter__(self) -> Self:
        self._hosts.ssh(self._host, "cat > /root/asking.py", stdin=self._program)
        unit = "systemd-run --unit=asking --collect --quiet --property=StandardOutput=file:/root/asking.log"
        self._hosts.ssh(self._host, f"rm -f /root/asking.log; {unit} python3 /root/asking.py")
        return self

    def __exit__(self, *_: object) -> None:
        self._hosts.ssh(self._host, "systemctl stop asking", check=False)

    def told(self) -> tuple[set[str], list[str]]:
        """The URLs that have answered, and each question that had no answer."""
        lines = self._lines()
        answered = {line.split()[1] for line in lines if line.startswith("answered")}
        return answered, [line for line in lines if line.startswith("missed")]

    def longest_gap_s(self) -> float:
        """Between two answers; infinite if there were none."""
        return max((later - earlier for earlier, later in pairwise(self.answered())), default=float("inf"))

    def answered(self) -> list[float]:
        """When, by the clock that all hosts have in common."""
        return [float(line.split()[2]) for line in self._lines() if line.startswith("answered")]

    def _lines(self) -> list[str]:
        return self._hosts.ssh(self._host, "cat /root/asking.log").stdout.splitlines()


def repaired(api: AdminApi, ansible: Ansible, variables: Mapping[str, Any]) -> bool:
    """Whether pods land once site.yml has repaired what a deleted namespace took along."""
    api.delete(f"/api/v1/namespaces/{contract.NAMESPACE}")
    assert wait_for(lambda: contract.NAMESPACE not in namespaces(api))
    run = ansible.run("site.yml", **variables)
    assert run.code == 0, run.told()
    with Landings(api) as landings:
        return landings.settle() < float("inf")
