"""`python -m tools.demo [--stay 0|1]`: plays the demo. Exit code 0 only if every step was seen."""

import sys

from tools.kit.endings import EXIT_INTERRUPTED, interrupt_once


def main() -> int:
    interrupt_once()
    try:
        from tools.demo import command  # late: who presses Ctrl-C while it is read gets no traceback either

        return command.main()
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
