"""Services start in order and stop in reverse, whatever happens."""

import pytest

from component import lifecycle
from component.lifecycle import StartFailed


class Fake:
    def __init__(self, name: str, journal: list[str], *, fails: bool = False, healthy: bool = True) -> None:
        self.name = name
        self._journal = journal
        self._fails = fails
        self._healthy = healthy

    def start(self) -> None:
        if self._fails:
            raise StartFailed(f"{self.name} cannot")
        self._journal.append(f"+{self.name}")

    def stop(self) -> None:
        self._journal.append(f"-{self.name}")
        if self._fails:
            raise RuntimeError("stuck")

    def healthy(self, monotonic: float) -> bool:  # noqa: ARG002
        return self._healthy


def test_in_order_and_in_reverse() -> None:
    journal: list[str] = []
    lifecycle.run([Fake("a", journal), Fake("b", journal)], lambda: journal.append("wait"))
    assert journal == ["+a", "+b", "wait", "-b", "-a"]


def test_a_failed_start_stops_what_was_started() -> None:
    journal: list[str] = []
    with pytest.raises(StartFailed, match="b cannot"):
        lifecycle.run([Fake("a", journal), Fake("b", journal, fails=True), Fake("c", journal)], lambda: None)
    assert journal == ["+a", "-a"]


def test_a_failed_stop_does_not_keep_the_others() -> None:
    journal: list[str] = []
    lifecycle.stop_all([Fake("a", journal), Fake("b", journal, fails=True)])
    assert journal == ["-b", "-a"]


def test_unhealthy_names() -> None:
    assert lifecycle.unhealthy([Fake("a", []), Fake("b", [], healthy=False)], 0.0) == ["b"]
