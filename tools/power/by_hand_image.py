"""Faults of the container image: its Containerfile and its builder."""

from tools.power.by_hand import ByHand

_TESTS = ("tests/images", "tests/hosts/test_hosts_archive.py", "tests/hosts/test_hosts_image.py")


def _row(file: str, old: str, new: str, what: str) -> ByHand:
    return ByHand("image", f"images/{file}", old, new, what, _TESTS)


IMAGE: tuple[ByHand, ...] = (
    _row("Containerfile", "USER 69375:69375", "USER 0:0", "a container runs as root by default"),
    _row("Containerfile", "COPY kube kube\n", "", "the image lacks a package"),
    _row("Containerfile", "ENV PATH=/usr/local/bin:/usr/bin:/bin", "ENV PATH=/usr/bin:/bin", "no command is found"),
    _row("Containerfile", "PYTHONUNBUFFERED=1", "PYTHONUNBUFFERED=", "log lines are late"),
    _row("oci.py", "for path in sorted(root.iterdir())", "for path in root.iterdir()", "each build has other bytes"),
    _row("oci.py", "0o755 if executable else 0o644", "0o644", "no file of the image is executable"),
    _row(
        "oci.py",
        "gzip.compress(tar, _GZIP_LEVEL, mtime=0)",
        "gzip.compress(tar, _GZIP_LEVEL)",
        "each build has other bytes",
    ),
    _row(
        "oci.py",
        "[one.diff_id for one in image.layers]}",
        "[digest(one.blob) for one in image.layers]}",
        "no runtime can unpack the image",
    ),
    _row("python.py", '"unchecked-hash"', '"timestamp"', "bytecode is compiled again at each start"),
    _row("base.py", 'member.name = f"usr/{member.name}"', "pass", "files hide the links of the merged /usr"),
)
