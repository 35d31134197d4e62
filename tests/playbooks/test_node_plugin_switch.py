"""What puts a version of the agent as a service in place, and the one before back: on a pretended host."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.playbooks.node_host import NodeHost


@pytest.fixture
def host(tmp_path: Path) -> NodeHost:
    return NodeHost(tmp_path)


@dataclass(frozen=True)
class Is:
    """How a host is afterwards."""

    word: str
    code: int
    in_place: str | None
    runs: str | None
    previous: str | None = None
    says: str = ""
    is_open: bool = False
    images: set[str] = field(default_factory=set)

    def of(self, host: NodeHost, ended: object, says: str) -> "Is":
        """The same, as `host` is; `says` where it says that."""
        said = says if says in ended.said else ended.said  # type: ignore[attr-defined]
        word, code = ended.word, ended.code  # type: ignore[attr-defined]
        return Is(word, code, host.in_place, host.runs, host.previous, said, host.is_open, host.images)


def check(expected: Is, host: NodeHost, ended: object) -> None:
    assert expected == expected.of(host, ended, expected.says)
    assert [] == host.left_over


NO_ROOM = "because the earlier version could not be saved"


@pytest.mark.parametrize(
    ("before", "wanted", "expected"),
    [
        pytest.param(
            [],
            "healthy",
            Is("changed", 0, "healthy", "healthy", says="healthy: all", images={"healthy"}),
            id="the first",
        ),
        pytest.param(
            [],
            "unhealthy",
            Is("changed", 0, "unhealthy", "unhealthy", says="not healthy: disk", images={"unhealthy"}),
            id="the first, on a node that is not healthy: that is what it is there for",
        ),
        pytest.param(
            [],
            "broken",
            Is("undone", 1, None, None, says="there was no earlier version, so it was removed", images={"broken"}),
            id="the first does not start: there is none",
        ),
        pytest.param(
            [],
            "refused",
            Is("refused", 1, None, None, says="these are its last words", images={"refused"}),
            id="the first does not take its configuration: nothing was changed",
        ),
        pytest.param(
            [],
            "stuck",
            Is(
                "refused",
                1,
                None,
                None,
                says="the configuration had not ended after 60 s. What it",
                images={"stuck"},
            ),
            id="its check hangs: that is told in words, with what to do",
        ),
        pytest.param(
            [],
            "hangs",
            Is("undone", 1, None, None, says="it had not reported READY after 60 s. What it", images={"hangs"}),
            id="it hangs itself: the same",
        ),
        pytest.param(
            ["healthy-1"],
            "healthy-2",
            Is("changed", 0, "healthy-2", "healthy-2", "healthy-1", "healthy: all", images={"healthy-1", "healthy-2"}),
            id="a new one: the one before is kept for the way back",
        ),
        pytest.param(
            ["healthy-1", "healthy-2"],
            "healthy-3",
            Is("changed", 0, "healthy-3", "healthy-3", "healthy-2", images={"healthy-2", "healthy-3"}),
            id="of three the first is forgotten",
        ),
        pytest.param(
            ["healthy"],
            "broken",
            Is(
                "undone",
                1,
                "healthy",
                "healthy",
                None,
                "did not start; the earlier version is back. Last",
                images={"healthy", "broken"},
            ),
            id="a new one that does not start",
        ),
        pytest.param(
            ["healthy"],
            "unhealthy",
            Is(
                "undone",
                1,
                "healthy",
                "healthy",
                None,
                "reported only: not healthy: disk; the earlier version is back",
                images={"healthy", "unhealthy"},
            ),
            id="a new one that says of a healthy node that it is not",
        ),
        pytest.param(
            ["unhealthy-1"],
            "unhealthy-2",
            Is("changed", 0, "unhealthy-2", "unhealthy-2", "unhealthy-1", images={"unhealthy-1", "unhealthy-2"}),
            id="where it was not healthy before, it need not be",
        ),
        pytest.param(
            ["unhealthy"],
            "silent",
            Is("undone", 1, "unhealthy", "unhealthy", None, "reported only: starting", images={"unhealthy", "silent"}),
            id="but it has to say something",
        ),
        pytest.param(
            ["healthy"],
            "dies",
            Is("undone", 1, "healthy", "healthy", None, "it ended within 1 s", images={"healthy", "dies"}),
            id="a new one that ends and is started again",
        ),
        pytest.param(
            ["healthy"],
            "refused",
            Is("refused", 1, "healthy", "healthy", None, "nothing was changed", images={"healthy", "refused"}),
            id="a new one that does not take its configuration",
        ),
        pytest.param(
            ["healthy"],
            "healthy",
            Is("unchanged", 0, "healthy", "healthy", None, "healthy: all", images={"healthy"}),
            id="the same once more",
        ),
        pytest.param(
            ["healthy-1", "healthy-2"],
            "healthy-1",
            Is("changed", 0, "healthy-1", "healthy-1", "healthy-2", images={"healthy-1", "healthy-2"}),
            id="the way back",
        ),
        pytest.param(
            ["healthy"],
            "full",
            Is("undone", 1, "healthy", "healthy", None, "the earlier version is back.", images={"healthy", "full"}),
            id="the disk is full when the one before is put back: a rename needs no room",
        ),
    ],
)
def test_what_becomes_of_a_version(host: NodeHost, before: list[str], wanted: str, expected: Is) -> None:
    for version in before:
        host.play(version)
    check(expected, host, host.play(wanted, calm_s=int(wanted == "dies")))


@pytest.mark.parametrize("now", ["silent", "broken", "dies"])
def test_the_version_that_is_in_place_stays_also_when_it_does_not_do_now(host: NodeHost, now: str) -> None:
    """It was stopped, or ended when its certificate could not be read for a moment; the play is run again meanwhile."""
    host.play("healthy")
    host.stop_service()
    for file in (host.folder / "wanted.service", host.units / "readygate-node.service"):
        file.write_text(file.read_text().replace("# does healthy", f"# does {now}"))
    ended = host.switch(calm_s=1)
    assert ("failed", 1, "healthy", False) == (ended.word, ended.code, host.in_place, host.is_open)
    assert "it was in place before, so it stays" in ended.said
    assert "enabled" == (host.state / "UnitFileState").read_text().strip()


def test_the_version_that_is_in_place_is_started_where_it_was_stopped(host: NodeHost) -> None:
    host.play("healthy")
    host.stop_service()
    expected = Is("changed", 0, "healthy", "healthy", None, "healthy: all", images={"healthy"})
    check(expected, host, host.switch())


@pytest.mark.parametrize(
    ("before", "file", "expected"),
    [
        pytest.param(
            ["healthy-1"],
            "earlier.service.new",
            Is("refused", 1, "healthy-1", "healthy-1", None, "could not be saved", images={"healthy-1", "broken"}),
            id="the one before cannot be kept: it is not left",
        ),
        pytest.param(
            ["healthy-1"],
            "readygate-node.service.new",
            Is(
                "undone",
                1,
                "healthy-1",
                "healthy-1",
                None,
                "it could not be put in place; the earlier version is still there",
                images={"healthy-1", "broken"},
            ),
            id="the new one cannot be put in place",
        ),
        pytest.param(
            [],
            "readygate-node.service.new",
            Is("undone", 1, None, None, None, "there was no earlier version, so it was removed", images={"broken"}),
            id="nor can the first",
        ),
    ],
)
def test_a_full_disk_takes_no_version_away(host: NodeHost, before: list[str], file: str, expected: Is) -> None:
    for version in before:
        host.play(version)
    host.no_room_for(file)
    check(expected, host, host.play("broken"))
    host.room()
    assert "changed" == host.play("healthy-9").word


def test_a_service_whose_new_version_cannot_be_put_in_place_goes_on_as_it_is(host: NodeHost) -> None:
    host.play("healthy-1")
    started = (host.state / "started").read_text()
    host.no_room_for("readygate-node.service.new")
    host.play("healthy-2")
    assert started == (host.state / "started").read_text()


def test_where_the_version_before_cannot_be_put_back_it_is_said_and_the_next_run_still_knows_it(host: NodeHost) -> None:
    host.play("healthy")
    expected = Is("failed", 1, "torn", None, None, "could not be put back", is_open=True, images={"healthy", "torn"})
    check(expected, host, host.play("torn"))
    assert ["healthy", "torn"] == (host.state / "started").read_text().split()
    host.room()
    back = Is("undone", 1, "healthy", "healthy", None, "the earlier version is back", images={"healthy", "broken"})
    check(back, host, host.play("broken"))


def test_what_it_says_does_not_need_room_on_the_disk(host: NodeHost) -> None:
    host.play("healthy")
    host.full()
    (host.folder / "verdict.new").mkdir()  # so that it cannot be written
    ended = host.play("healthy-2")
    assert ("refused", True) == (ended.word, "could not be saved" in ended.said)


@pytest.mark.parametrize(
    ("again", "expected"),
    [
        pytest.param(
            "unhealthy",
            Is("undone", 1, "healthy", "healthy", None, "the earlier version is back", images={"healthy", "unhealthy"}),
            id="another one, that does not do: back to the last that did",
        ),
        pytest.param(
            "healthy-2",
            Is("changed", 0, "healthy-2", "healthy-2", "healthy", images={"healthy", "healthy-2"}),
            id="another one, that does",
        ),
        pytest.param(
            "healthy",
            Is("changed", 0, "healthy", "healthy", None, images={"healthy"}),
            id="the last one that did",
        ),
        pytest.param(
            "refused",
            Is(
                "refused",
                1,
                "power",
                "power",
                None,
                "nothing was changed",
                is_open=True,
                images={"healthy", "power", "refused"},
            ),
            id="one that does not take its configuration: all that was before is still known",
        ),
    ],
)
def test_a_run_that_was_killed_half_way_is_gone_on_with(host: NodeHost, again: str, expected: Is) -> None:
    host.play("healthy")
    killed = host.play("power")
    assert ("failed", True, "power", True) == (killed.word, killed.code != 0, host.in_place, host.is_open)
    check(expected, host, host.play(again))


def test_a_first_version_that_was_killed_half_way_counts_as_none(host: NodeHost) -> None:
    host.play("power")
    half = (host.in_place, host.is_open)
    expected = Is("undone", 1, None, None, None, "there was no earlier version", images={"broken"})
    assert ("power", True) == half
    check(expected, host, host.play("broken"))


def test_two_plays_at_once_put_it_in_place_once(host: NodeHost) -> None:
    host.play("healthy-1")
    ended = host.play_twice_at_once("healthy-2")
    assert ["changed", "unchanged"] == sorted(one.word for one in ended)
    assert ["healthy", "healthy"] == (host.state / "started").read_text().split()


def test_systemd_that_does_not_hear_of_the_new_unit_has_the_one_before_when_it_does(host: NodeHost) -> None:
    host.play("healthy-1")
    (host.state / "deaf").touch()
    ended = host.play("healthy-2")
    assert ("failed", 1) == (ended.word, ended.code)
    assert host.is_open
    (host.state / "deaf").unlink()
    expected = Is("changed", 0, "healthy-2", "healthy-2", "healthy-1", images={"healthy-1", "healthy-2"})
    check(expected, host, host.switch())


def test_without_all_its_words_it_says_how_it_is_called(host: NodeHost) -> None:
    assert ("", 2) == ((ended := host.switch_bare()).said, ended.code)
