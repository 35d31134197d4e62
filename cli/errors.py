"""Why a command cannot give its answer."""

from component.command import EXIT_FAILED

CANNOT_KNOW = 3


class CommandError(Exception):
    """One line with cause and remedy. code: what the command ends with, if it has no better one."""

    def __init__(self, text: str, *, code: int = EXIT_FAILED) -> None:
        super().__init__(text)
        self.code = code
