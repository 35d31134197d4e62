"""The network configuration of new pods, broken. The runtime keeps what it has loaded until it sees the change."""

from tools.faults.fault import Fault

BINARIES = "/opt/cni/bin /usr/lib/cni"  # as upstream and as Debian has it
CONF, KEPT = "/etc/cni/net.d", "/var/tmp/readygate-fault-cni"
# Copied back, not renamed: containerd overlooks a file that is only moved into its folder.
_BACK = f"if [ -d {KEPT} ]; then rm -f {CONF}/*; cp -a {KEPT}/. {CONF}/; rm -rf {KEPT}; fi"
_KEEP = f"[ -d {KEPT} ] || cp -a {CONF} {KEPT}"

FAULTS = [
    Fault("cni-gone", "cni", "the network configuration is gone", (_KEEP, f"rm -f {CONF}/*"), (_BACK,)),
    Fault(
        "cni-broken",
        "cni",
        "a broken file comes first by name",
        (_KEEP, f"printf '{{' > {CONF}/00-broken.conflist"),
        (f"rm -f {CONF}/00-broken.conflist", _BACK),
    ),
    Fault(
        "cni-no-plugin",
        "cni",
        "the binary of a plugin is gone",
        (f"for d in {BINARIES}; do [ ! -e $d/bridge ] || mv $d/bridge $d/.bridge-fault; done",),
        (f"for d in {BINARIES}; do [ ! -e $d/.bridge-fault ] || mv $d/.bridge-fault $d/bridge; done",),
    ),
]
