"""The error of a change that was refused."""


class RefusedError(Exception):
    """Nothing was changed. `outcome` is a constant word, the text is for operators."""

    def __init__(self, outcome: str, cause: str) -> None:
        super().__init__(cause)
        self.outcome = outcome
