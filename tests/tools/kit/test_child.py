"""A child from its start to its end, and what it died of in one line."""

import contextlib
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tools.kit.child import Child, ProcessError, last_words
from tools.kit.pid import ProcessId, children
from tools.kit.waiting import wait_for, wait_until

PANIC = """\
--- /bin/etcd --data-dir=/tmp/x
{"level":"warn","msg":"opened backend db"}
{"level":"panic","msg":"failed to save","error":"write /tmp/x/member/wal/0.wal: no space left on device"}
panic: failed to save

goroutine 1 [running]:
go.uber.org/zap/zapcore.CheckWriteAction.OnWrite()
	go.uber.org/zap@v1.27.0/zapcore/entry.go:196 +0x54
main.main()
	readygate.dev/testbed/kube/main.go:71 +0x18e
"""


@pytest.mark.parametrize(
    ("log", "words"),
    [
        pytest.param(PANIC, PANIC.splitlines()[2], id="what the machine refused, not the tail of the panic"),
        pytest.param(
            "fatal error: all goroutines are asleep\n\tmain.go:3",
            "fatal error: all goroutines are asleep",
            id="what Go died of",
        ),
        pytest.param(
            "listening\nE1121 listen tcp 127.0.0.1:80: bind: address already in use\nbye",
            "E1121 listen tcp 127.0.0.1:80: bind: address already in use",
            id="a taken port",
        ),
        pytest.param("one\n\ntwo\nthree\n", "two / three", id="else the last two lines"),
        pytest.param("--- /bin/etcd\n", "", id="it said nothing"),
    ],
)
def test_the_last_words_of_a_process_are_its_cause(log, words):
    assert words == last_words(log)


def test_a_long_line_is_cut_around_its_cause():
    words = last_words(f"{'x' * 5000} no space left on device {'y' * 5000}")
    assert words.endswith("no space left on device")
    assert len(words) < 220


Start = Callable[..., Child]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a shell script."""
    made = []

    def one(script: str, **options: object) -> Child:
        child = Child("child", ["/bin/sh", "-c", script], log=tmp_path / "child.log", **options)
        made.append(child)
        child.start()
        return child

    yield one
    for child in made:
        child.stop(grace_s=0.1)


def test_a_child_that_ends_by_itself_is_told_with_its_words_and_its_log(start: Start) -> None:
    child = start("echo why >&2; exit 3")
    with pytest.raises(ProcessError, match=rf"^child ended with code 3: why \({child.log}\)$"):
        child.wait_ready(lambda: False, timeout_s=60)


def test_one_that_never_becomes_ready_is_told_as_well(start: Start) -> None:
    with pytest.raises(ProcessError, match=r"^child is not ready after 0 s: "):
        start("exec sleep 60").wait_ready(lambda: False, timeout_s=0.1)


def test_stop_may_be_called_twice_and_what_never_ran_has_no_exit_code(start: Start, tmp_path: Path) -> None:
    child = start("trap 'exit 7' TERM; echo up; while :; do sleep 0.05; done")
    child.wait_ready(lambda: "up" in child.lines(), timeout_s=60)
    assert (7, None) == (child.stop(), child.stop())
    assert Child("never", ["true"], log=tmp_path / "never.log").stop() is None


def deaf_family(start: Start) -> tuple[Child, ProcessId]:
    """A child that takes no SIGTERM, and its own child."""
    child = start("trap '' TERM; sleep 60 & echo up; wait; sleep 60")
    child.wait_ready(lambda: "up" in child.lines(), timeout_s=60)
    grandchild = wait_for(lambda: [ProcessId.of(pid) for pid in children(child.pid or 0)], timeout_s=60)
    assert grandchild
    assert grandchild[0]
    return child, grandchild[0]


def test_who_does_not_end_when_asked_is_killed_with_all_of_its_group(start: Start) -> None:
    child, grandchild = deaf_family(start)
    child.stop(grace_s=0.1)
    wait_until(lambda: not grandchild.alive(), "the end of what it had started")


def test_a_kill_is_a_crash_and_leaves_what_it_had_started(start: Start) -> None:
    child, grandchild = deaf_family(start)
    child.kill()
    assert grandchild.alive()
    grandchild.signal(9)


def test_a_child_with_a_lifeline_ends_when_it_is_cut(start: Start) -> None:
    child = start(f"exec {sys.executable} -c 'import sys; print(1, flush=True); sys.stdin.read()'", lifeline=True)
    child.wait_ready(lambda: "1" in child.lines(), timeout_s=60)
    assert child._popen is not None
    assert child._popen.stdin is not None
    child._popen.stdin.close()
    wait_until(lambda: not child.running(), "its end", timeout_s=60)
    assert child.stop() == 0


def test_an_interrupt_at_any_moment_of_a_look_leaves_a_child_that_can_be_stopped(start: Start) -> None:
    child = start("exec sleep 60")
    before = signal.signal(signal.SIGVTALRM, signal.default_int_handler)
    try:
        for number in range(200):
            with contextlib.suppress(KeyboardInterrupt):
                signal.setitimer(signal.ITIMER_VIRTUAL, 0.0001 * (1 + number % 10))
                while True:
                    child.check()
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
    assert child.stop() == -signal.SIGTERM


def test_what_is_started_and_ended_is_noted(start: Start) -> None:
    noted: list[tuple[str, bool]] = []
    child = start("exec sleep 60", note=lambda name, process: noted.append((name, process is not None)))
    child.stop()
    assert noted == [("child", True), ("child", False)]
