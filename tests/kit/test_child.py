"""What a process died of, in one line."""

import pytest

from tests.kit.child import last_words

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
