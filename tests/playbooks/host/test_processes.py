"""Who kube-scheduler is among the processes of its host, and whether it answers, whatever else is there."""

import socket
import threading

import pytest
from readygate_scheduler.scheduler import Scheduler

NAMES = [
    pytest.param(b"\xff\xfe", id="bytes that are no text, as anybody may call a process of his"),
    pytest.param("приложение".encode()[:15], id="a long name, which the kernel cuts within a letter"),
    pytest.param(b"a) (b\n", id="what looks like the end of a name"),
]


@pytest.mark.parametrize("name", NAMES)
def test_no_name_of_a_process_keeps_a_change_from_its_end(world, name):
    for pid, command in ((9999998, b"/usr/bin/other\0"), (9999999, b"kube-scheduler\0--leader-elect=false\0")):
        here = world.proc / str(pid)
        here.mkdir()
        (here / "cmdline").write_bytes(command)
        (here / "stat").write_bytes(b"%d (%s) S %s 7 0\n" % (pid, name, b" ".join([b"0"] * 18)))
    world.outlives = "9999998"
    scheduler = Scheduler(str(world.proc))
    assert (["kube-scheduler", "--leader-elect=false"], False) == (
        scheduler.processes()[9999999, "7"],
        scheduler.ended((9999999, "7")),
    )
    assert "confirmed" == world.change().apply(world.job())["outcome"]


def test_what_is_no_answer_of_http_is_no_health():
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(b"ready\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        assert not Scheduler().healthy(f"http://127.0.0.1:{server.getsockname()[1]}/healthz")
        thread.join()
