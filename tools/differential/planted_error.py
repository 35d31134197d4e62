"""What an error is that is planted."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Planted:
    """`was`, which the file holds once, becomes `becomes`; `target` is who should find it."""

    target: str
    file: str
    was: str
    becomes: str

    def __str__(self) -> str:
        return f"{self.target}: {self.file}: {self.was.strip()!r} -> {self.becomes.strip()!r}"
