"""Records as /dev/kmsg gives them."""


def line(sequence: int, at_s: float, text: str, facility: int = 0) -> str:
    return f"{facility << 3 | 3},{sequence},{int(at_s * 1e6)},-;{text}\n SUBSYSTEM=block\n DEVICE=b8:0\n"
