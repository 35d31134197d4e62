"""The API server of most measurements: a process that answers list and watch from memory, and does as it is told."""

import json
import ssl
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from tools.bench.arms import WORK, Api
from tools.bench.processes import Measured
from tools.kit import kubeconfig

LEAVING_S = 0.05  # it answers the request that sends it away before it goes


@dataclass(frozen=True)
class Events:
    """sent: updates streamed so far. patches: taken so far."""

    sent: int
    patches: int


class Stub:
    """The API server with pre-rendered answers: nodes, one health pod and one Lease each, over TLS."""

    def __init__(self, binary: Path, *, nodes: int) -> None:
        account = WORK / "serviceaccount"
        account.mkdir(parents=True, exist_ok=True)
        ca_file, token_file = account / "ca.crt", account / "token"
        token_file.write_text("benchmark")
        argv = [binary, "apistub", "-nodes", str(nodes), "-ca-file", ca_file]
        self.child = Measured("apistub", argv, cwd=WORK)
        self.child.start()
        self._server = f"https://{self.child.listening_on()}"
        cluster, user = {"certificate-authority": str(ca_file)}, {"tokenFile": str(token_file)}
        file = kubeconfig.write(WORK / "apistub.kubeconfig", server=self._server, cluster=cluster, user=user)
        self.api = Api(self._server, file, account, ca_file=ca_file, token_file=token_file)
        self._context = ssl.create_default_context(cafile=str(ca_file))

    def stream(self, *, pods_per_s: int = 0, leases_per_s: int = 0, silent: int = 0) -> None:
        """From now on so many updates a second go to every watcher. silent: of so many nodes, the first ones, no Lease
        moves."""
        self._call("POST", f"/bench/rate?pods={pods_per_s}&leases={leases_per_s}&silent={silent}")

    def turn(self, nodes: range, *, ready: bool) -> None:
        """The health pods of these nodes become ready or not, all at once."""
        self._call("POST", f"/bench/ready?from={nodes.start}&to={nodes.stop}&ready={str(ready).lower()}")

    def leave(self, seconds: float, *, breaking: int) -> float:
        """No listener and no connection for so long; meanwhile the health pod of that node stops being ready.

        The monotonic time at which it is back.
        """
        self._call("POST", f"/bench/away?for={seconds}s&break={breaking}")
        return time.monotonic() + seconds + LEAVING_S

    def events(self) -> Events:
        return Events(**json.loads(self._call("GET", "/bench/events")))

    def _call(self, method: str, path: str) -> bytes:
        request = urllib.request.Request(self._server + path, method=method)
        with urllib.request.urlopen(request, timeout=10, context=self._context) as reply:
            body: bytes = reply.read()
        return body
