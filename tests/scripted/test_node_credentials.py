"""The agent as a process in mode `node`, with the kubelet's certificate renewed, expired and of another authority, and
with sockets it has no right to: one clear line, no traceback. What it says of its health pods goes on meanwhile, by the
tokens it has, and of a new one as soon as it may."""

import shutil
import socket
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.scripted.test_node_mode import NODE, OFTEN, TOKEN, Node, health_pod
from tests.scripted.tls import Authority, make_authority
from tools.fakes.api_server import FakeApiServer
from tools.fakes.kubelet_healthz import answering
from tools.kit.child import Child
from tools.kit.limits import as_somebody, under

CHECK = "disk"
LATER = "later"  # a health pod that comes while the agent runs: it is seen with the kubelet's certificate alone
PROCESSES = 400  # more than it needs
NAMED = {"base": (), LATER: ()}
GOOD, BAD = {"base": "True"}, {"base": "False"}
WITH_LATER = {"base": "False", LATER: "False"}
PAIR = ("client.crt", "client.key")


@pytest.fixture
def folder() -> Iterator[Path]:
    """For anybody, which those of pytest are not; its path is short enough for a socket's."""
    with tempfile.TemporaryDirectory(prefix="readygate-") as made:
        Path(made).chmod(0o777)
        yield Path(made)


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return make_authority(tmp_path_factory.mktemp("old"))


@pytest.fixture(scope="module")
def new(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return make_authority(tmp_path_factory.mktemp("new"))


class Guarded:
    """An API server that takes certificates of one authority alone, and an agent with files at paths of its own."""

    def __init__(self, folder: Path, api: FakeApiServer, kubelet: str, old: Authority) -> None:
        self._old, self._mine, self._api = old, folder / "mine", api
        self._mine.mkdir()
        self.give(old, *PAIR, "ca.crt")
        self.node = Node(folder, api, self._mine, kubelet)

    def give(self, authority: Authority, *names: str, called: str = "client") -> None:
        for name in names:
            shutil.copyfile(authority.folder / name.replace("client", called), self._mine / name)

    def take(self, clients: Authority) -> None:
        """From now on these alone; who is connected has to come again."""
        self._api._tls = asking_for(self._old, clients)
        self._api.cut_connections()

    def fail(self) -> None:
        """The check fails from now on, and there is one more health pod."""
        (self.node.folder / CHECK).unlink()
        self._api.put(health_pod(LATER))


def asking_for(server: Authority, clients: Authority) -> ssl.SSLContext:
    """Certificates of `clients`, or none: who has a token needs none."""
    context = server.server_context()
    context.load_verify_locations(clients.folder / "ca.crt")
    context.verify_mode = ssl.CERT_OPTIONAL
    return context


@contextmanager
def api_server(authority: Authority) -> Iterator[tuple[FakeApiServer, str]]:
    """With the node, and its kubelet's health port."""
    with answering() as kubelet, FakeApiServer(tls=asking_for(authority, authority)) as api:
        api.put({"kind": "Node", "apiVersion": "v1", "metadata": {"name": NODE, "uid": "node-uid"}})
        api.answer_next(201, body=TOKEN, method="POST", path="/token", times=OFTEN)
        yield api, kubelet


@pytest.fixture
def guarded(folder: Path, old: Authority) -> Iterator[Guarded]:
    with api_server(old) as (api, kubelet):
        made = Guarded(folder, api, kubelet, old)
        try:
            made.node.start(NAMED, (CHECK,), there=("base",))
            made.node.wait(GOOD)
            yield made
        finally:
            made.node.agent.process.kill()


def ends_well(process: Child) -> None:
    code, text = process.stop(grace_s=30), process.text()
    assert (0, False) == (code, "Traceback" in text), text


def test_one_renewed_at_its_path_is_used_when_the_old_one_is_refused(guarded: Guarded, new: Authority) -> None:
    guarded.give(new, *PAIR)
    guarded.take(new)
    guarded.fail()
    guarded.node.wait(WITH_LATER)
    ends_well(guarded.node.agent.process)


@pytest.mark.parametrize(
    "called",
    [
        pytest.param("expired", id="that at its path has expired, and its kubelet has not renewed it yet"),
        pytest.param("client", id="the cluster has another authority by now, its kubelet's new one comes later"),
    ],
)
def test_one_that_is_refused_is_told_in_a_line_and_the_next_one_taken_up(
    guarded: Guarded, old: Authority, new: Authority, called: str
) -> None:
    guarded.give(old, *PAIR, called=called)
    guarded.take(new)
    guarded.fail()
    guarded.node.says("the server refuses the client certificate")
    guarded.node.wait({**BAD, LATER: ""})
    guarded.give(new, *PAIR)
    guarded.node.wait(WITH_LATER)
    ends_well(guarded.node.agent.process)


def test_sockets_without_a_right_to_them_are_told_by_name_and_the_rest_goes_on(folder: Path, old: Authority) -> None:
    with ExitStack() as open_, api_server(old) as (api, kubelet):
        paths = {name: folder / f"{name}.sock" for name in ("cri", "pods")}
        for path in paths.values():
            listening = open_.enter_context(socket.socket(socket.AF_UNIX))
            listening.bind(str(path))
            listening.listen()
            path.chmod(0o600)
        mine = folder / "mine"
        shutil.copytree(old.folder, mine)
        for file in mine.iterdir():
            file.chmod(0o644)
        node = Node(folder, api, mine, kubelet, under(as_somebody(PROCESSES)))
        node.given = {"criSocket": str(paths["cri"]), "podsSocket": str(paths["pods"])}
        open_.callback(node.agent.process.kill)
        node.start({"base": ()}, (CHECK,))
        node.wait(GOOD)
        node.says("no rights to open the socket")
        (folder / CHECK).unlink()
        node.wait(BAD)
        ends_well(node.agent.process)
