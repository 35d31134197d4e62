"""Why nothing was changed."""


class RefusedError(Exception):
    """Nothing was changed. `outcome` for machines, the text for people."""

    def __init__(self, outcome: str, cause: str) -> None:
        super().__init__(cause)
        self.outcome = outcome
