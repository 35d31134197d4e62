"""A clock that nobody keeps any more: what the kernel is told of it, never the time itself. All hosts of ring 3 have
the machine's one clock, so each of them sees it; a time service of the machine tells the kernel again in minutes."""

from tools.faults.fault import Fault

# Of struct timex: modes (MAXERROR 4, ESTERROR 8, STATUS 16), two numbers, maxerror and esterror (microseconds), status.
_TELL = (
    "python3 -c \"import ctypes, struct; told = ctypes.create_string_buffer(struct.pack('@Illlli', 28, 0, 0, {error}, "
    '{error}, {status}), 512); assert ctypes.CDLL(None).adjtimex(told) != -1"'
)
_UNKEPT, _KEPT = _TELL.format(error=16_000_000, status=64), _TELL.format(error=1000, status=0)

FAULTS = [
    Fault(
        "time-lost",
        "timeSync",
        "no time service corrects the clock: the kernel calls it unsynchronised",
        (_UNKEPT,),
        (_KEPT,),
        "{unsynchronized: fail}",
        (_UNKEPT,),  # as the machines of the testbed are
    ),
]
