"""The extender as its container starts it: root with three capabilities and a port below 1024, with the files of a pod.

Nobody of it is root once it listens, whoever is started later can still read what is renewed, and no other user of the
host takes the port while it starts again.
"""

import functools
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import pytest

from tests.extender.builders import node_json, pod_json
from tests.scripted.status_api_process import StatusApiProcess
from tests.scripted.tls import make_authority
from tests.scripted.tls_extender import TlsExtender, client_of
from tools.fakes.api_server import FakeApiServer
from tools.kit.ability import cannot_run
from tools.kit.child import Child
from tools.kit.pid import children
from tools.kit.programs import python_environ

USER, SOMEBODY = 69376, 1000
NO_CAPABILITY = "0000000000000000"
# As the container's securityContext has it: drop ALL, add three, allowPrivilegeEscalation: false.
AS_THE_CONTAINER = [
    "setpriv",
    "--no-new-privs",
    "--inh-caps=-all",
    "--bounding-set=-all,+net_bind_service,+setgid,+setuid",
    "--",
]


def as_user(user: int) -> list[str]:
    return [
        "setpriv",
        "--no-new-privs",
        f"--reuid={user}",
        f"--regid={user}",
        "--clear-groups",
        "--bounding-set=-all",
        "--",
    ]


def python_of_anybody() -> tuple[str, dict[str, str]]:
    """An interpreter that other users may read, and its environment: ours may lie in a home."""
    packages = os.pathsep.join([python_environ()["PYTHONPATH"], sysconfig.get_path("purelib")])
    candidates = ((sys.executable, {}), ("/usr/bin/python3", {"PYTHONPATH": packages}))
    return next(filter(is_readable, candidates), None) or cannot_run("no other user may read the checkout and a python")


def is_readable(candidate: tuple[str, dict[str, str]]) -> bool:
    python, more = candidate
    # By env: setpriv itself still finds its way through any folder.
    command = [*as_user(USER), "env", python, "-c", "import extender.process.worker, extender.web.server"]
    environ = {**os.environ, **python_environ(), **more}
    done = subprocess.run(command, cwd="/", env=environ, timeout=60, check=False, capture_output=True)
    return done.returncode == 0


def launched(prefix, folder, name, argv, *, environ, cwd):
    python, more = python_of_anybody()
    words = [*prefix, python, *argv[1:]]
    return Child(name, words, log=folder / f"{name}.log", environ={**environ, **more}, cwd=cwd)


TAKE = """
import socket, sys
for option in (None, socket.SO_REUSEADDR, socket.SO_REUSEPORT):
    with socket.socket() as sock:
        if option:
            sock.setsockopt(socket.SOL_SOCKET, option, 1)
        try:
            sock.bind(("127.0.0.1", int(sys.argv[1])))
            print("taken")
        except PermissionError:
            print("may not")
        except OSError as e:
            print(e.strerror)
"""


