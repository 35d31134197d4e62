"""Faults that need no cluster, in namespaces of this machine: injected, found, healed, good again; nothing is left."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from tools.faults import network
from tools.faults.fault import Fault
from tools.faults.registry import FAULTS
from tools.kit.ability import cannot_run

NAMES = (
    "disk-read-only",
    "disk-full",
    "disk-gone",
    "disk-not-mounted",
    "inodes-used-up",
    "addresses-leaked",
    "certificate-ended",
    "gpu-missing",
    "cni-gone",
    "cni-broken",
    "cni-no-plugin",
    "plugin-hangs",
    "plugin-gone",
    "neighbours-full",
    "dns-server-ends",
    "dns-link-gone",
    "link-down",
    "threads-out",
    "files-out",
    "syncs-hang",
)
# A node as far as these checks look at it: nothing of it is this machine's.
NODE = """
set -e
for folder in /var/lib /var/tmp /etc/cni /opt; do mkdir -p $folder; mount -t tmpfs none $folder; done
mount -t tmpfs none /run
mount -t sysfs none /sys
ip link set lo up
mkdir -p /run/mount /etc/cni/net.d /opt/cni/bin /var/lib/kubelet/pki /var/lib/kubelet/plugins_registry
cat > /etc/cni/net.d/10-bridge.conflist <<'END'
{"cniVersion": "0.4.0", "name": "pods", "plugins": [{"type": "bridge", "ipam":
  {"type": "host-local", "ranges": [[{"subnet": "10.244.1.0/24"}]]}}]}
END
for name in bridge host-local loopback; do touch /opt/cni/bin/$name && chmod +x /opt/cni/bin/$name; done
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=node -days 365 \
  -keyout /dev/null -out /var/lib/kubelet/pki/kubelet-client-current.pem 2> /dev/null
set +e
"""
# All that faults touch, but for processes: folders, files with what is in them, links, addresses, routes.
LEFT = """
find /var/lib /var/tmp /etc/cni /opt /run /sys/fs/cgroup/pids/kubepods ! -type f 2> /dev/null
find /var/lib /var/tmp /etc/cni /opt /run -type f | xargs -r md5sum
ip -brief address | cut -d@ -f1; ip route show table all
"""
LOOK = """
import glob, json, os, subprocess, sys, time
import msgspec, yaml
from agent import settings
from agent.checks.catalogue import check_spec
kind, text, left, clear = sys.argv[1:5]
def seen():
    found = subprocess.run(["sh", "-c", left], capture_output=True, text=True).stdout.splitlines()
    return {*found, *(command for path in glob.glob("/proc/[0-9]*/cmdline") if (command := open(path).read()))}
before = seen()
given = {"name": "x", kind: yaml.safe_load(text), "timeoutSeconds": 20}
spec = check_spec(msgspec.convert(given, settings.Check))
states = []
spec.run()
for lines in sys.argv[5:]:
    assert os.system(lines) == 0, lines
    states.append(spec.run().state)
spec.close()
assert os.system(clear) == 0, clear
until = time.monotonic() + 10
while (left_behind := seen() ^ before) and time.monotonic() < until:
    time.sleep(0.1)
print(json.dumps([states, sorted(left_behind)]), flush=True)
"""


@pytest.mark.parametrize("fault", [FAULTS[name] for name in NAMES], ids=NAMES)
def test_it_is_found_and_healed_for_certain(fault: Fault) -> None:
    if os.geteuid() != 0:
        cannot_run("file systems are mounted, which only root may: sudo make test")
    lines = (" && ".join(f"{{ {line}; }}" for line in lines) for lines in (fault.inject, fault.heal, fault.clear))
    inject, heal, clear = (each or "true" for each in lines)
    look = [sys.executable, "-c", LOOK, fault.check, fault.settings, LEFT, clear, heal, inject, inject, heal, heal]
    words = ["unshare", "--mount", "--net", "--pid", "--fork", "--mount-proc", "sh", "-c", f'{NODE}\n"$@"', "sh", *look]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
    assert done.stderr == ""
    # Before a heal that heals nothing; then twice injected, twice healed; then all of it is taken away.
    bad = "hung" if fault.name in ("plugin-hangs", "syncs-hang") else "failed"
    states, left = json.loads(done.stdout)
    # On a busy machine a disk that is well may be slow, of which its check warns.
    well = {"passed", "warned"} if fault.name == "syncs-hang" else {"passed"}
    assert [[state if state == bad else state in well for state in states], left] == [[True, bad, bad, True, True], []]


WAYS = tuple(fault.name for fault in network.FAULTS)
SEEN = "iptables-save -t raw; iptables-save -t mangle; ip route show"
# A host with a way out.
WAY = """
ip link set lo up; ip link add name one type veth peer name two; ip link set one up; ip link set two up
ip address add 192.0.2.1/24 dev one; ip route add default via 192.0.2.254
iptables-save -t raw > /dev/null; iptables -t raw -S > /dev/null; iptables -t mangle -S > /dev/null
"""


@pytest.mark.parametrize("fault", [FAULTS[name] for name in WAYS], ids=WAYS)
def test_a_way_that_is_cut_is_as_it_was_when_it_is_healed(fault: Fault) -> None:
    if os.geteuid() != 0 or shutil.which("iptables") is None:
        cannot_run("rules of the firewall are changed, which only root with iptables may: sudo make test")
    inject, heal = (" && ".join(f"{{ {line}; }}" for line in lines) for lines in (fault.inject, fault.heal))
    steps = ("true", heal, inject, inject, heal, heal)
    script = "; echo ---; ".join(f"{{ {step}; }} && {{ {SEEN}; }}" for step in steps)
    words = ["unshare", "--mount", "--net", "sh", "-c", f"mount -t tmpfs none /run; {{ {WAY} }} >&2; {script}"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    # Without the times and the counters that are saved with the rules.
    told = "\n".join(line for line in done.stdout.splitlines() if not line.startswith(("#", ":")))
    before, healed, cut, again, *after = told.split("\n---\n")
    assert ("", True) == (done.stderr, before != cut)
    assert [before, cut, [before, before]] == [healed, again, after]
