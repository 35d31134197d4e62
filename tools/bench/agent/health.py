"""python -m tools.bench.agent.health: a gRPC server that is always healthy; prints its port, ends with its input.

A process of its own: one that serves gRPC must not start others (the library's threads do not survive the fork).
"""

import sys
from concurrent import futures
from typing import Any

from agent.cri import rpc

grpc, messages, stubs = rpc.load("grpc", "grpc_health.v1.health_pb2", "grpc_health.v1.health_pb2_grpc")


class _Health(stubs.HealthServicer):
    def Check(self, request: Any, context: Any) -> Any:  # noqa: ARG002, N802 - grpc's
        return messages.HealthCheckResponse(status=1)


def main() -> None:
    server = grpc.server(futures.ThreadPoolExecutor(4))
    stubs.add_HealthServicer_to_server(_Health(), server)
    port = server.add_insecure_port("0.0.0.0:0")  # a pod has an address of its own on loopback
    server.start()
    print(port, flush=True)
    sys.stdin.read()
    server.stop(None).wait(20)


if __name__ == "__main__":
    main()
