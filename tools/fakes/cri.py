"""A container runtime of which a test says what it answers: `python -m tools.fakes.cri SOCKET FILE`.

A process of its own: a gRPC server in a test's would hang the children that it forks. FILE is JSON, read at each
call: method -> the answer in protobuf's JSON, or a word: "hang", "garbage", "vanish", "large", "CODE:text", an error.
"METHOD/ID" comes before METHOD, for answers on one sandbox or container; a stream's answers are a list.

"do" is done as a runtime does it (`cri_store`); "*" is what all others answer. With "do, hang" and "do, vanish" it is
done, and the answer is lost.
"""

import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path
from typing import Any

from google.protobuf import json_format
from google.protobuf.message_factory import GetMessageClass

from agent.cri import rpc
from agent.cri.api_pb2 import DESCRIPTOR
from tools.fakes.cri_store import Refused, Store
from tools.kit.child import Child

# As the agent loads it: else children of a test die before they are executed, now and then.
(grpc,) = rpc.load("grpc")
ROOT = Path(__file__).resolve().parents[2]
METHODS = {
    f"/{service.full_name}/{method.name}": method
    for service in DESCRIPTOR.services_by_name.values()
    for method in service.methods
}
LARGE_BYTES = 17 * 2**20
HANGS_S = 60.0


class Runtime:
    """What a test holds: the socket, what it answers, and the process, which is not started yet."""

    def __init__(self, folder: Path) -> None:
        self.socket = str(folder / "cri.sock")
        self._file = folder / "answers.json"
        self.answers: dict[str, object] = {}
        self.store = Store(folder / "state.json")
        argv = [sys.executable, "-m", "tools.fakes.cri", self.socket, self._file]
        self.process = Child("cri", argv, log=folder / "cri.log", cwd=ROOT, lifeline=True)
        self.says(Version={"runtimeName": "fake", "runtimeVersion": "1.0", "runtimeApiVersion": "v1"})

    def start(self) -> None:
        self.process.start()
        self.process.wait_ready(lambda: self.process.lines()[-1:] == ["ready"], timeout_s=60)

    def hung(self, method: str) -> int:
        """How many calls of it have been told to hang until now."""
        return self.process.lines().count(f"hangs in {method}")

    def says(self, **answers: object) -> None:
        """From the next call on. A name's `__` stands for the / before an id."""
        self.answers |= {name.replace("__", "/"): answer for name, answer in answers.items()}
        new = self._file.with_suffix(".new")
        new.write_text(json.dumps(self.answers))
        new.replace(self._file)


def answer(method: Any, request: bytes, file: Path, context: Any) -> bytes:
    asked = GetMessageClass(method.input_type).FromString(request)
    id_ = getattr(asked, "container_id", "") or getattr(asked, "pod_sandbox_id", "")
    answers = json.loads(file.read_text())
    otherwise = answers.get("*", "UNIMPLEMENTED:unknown method")
    said = answers.get(f"{method.name}/{id_}", answers.get(method.name, otherwise))
    if isinstance(said, str) and said.startswith("do"):
        done = attempted(method.name, asked, file, context)
        said = said.removeprefix("do").removeprefix(", ")
        if not said:
            return done
    if not isinstance(said, str):
        return json_format.ParseDict(said, GetMessageClass(method.output_type)()).SerializeToString()
    if said == "vanish":
        os._exit(1)
    if said == "hang":
        print(f"hangs in {method.name}", flush=True)  # for who waits until it does
        time.sleep(HANGS_S)
    if said == "large":
        return b"\x0a\x00" * (LARGE_BYTES // 2)
    code, _, text = said.partition(":")
    if text:
        context.abort(grpc.StatusCode[code], text)
    return b"\xff" * 64  # of no message


def attempted(method: str, asked: Any, file: Path, context: Any) -> bytes:
    try:
        found = Store(file.with_name("state.json")).do(method, asked)
    except Refused as e:
        context.abort(grpc.StatusCode[e.code], str(e))
    if found is None:
        context.abort(grpc.StatusCode.UNIMPLEMENTED, "unknown method")
    return bytes(found.SerializeToString())


def told(method: Any, file: Path, context: Any) -> Iterator[bytes]:
    """What the list holds and will hold, until it has None: then the stream ends."""
    sent = 0
    while context.is_active():
        said = json.loads(file.read_text()).get(method.name, "UNIMPLEMENTED:unknown method")
        if isinstance(said, str):
            yield answer(method, b"", file, context)
            return
        for one in said[sent:]:
            if one is None:
                return
            yield json_format.ParseDict(one, GetMessageClass(method.output_type)()).SerializeToString()
        sent = max(sent, len(said))
        time.sleep(0.01)


class Handler(grpc.GenericRpcHandler):
    def __init__(self, file: Path) -> None:
        self._file = file

    def service(self, handler_call_details: Any) -> Any:
        method = METHODS.get(handler_call_details.method)
        if method is None:
            return None
        if method.server_streaming:
            return grpc.unary_stream_rpc_method_handler(lambda _request, context: told(method, self._file, context))
        return grpc.unary_unary_rpc_method_handler(
            lambda request, context: answer(method, request, self._file, context)
        )


def main(socket: str, file: str) -> None:
    server = grpc.server(futures.ThreadPoolExecutor(16), handlers=[Handler(Path(file))])
    Path(socket).unlink(missing_ok=True)
    server.add_insecure_port(f"unix:{socket}")
    server.start()
    print("ready", flush=True)  # the last word: a start looks for it
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    server.wait_for_termination()


if __name__ == "__main__":
    main(*sys.argv[1:])
