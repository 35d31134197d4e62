"""All the ways in which a person ends a program are one: Ctrl-C, Ctrl-\\, a closed terminal, a kill."""

import ctypes
import signal
from types import FrameType

ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
EXIT_INTERRUPTED = 130
_PR_SET_PDEATHSIG = 1  # prctl(2)


def interrupt_once() -> None:
    """The first of ENDINGS raises KeyboardInterrupt in the main thread; later ones must not leave half of it running.

    What the caller's parent ignores stays ignored: `nohup` does so with SIGHUP.
    """
    for number in ENDINGS:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _interrupt)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    for number in ENDINGS:
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def end_with_parent() -> None:
    """This process is killed when the thread that has started it ends, however that ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