def who_takes(user: int, port: int) -> set[str]:
    done = subprocess.run(
        [*as_user(user), "/usr/bin/python3", "-c", TAKE, str(port)],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    return set(done.stdout.splitlines())


def may_be_taken(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def a_port_below_1024() -> int:
    some = random.SystemRandom().sample(range(600, 1024), 100)
    return next(filter(may_be_taken, some), 0) or cannot_run("there is no port below 1024 that root may take")


@pytest.fixture(scope="module")
def folder():
    """Of root, and everybody may read in it, as in the volumes of a pod."""
    if os.geteuid():
        cannot_run("it takes root")
    made = Path(tempfile.mkdtemp(prefix="readygate-port-"))
    made.chmod(0o755)
    (made / "shared").mkdir()
    (made / "shared").chmod(0o777)  # as an emptyDir
    yield made
    shutil.rmtree(made)


@pytest.fixture(scope="module")
def authority(folder):
    (folder / "tls").mkdir()
    return make_authority(folder / "tls")


def put(path: Path, data: bytes) -> None:
    """As the kubelet renews a file of a volume: root's, for everybody to read, by a rename."""
    new = path.with_name(f".{path.name}")
    new.write_bytes(data)
    new.chmod(0o644)
    new.rename(path)


@pytest.fixture(scope="module")
def api(folder, authority):
    with FakeApiServer(tls=authority.server_context()) as api:
        api.put(node_json("h1", Ready="True"))
        api.put(node_json("u1", Ready="True"))
        api.put(pod_json("h1"))
        api.put(pod_json("u1", Ready="False"))
        api.tokens = {"first"}
        put(folder / "token", b"first")
        yield api


@pytest.fixture(scope="module")
def process(folder, authority, api):
    for name in ("server.crt", "server.key"):
        put(folder / name, (authority.folder / name).read_bytes())
    config = {
        "listen": {
            "port": a_port_below_1024(),
            "user": USER,
            "tls": {"certificate": str(folder / "server.crt"), "key": str(folder / "server.key")},
        },
        "kubernetes": {
            "server": api.url,
            "tokenFile": str(folder / "token"),
            "caFile": str(authority.folder / "ca.crt"),
        },
        "feed": {"socket": str(folder / "shared" / "feed" / "socket")},
    }
    launch = functools.partial(launched, AS_THE_CONTAINER, folder)
    with TlsExtender(api, folder, config=config, launch=launch) as process:
        process.trusted = authority.folder
        wait_synced(process)
        yield process
        assert "Traceback" not in process.log


def wait_synced(process):
    process.wait(lambda: process.request("GET", "/readyz")[0] == 200, timeout_s=20)


def worker_of(process) -> int:
    """The one there is."""
    process.wait(lambda: len(children(process.process.pid)) == 1, timeout_s=20)
    return children(process.process.pid)[0]


def rights(pid: int) -> dict[str, list[str]]:
    lines = (line.split() for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    wanted = ("Uid:", "Gid:", "Groups:", "CapInh:", "CapPrm:", "CapEff:", "CapAmb:", "NoNewPrivs:")
    return {words[0].rstrip(":"): words[1:] for words in lines if words and words[0] in wanted}


NOBODY_SPECIAL = {
    "Uid": [str(USER)] * 4,
    "Gid": [str(USER)] * 4,
    "Groups": [],
    **{f"Cap{kind}": [NO_CAPABILITY] for kind in ("Inh", "Prm", "Eff", "Amb")},
    "NoNewPrivs": ["1"],
}


def assert_nobody_special_and_asked(process):
    for pid in (process.process.pid, worker_of(process)):
        assert NOBODY_SPECIAL == rights(pid)
    wait_synced(process)
    assert ["h1"] == process.filter(["h1", "u1"]).NodeNames


def test_master_and_worker_have_no_right_that_they_started_with(process):
    assert_nobody_special_and_asked(process)


def test_nor_has_the_worker_of_a_reload(process):
    before = worker_of(process)
    os.kill(process.process.pid, signal.SIGHUP)
    process.wait(lambda: before not in children(process.process.pid), timeout_s=30)
    assert_nobody_special_and_asked(process)


def test_nor_has_one_that_takes_the_place_of_one_that_died(process):
    before = worker_of(process)
    os.kill(before, signal.SIGKILL)
    process.wait(lambda: before not in children(process.process.pid), timeout_s=30)
    assert_nobody_special_and_asked(process)


def test_a_token_that_the_kubelet_has_renewed_is_read(process, api, folder):
    """Of a worker that was started with it; one of before reads it after a minute, or a 401."""
    put(folder / "token", b"second")
    api.tokens = {"second"}
    seen = len(api.requests)
    os.kill(worker_of(process), signal.SIGKILL)
    process.wait(lambda: len(api.requests) > seen, timeout_s=30)
    assert_nobody_special_and_asked(process)


def test_a_certificate_that_was_renewed_is_shown(process, folder, tmp_path_factory):
    other = make_authority(tmp_path_factory.mktemp("other"))
    for name in ("server.crt", "server.key"):
        put(folder / name, (other.folder / name).read_bytes())
    process.wait(lambda: "TLS certificates loaded again" in process.log, timeout_s=20)
    process.trusted = other.folder
    assert ["h1"] == process.filter(["h1", "u1"]).NodeNames


def test_people_follow_over_the_socket_without_any_right(process, folder):
    launch = functools.partial(launched, as_user(USER), folder)
    with StatusApiProcess(process.settings, folder, launch=launch) as status_api:
        status_api.wait_follows()
        assert NOBODY_SPECIAL == rights(status_api.process.pid)
        status_api.stop()
    place = folder / "shared" / "feed"
    assert [(USER, USER, 0o700), (USER, USER, 0o600)] == [
        (found.st_uid, found.st_gid, found.st_mode & 0o777) for found in ((place).stat(), (place / "socket").stat())
    ]


def test_no_other_user_takes_the_port_while_it_is_down_and_it_has_it_again(process):
    port = process.settings["listen"]["port"]
    assert "taken" not in who_takes(SOMEBODY, port)
    assert process.stop()[0] == 0
    assert {"may not"} == who_takes(SOMEBODY, port)
    assert {"may not"} == who_takes(USER, port), "nor who the extender is from then on"
    process.start()
    process.process.wait_ready(lambda: client_of(process.trusted) and process.port, timeout_s=20)
    assert_nobody_special_and_asked(process)
