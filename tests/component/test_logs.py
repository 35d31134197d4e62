"""Each record is one line that nothing in it can break."""

import logging
import os
import sys
import threading
import warnings
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from component import logs
from component.logs import LineFormatter, LossyStream


def line(message: str = "node closed", exc_info: object = None, **extra: object) -> str:
    record = logging.LogRecord("extender.index", logging.INFO, "f", 1, message, None, exc_info)  # type: ignore[arg-type]
    record.created = 1795292580.229
    vars(record).update(extra)
    return LineFormatter().format(record)


def test_time_is_utc_with_milliseconds_then_level_logger_message_facts() -> None:
    expected = '2026-11-21T20:23:00.229Z INFO extender.index node closed node="n-1" pods=3'
    assert expected == line(node="n-1", pods=3)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param('a"b', r'node="a\"b"', id="quotes"),
        pytest.param("a\nb\r\x1b[31m", r'node="a\nb\r\u001b[31m"', id="newlines and escapes"),
        pytest.param("n\u00f6de\u2028x", r'node="n\u00f6de\u2028x"', id="runes beyond ASCII"),
        pytest.param("n" * 253, f'node="{"n" * 253}"', id="the longest name"),
        pytest.param("n" * 9999, f'node="{"n" * 4096}"', id="a text that is too long"),
        pytest.param(5, "node=5", id="a number"),
        pytest.param(True, "node=true", id="a flag"),
        pytest.param(None, 'node="None"', id="nothing"),
        pytest.param(["a", 1], "node=\"['a', 1]\"", id="a list"),
    ],
)
def test_x59_a_value_stays_in_its_line_and_quotes(value: object, expected: str) -> None:
    written = line(node=value)
    assert (True, 1) == (written.endswith(f" {expected}"), len(written.splitlines()))


def test_a_message_of_others_stays_in_its_line() -> None:
    assert line("bad\nrequest\x1b[0m").endswith("INFO extender.index bad request [0m")


@given(st.text(max_size=30), st.text(max_size=30))
def test_any_message_and_value_is_one_printable_line(message: str, value: str) -> None:
    written = line(message.replace("%", ""), node=value)
    assert (1, True) == (len(written.splitlines()), written.isprintable())


def test_no_text_of_an_error_can_pass_for_a_record() -> None:
    try:
        raise ValueError("x\x1b[1A\x1b[2K\n2026-11-21T20:23:00.229Z INFO extender.index node open")
    except ValueError:
        first, *rest = line("turn failed", sys.exc_info()).splitlines()
    assert first.endswith("INFO extender.index turn failed")
    assert [] == [text for text in rest if not text.startswith("  ")]
    assert rest[-1].endswith("node open")
    assert [] == [text for text in rest if not text.isprintable()]  # nothing that moves a terminal's cursor


@pytest.fixture
def _restored() -> Iterator[None]:
    logging.captureWarnings(capture=False)
    root, hook = logging.getLogger(), threading.excepthook
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:], threading.excepthook = handlers, hook
    root.setLevel(level)
    logging.captureWarnings(capture=False)


@pytest.mark.usefixtures("_restored")
def test_warnings_and_threads_that_die_are_records_too(capfd: pytest.CaptureFixture[str]) -> None:
    logs.set_up("info")

    def die() -> None:
        raise RuntimeError("gone")

    thread = threading.Thread(target=die, name="clock")
    thread.start()
    thread.join()
    warnings.warn("old\nuse", stacklevel=1)
    written = [text for text in capfd.readouterr().err.splitlines() if not text.startswith("  ")]
    assert ['ERROR component.logs a thread died thread_name="clock"', "WARNING py.warnings"] == [
        written[0].split(" ", 1)[1],
        " ".join(written[1].split()[1:3]),
    ]


@pytest.mark.usefixtures("_restored")
def test_the_level_is_obeyed(capfd: pytest.CaptureFixture[str]) -> None:
    logs.set_up("warning")
    logging.getLogger("x").info("no")
    logging.getLogger("x").warning("yes")
    assert [True] == [text.endswith("WARNING x yes") for text in capfd.readouterr().err.splitlines()]


TIME = "2026-11-21T20:23:00.229Z"


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """(reading end, writing end); neither waits."""
    ends = os.pipe2(os.O_NONBLOCK)
    yield ends
    for end in ends:
        os.close(end)


def read(end: int) -> bytes:
    text = b""
    while True:
        try:
            text += os.read(end, 65536)
        except BlockingIOError:
            return text


def fill(pipe: tuple[int, int]) -> None:
    try:
        while True:
            os.write(pipe[1], b"x" * 4096)
    except BlockingIOError:
        os.set_blocking(pipe[1], True)  # from here on a write that has no room would wait


def test_lines_that_nobody_reads_are_lost_and_counted(pipe: tuple[int, int]) -> None:
    fill(pipe)
    stream = LossyStream(pipe[1])
    for number in range(3):
        stream.write(f"{TIME} INFO x lost {number}\n")
    read(pipe[0])
    stream.write(f"{TIME} INFO x kept\n")
    stream.write(f"{TIME} INFO x kept too\n")
    told = f"{TIME} WARNING component.logs lines lost, the log is not read lines=3"
    assert [told, f"{TIME} INFO x kept", f"{TIME} INFO x kept too"] == read(pipe[0]).decode().splitlines()


def test_a_long_record_that_has_room_in_part_stays_apart_from_the_next(pipe: tuple[int, int]) -> None:
    fill(pipe)
    stream = LossyStream(pipe[1])
    os.read(pipe[0], 4096)
    stream.write(f"{TIME} ERROR x turn failed {'y' * 9999}\n")
    read(pipe[0])
    stream.write(f"{TIME} INFO x kept\n")
    assert ["", " WARNING component.logs lines lost, the log is not read lines=1", " INFO x kept"] == [
        text.removeprefix(TIME) for text in read(pipe[0]).decode().splitlines()
    ]


def test_a_long_record_is_written_whole(pipe: tuple[int, int]) -> None:
    text = TIME + " ERROR x turn failed " + "\u00f6" * 9999 + "\n"
    LossyStream(pipe[1]).write(text)
    assert text == read(pipe[0]).decode()


def test_a_reader_that_has_gone_is_no_error() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    LossyStream(writer).write(f"{TIME} INFO x nobody\n")
    os.close(writer)
