"""python -m tools.bench.agent.as_node SERVER --config FILE: the agent before an API server at http://HOST:PORT, as with
a service account: without a kubeconfig, and so without the package `kubernetes`."""

import sys

from agent.__main__ import main
from kube import connect
from kube.auth import Connection
from tools.fakes.anonymous import Anonymous

if __name__ == "__main__":
    server = sys.argv[1]
    connect.in_cluster = lambda: Connection(server=server, ssl_context=None, credentials=Anonymous())
    sys.exit(main(sys.argv[2:]))
