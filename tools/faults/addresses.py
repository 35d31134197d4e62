"""All addresses of the node's pod network given out, to sandboxes that are gone."""

from tools.faults.fault import Fault

_OWNER = "readygate-fault"
_ALL = (
    "mkdir -p /var/lib/cni/networks/pods; cd /var/lib/cni/networks/pods; "
    "net=$(grep -o '\"subnet\": *\"[0-9.]*' /etc/cni/net.d/*.conflist | grep -o '[0-9.]*$' | head -n 1); "
    f'for i in $(seq 2 254); do [ -e "${{net%.*}}.$i" ] || echo {_OWNER} > "${{net%.*}}.$i"; done'
)

FAULTS = [
    Fault(
        "addresses-leaked",
        "podAddresses",
        "every free pod address is taken by a sandbox that is gone",
        (_ALL,),
        (f"grep -lrx {_OWNER} /var/lib/cni/networks 2>/dev/null | xargs -r rm -f",),
        clear=("rmdir -p /var/lib/cni/networks/pods 2> /dev/null || true",),
    ),
]
