"""Faults that need no cluster, in namespaces of this machine: injected, found, healed, good again."""

import json
import os
import subprocess
import sys

import pytest

from tests.faults.fault import Fault
from tests.faults.registry import FAULTS
from tests.kit.ability import cannot_run

NAMES = (
    "disk-read-only",
    "disk-full",
    "disk-gone",
    "addresses-leaked",
    "certificate-ended",
    "gpu-missing",
    "cni-gone",
    "cni-broken",
    "cni-no-plugin",
    "plugin-hangs",
    "neighbours-full",
    "dns-server-ends",
)
# A node as far as these checks look at it: nothing of it is this machine's.
NODE = """
set -e
for folder in /var/lib /var/tmp /etc/cni /opt; do mkdir -p $folder; mount -t tmpfs none $folder; done
mount -t tmpfs none /run
ip link set lo up
mkdir -p /etc/cni/net.d /opt/cni/bin /var/lib/kubelet/pki /var/lib/kubelet/plugins_registry
cat > /etc/cni/net.d/10-bridge.conflist <<'END'
{"cniVersion": "0.4.0", "name": "pods", "plugins": [{"type": "bridge", "ipam":
  {"type": "host-local", "ranges": [[{"subnet": "10.244.1.0/24"}]]}}]}
END
touch /opt/cni/bin/bridge && chmod +x /opt/cni/bin/bridge
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=node -days 365 \
  -keyout /dev/null -out /var/lib/kubelet/pki/kubelet-client-current.pem 2> /dev/null
set +e
"""
# What a heal has left running.
END = "for pid in /run/readygate-fault*.pid; do [ ! -e $pid ] || kill $(cat $pid); done"
LOOK = """
import json, os, sys
import msgspec, yaml
from agent import settings
from agent.checks.catalogue import check_spec
kind, text = sys.argv[1:3]
given = {"name": "x", kind: yaml.safe_load(text), "timeoutSeconds": 20}
run = check_spec(msgspec.convert(given, settings.Check)).run
print(json.dumps(run().state), flush=True)
for lines in sys.argv[3:]:
    assert os.system(lines) == 0, lines
    print(json.dumps(run().state), flush=True)
"""


@pytest.mark.parametrize("fault", [FAULTS[name] for name in NAMES], ids=NAMES)
def test_it_is_found_and_healed_for_certain(fault: Fault) -> None:
    if os.geteuid() != 0:
        cannot_run("file systems are mounted, which only root may: sudo make test")
    inject, heal = (" && ".join(f"{{ {line}; }}" for line in lines) for lines in (fault.inject, fault.heal))
    look = [sys.executable, "-c", LOOK, fault.check, fault.settings, heal, inject, inject, heal, heal]
    words = ["unshare", "--mount", "--net", "sh", "-c", f'{NODE}\n"$@"\n{END}', "sh", *look]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
    assert done.stderr == ""
    # Before a heal that heals nothing; then twice injected, twice healed.
    _, *after = [json.loads(line) for line in done.stdout.splitlines()]
    bad = "hung" if fault.name == "plugin-hangs" else "failed"
    assert after == ["passed", bad, bad, "passed", "passed"]
