"""The program of `helm test`, as the chart holds it: what it says, how it ends, well and where something is wrong."""

import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.charts.rendering import objects
from tools.kit.ports import free_port
from tools.kit.serving import serving

IMAGE = 'image={"repository":"registry.example/readygate","tag":"1.1"}'
NOT_SYNCED = "cache not synced"
AT_ONCE = "import time; time.sleep = lambda s: None\n"  # between its attempts


class Answer(BaseHTTPRequestHandler):
    """/ok is well; /odd is well from the third time on; else as an extender that has not synced."""

    asked: dict[str, int]

    def do_GET(self) -> None:
        asked = self.server.asked  # type: ignore[attr-defined]
        asked[self.path] = asked.get(self.path, 0) + 1
        well = self.path == "/ok" or (self.path == "/odd" and asked[self.path] > 2)
        self.send_response(200 if well else 503)
        self.end_headers()
        self.wfile.write(b"ok" if well else NOT_SYNCED.encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def url() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    server.asked = {}  # type: ignore[attr-defined]
    with serving(server):
        yield f"http://127.0.0.1:{server.server_port}"


@pytest.fixture(scope="module")
def program() -> str:
    (pod,) = [made for (kind, _, name), made in objects(given=[IMAGE], hooks=True).items() if name == "readygate-test"]
    python, flag, program, *_ = pod["spec"]["containers"][0]["command"]
    assert ("python3", "-c") == (python, flag)
    return str(program)


def run(program: str, *urls: str) -> tuple[int, list[str]]:
    command = [sys.executable, "-c", AT_ONCE + program, *urls]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr == "", "no traceback"
    return done.returncode, done.stdout.splitlines()


def test_all_is_well(program, url):
    assert run(program, f"{url}/ok", f"{url}/ok") == (0, ["the extender gives verdicts, and the status API follows it"])


def test_what_is_well_in_a_moment_is_waited_for(program, url):
    code, said = run(program, f"{url}/odd", f"{url}/ok")
    assert (0, [f"{url}/odd: {NOT_SYNCED}"] * 2) == (code, said[:-1])


@pytest.mark.parametrize("place", ["the extender", "who serves people"])
def test_who_does_not_answer_well_fails_it_with_its_own_words(program, url, place):
    urls = (f"{url}/no", f"{url}/ok") if place == "the extender" else (f"{url}/ok", f"{url}/no")
    code, said = run(program, *urls)
    assert (1, {f"{url}/no: {NOT_SYNCED}"}) == (code, set(said))


def test_where_nobody_listens_it_fails_and_says_so(program, url):
    nobody = f"http://127.0.0.1:{free_port()}"
    code, said = run(program, nobody, f"{url}/ok")
    assert (1, True) == (code, all(line.startswith(f"{nobody}: ") and "refused" in line for line in said)), said
