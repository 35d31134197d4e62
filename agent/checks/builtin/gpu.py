"""The check `gpu`: does the driver have all accelerators of the machine, and are there as many as there should be?

Takes the PCI functions of `vendor` whose class is a display or accelerator one from sysfs, without virtual functions
and without those that were handed to a virtual machine (driver `vfio-pci`, or one of its kinds, as
`nvgrace_gpu_vfio_pci`), and compares them with the driver's own list (`driverList`, a folder a device, named by its PCI
address, as NVIDIA's driver has it; `null`: that is not looked at). What fails:

- a function that does not answer on the bus any more (its configuration space reads as ones: "fallen off the bus");
- one that the driver does not have, also because no driver is loaded;
- one that the driver has and the bus has not;
- fewer than `expected`, where that is given: a card that was gone before the node came up is missed only so.

All of this is read by a child process, which can hang in a driver without harm to the agent: the check says hung
then. Without accelerators, and with none expected, it passes: one configuration is good for all nodes. What a driver
reports through the kernel's log (NVIDIA's Xid) is the business of the check of the kernel's log.

To keep only pods off that ask for accelerators, give it a health DaemonSet of its own, with a gate for those pods: the
check runs in its pods, or the agent on the node is told that it counts for them alone (`checks` of `node.healthPods`).
The way back is the next run that finds all of them.
"""

import marshal
from dataclasses import dataclass
from typing import Annotated

import msgspec
from msgspec import Meta

from agent.checks.rights import Rights
from agent.checks.state import CheckState, Finding
from agent.processes.command import ExecTimeout, RuntimeUnavailable
from agent.processes.single import SingleCommand, StillThere, python_command
from agent.wire.setting_types import NonEmpty
from component.settings import Section

DOC = "the driver has all accelerators that are on the PCI bus, and as many are there as are expected"
RIGHTS = Rights(reads=("sysfs", "driverList"))
TIMEOUT_S = 5  # a second is short for a child process under load, and for a bus whose devices sleep
NVIDIA = "0x10de"
PASSED_THROUGH = ("vfio-pci", "vfio_pci")  # the end of the driver's name, of each kind
OUTPUT_LIMIT_BYTES = 2**18

SCRIPT = """
import marshal, os, sys
sysfs, vendor, listed = sys.argv[1:]
def text(*path):
    with open(os.path.join(*path)) as file:
        return file.read().strip()
devices, found = os.path.join(sysfs, "bus/pci/devices"), []
for address in sorted(os.listdir(devices)):
    folder = os.path.join(devices, address)
    try:
        kind = text(folder, "class")
        if text(folder, "vendor") != vendor or not kind.startswith(("0x03", "0x12")):
            continue
    except OSError:
        continue
    if os.path.lexists(os.path.join(folder, "physfn")):
        continue
    link = os.path.join(folder, "driver")
    driver = os.path.basename(os.readlink(link)) if os.path.lexists(link) else ""
    try:
        with open(os.path.join(folder, "config"), "rb") as config:
            answers = config.read(4) != b"\\xff" * 4
    except OSError:
        answers = False
    found.append({"address": address, "driver": driver, "answers": answers})
try:
    has = sorted(os.listdir(listed)) if listed else None
except FileNotFoundError:
    has = []
if has:  # the bus has the others too, as virtual functions or of another class
    ours = {each["address"] for each in found}
    has = [a for a in has if a.lower() in ours or not os.path.lexists(os.path.join(devices, a.lower()))]
sys.stdout.buffer.write(marshal.dumps({"functions": found, "listed": has}))
"""


class Settings(Section, frozen=True):
    """Folders, as the agent sees them. `expected`: how many there should be; None: as many as there are."""

    vendor: Annotated[str, Meta(pattern=r"^0x[0-9a-f]{4}\Z", description="a PCI vendor, as 0x10de")] = NVIDIA
    expected: Annotated[int, Meta(ge=0, le=1024, description="a whole number, 0 to 1024")] | None = None
    sysfs: NonEmpty = "/sys"
    driver_list: NonEmpty | None = "/proc/driver/nvidia/gpus"


class Function(msgspec.Struct, frozen=True):
    """A PCI function. `driver`: that it is bound to, or empty. `answers`: its configuration space can be read."""

    address: str
    driver: str = ""
    answers: bool = True


class Seen(msgspec.Struct, frozen=True):
    """What the child has seen. `listed`: the addresses that the driver has; None: not asked."""

    functions: tuple[Function, ...]
    listed: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class _Faults:
    words: list[str]

    def add(self, what: str, addresses: list[str]) -> None:
        if addresses:
            self.words.append(f"{what}: {', '.join(addresses)}")


class Check:
    def __init__(self, settings: Settings, timeout_s: float) -> None:
        self._expected = settings.expected
        self._timeout_s = timeout_s
        command = python_command(SCRIPT, settings.sysfs, settings.vendor, settings.driver_list or "")
        self._command = SingleCommand(command, output_limit_bytes=OUTPUT_LIMIT_BYTES)

    def __call__(self) -> Finding:
        """PASSED, FAILED with the addresses, HUNG, or UNKNOWN where the bus could not be looked at."""
        try:
            done = self._command.run(self._timeout_s)
        except StillThere as e:
            return Finding(CheckState.HUNG, str(e))
        except ExecTimeout:
            return Finding(CheckState.HUNG, f"the bus or its driver gives no answer within {self._timeout_s:g} s")
        except RuntimeUnavailable as e:
            return Finding(CheckState.UNKNOWN, str(e))
        if done.exit_code != 0:
            last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
            return Finding(CheckState.UNKNOWN, f"cannot look at the PCI bus: {' '.join(last)}")
        try:
            said = marshal.loads(done.stdout)  # noqa: S302 - of a process that we have started, of our own program
            return judged(msgspec.convert(said, type=Seen), self._expected)
        except (EOFError, TypeError, ValueError, msgspec.ValidationError) as e:
            return Finding(CheckState.UNKNOWN, f"cannot look at the PCI bus: {e}")


def judged(seen: Seen, expected: int | None) -> Finding:
    ours = [one for one in seen.functions if not one.driver.endswith(PASSED_THROUGH)]
    silent = [one.address for one in ours if not one.answers]
    faults = _Faults([])
    faults.add("fallen off the bus", silent)
    if seen.listed is not None:
        listed = {address.lower() for address in seen.listed}
        faults.add("the driver lacks", [o.address for o in ours if o.address not in listed and o.address not in silent])
        faults.add("the driver has, the bus lacks", sorted(listed - {one.address for one in seen.functions}))
    if expected is not None and len(ours) < expected:
        faults.words.append(f"{len(ours)} of {expected} are there")
    if faults.words:
        return Finding(CheckState.FAILED, "; ".join(faults.words))
    return Finding(CheckState.PASSED, f"{len(ours)} are there" if ours else "none here")
