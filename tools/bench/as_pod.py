"""python -m tools.bench.as_pod FOLDER --config FILE: readygate's extender as it runs in a pod.

The service account (token, ca.crt) is read from FOLDER instead of its fixed place, which belongs to the kubelet; where
the API server is, the environment says as in a pod. So neither the package `kubernetes` nor a kubeconfig is involved.
"""

import functools
import sys
from pathlib import Path

from extender.__main__ import main
from kube import connect

if __name__ == "__main__":
    connect.in_cluster = functools.partial(connect.in_cluster, Path(sys.argv[1]))
    sys.exit(main(sys.argv[2:]))
