"""A file system that answers nobody, as one of a server that is gone: who looks at it is killed, the agent is not."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tools.kit.ability import cannot_run

# A FUSE file system whose server holds the descriptor and never reads from it.
LOOK = """
import ctypes, json, msgspec, os, sys, threading, time
from agent import settings
from agent.checks.catalogue import check_spec
folder, looks = sys.argv[1], json.loads(sys.argv[2])
device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
libc = ctypes.CDLL(None, use_errno=True)
options = f"fd={device},rootmode=40000,user_id=0,group_id=0".encode()
assert libc.mount(b"silent", folder.encode(), b"fuse.silent", 0, options) == 0, os.strerror(ctypes.get_errno())
said = {}
def take(what, kind, given):
    run = check_spec(msgspec.convert({"name": "x", kind: given, "timeoutSeconds": 2}, settings.Check)).run
    said[what] = [run().state, run().state]
threads = [threading.Thread(target=take, args=(what, *look), daemon=True) for what, look in looks.items()]
for thread in threads:
    thread.start()
until = time.monotonic() + 60
for thread in threads:
    thread.join(until - time.monotonic())
print(json.dumps({what: said.get(what, "a thread of the agent hangs") for what in looks}), flush=True)
os._exit(0)
"""


def test_each_look_at_it_is_hung_and_no_thread_is(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        cannot_run("file systems are mounted, which only root may: sudo make test")
    silent, good = tmp_path / "silent", tmp_path / "good"
    silent.mkdir()
    good.mkdir()
    (good / "10-net.conf").write_text('{"name": "n", "type": "bridge"}')
    gone, there = str(silent), str(good)
    looks = {
        "certificates": ("certificates", {"folder": gone}),
        "cni, the configuration": ("cni", {"confDir": gone}),
        "cni, the binaries": ("cni", {"confDir": there, "binDirs": [gone]}),
        "cni of CRI-O": ("cni", {"confDir": gone, "runtime": "crio"}),
        "kubeletPlugins": ("kubeletPlugins", {"folder": gone}),
        "podAddresses, the configuration": ("podAddresses", {"confDir": gone}),
        "podAddresses, the addresses": ("podAddresses", {"dataDir": gone, "network": "n", "ranges": ["192.0.2.0/24"]}),
    }
    words = ["unshare", "--mount", sys.executable, "-c", LOOK, gone, json.dumps(looks)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
    assert done.stderr == ""
    assert {what: ["hung", "hung"] for what in looks} == json.loads(done.stdout)
