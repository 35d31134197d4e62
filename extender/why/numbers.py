"""Pure: names as numbers, so that a remembered refusal is four bytes and a copy of none of its texts."""

from collections.abc import Iterable


class Numbers:
    """names[number] is a name, by_name the way back. Only grows; who makes it anew gives all numbers anew."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.by_name: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self.names)

    def add(self, names: Iterable[str]) -> None:
        for name in names:
            if name not in self.by_name:
                self.by_name[name] = len(self.names)
                self.names.append(name)
