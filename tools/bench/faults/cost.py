"""What a unit costs on a host: all its processes, those that its checks start included."""

import shlex

# Only what Debian's python3 has. The processes of a unit are those in the control group of its first one, with the
# memory that is theirs alone and their share of what they have in common (PSS). Children live for a tenth of a second.
# One that has just been started and is still its parent's program has its parent's memory (vfork), which counts once.
# Where systemd counts no processor time the first one's does, which has that of all children that it has waited for.
_PROGRAM = """
import os, subprocess, sys, time
from pathlib import Path
unit, seconds, proc = sys.argv[1], float(sys.argv[2]), Path(sys.argv[3])
def shown(name):
    command = ["systemctl", "show", unit, "--value", "--property=" + name]
    return subprocess.check_output(command, text=True).strip()
def spent():
    told = shown("CPUUsageNSec")
    if told.isdigit():
        return int(told) / 1e9
    ticks = (first / "stat").read_text().rpartition(")")[2].split()[11:15]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
def text(folder, name):
    try:
        return (folder / name).read_text()
    except OSError:
        return None
def ours(folder):
    return text(folder, "cgroup") == mine and (folder == first or text(folder, "cmdline") != words)
def share(folder):
    try:
        lines = (folder / "smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
first = proc / shown("MainPID")
mine, words, peak = text(first, "cgroup"), text(first, "cmdline"), 0
began, before = time.monotonic(), spent()
while time.monotonic() - began < seconds:
    folders = [folder for folder in proc.glob("[0-9]*") if ours(folder)]
    peak = max(peak, sum(map(share, folders)))
    time.sleep(0.1)
took = time.monotonic() - began
if text(first, "cgroup") != mine:
    sys.exit("it has started anew meanwhile")
print(peak / 1024, 1000 * (spent() - before) / took)
"""


def command(unit: str, seconds: float, proc: str = "/proc") -> str:
    """For a shell on the host: prints what `read` reads."""
    return shlex.join(["python3", "-c", _PROGRAM, unit, f"{seconds:g}", proc])


def read(printed: str) -> tuple[float, float]:
    """(MiB at the highest, thousandths of a core). Raises ValueError."""
    mib, millicores = map(float, printed.split())
    return mib, millicores
