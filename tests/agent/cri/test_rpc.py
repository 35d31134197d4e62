"""Commands that are started while gRPC is spoken: in a process of its own, which forks."""

import subprocess
import sys

import pytest

SCRIPT = """
import subprocess, sys, tempfile, threading
from concurrent import futures
from importlib import import_module
import_module(sys.argv[1])
from agent import rpc
from agent.processes import spawn  # noqa: F401 - from now on subprocess forks, for there is no other way to be told
(grpc,) = rpc.load("grpc")

class Echo(grpc.GenericRpcHandler):
    def service(self, _call):
        return grpc.unary_unary_rpc_method_handler(lambda request, _context: request)

socket = tempfile.mkdtemp() + "/socket"
server = grpc.server(futures.ThreadPoolExecutor(4), handlers=[Echo()])
server.add_insecure_port("unix:" + socket)
server.start()
call, over = rpc.channel(grpc, socket, most_bytes=1000).unary_unary("/a/b"), threading.Event()

def ask():
    while not over.is_set():
        call(b"x", timeout=60)

threads = [threading.Thread(target=ask) for _ in range(3)]
[thread.start() for thread in threads]
done = [subprocess.run(["true"], capture_output=True) for _ in range(200)]
over.set()
[thread.join() for thread in threads]
server.stop(0)
print({(one.returncode, one.stderr) for one in done})
"""


@pytest.mark.parametrize(
    "first",
    [
        pytest.param("agent.cri.rpc", id="it is loaded by whom it is for"),
        pytest.param("agent.cri.client", id="a module that stands on it comes first"),
        pytest.param("agent.kubelet.runtime.cri_runtime", id="and another one"),
    ],
)
def test_commands_beside_calls_are_executed(first: str) -> None:
    """Where gRPC looks after forks it starts a thread in the child, whose descriptors are closed before the command is
    executed: "epoll_wait error: Bad file descriptor", and the child is dead, one in twenty times."""
    done = subprocess.run([sys.executable, "-c", SCRIPT, first], capture_output=True, text=True, timeout=300)
    assert "{(0, b'')}\n" == done.stdout, done.stderr[-2000:]
