"""A disk that breaks: a small file system of its own, on a folder that a check watches."""

from tools.faults.fault import Fault

# Not the kubelet's own folder: it would break the node for good where it is not healed.
DISK = "/var/lib/readygate-fault-disk"
MOUNT = f"mountpoint -q {DISK} || {{ mkdir -p {DISK}; mount -t tmpfs -o size=256k /dev/readygate-fault {DISK}; }}"
UNMOUNT = f"if mountpoint -q {DISK}; then umount {DISK}; fi; [ ! -e {DISK} ] || rmdir {DISK}"
_HEAL = f"! mountpoint -q {DISK} || {{ mount -o remount,rw {DISK}; rm -f {DISK}/full; }}"
_SETTINGS = f"{{mounts: [{DISK}]}}"

FAULTS = [
    Fault(
        "disk-read-only",
        "filesystem",
        "the file system has turned read-only",
        (MOUNT, f"mount -o remount,ro {DISK}"),
        (MOUNT, _HEAL),
        _SETTINGS,
        (UNMOUNT,),
    ),
    Fault(
        "disk-full",
        "filesystem",
        "not a byte is left",
        (MOUNT, f"cat /dev/zero > {DISK}/full 2>/dev/null || true"),
        (MOUNT, _HEAL),
        _SETTINGS,
        (UNMOUNT,),
    ),
    Fault(
        "disk-gone",
        "filesystem",
        "the folder is gone, as of a disk that was not mounted",
        (MOUNT, f"umount {DISK}", f"rmdir {DISK}"),
        (MOUNT, _HEAL),
        _SETTINGS,
        (UNMOUNT,),
    ),
    Fault(
        "disk-not-mounted",
        "filesystem",
        "the folder is there, its disk is not mounted",
        (MOUNT, f"umount {DISK}"),
        (MOUNT, _HEAL),
        f"{{mounts: [{DISK}], mountPoint: required}}",
        (UNMOUNT,),
    ),
    Fault(
        "inodes-used-up",
        "filesystem",
        "hardly an inode is left",
        (
            MOUNT,
            f"mkdir -p {DISK}/inodes && mount -o remount,nr_inodes=100 {DISK}",
            f"cd {DISK}/inodes && for n in $(seq 90); do : > $n || break; done",
        ),
        (MOUNT, f"rm -rf {DISK}/inodes", _HEAL),
        f"{{mounts: [{DISK}], minFreeInodes: 20}}",
        (UNMOUNT,),
    ),
]
