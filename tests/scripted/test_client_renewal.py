"""Certificates that somebody else renews at the same path: new connections use them, and nothing is restarted."""

import base64
import errno
import json
import logging
import shutil
import time
from pathlib import Path

import pytest

from kube import errors, kubeconfig, paths
from kube.auth import CertificateFiles, by_certificate, in_cluster
from kube.client import Client
from kube.connect import connect
from kube.errors import CredentialsInvalid
from tests.scripted.following import node
from tests.scripted.tls import Authority, make_authority
from tools.fakes.api_server import FakeApiServer
from tools.kit.waiting import wait_until


@pytest.fixture(scope="module")
def old(tmp_path_factory) -> Authority:
    return make_authority(tmp_path_factory.mktemp("old"))


@pytest.fixture(scope="module")
def new(tmp_path_factory) -> Authority:
    return make_authority(tmp_path_factory.mktemp("new"))


class Guarded:
    """An API server that asks for a client certificate, whose own and whose demands change while it runs."""

    def __init__(self, api: FakeApiServer, mine: Path, form: str) -> None:
        self.api = api
        self.mine = mine
        self.form = form

    def serve(self, server: Authority, clients: Authority) -> None:
        """From now on, for new connections; the old ones are closed."""
        context = server.server_context(ask_for_client=True)
        context.load_verify_locations(clients.folder / "ca.crt")
        if clients is not server:
            context = clients.server_context(ask_for_client=True)
            context.load_cert_chain(server.folder / "server.crt", server.folder / "server.key")
        self.api._tls = context
        self.api.cut_connections()

    def give(self, authority: Authority, *names: str) -> None:
        """Put these files of an authority at our paths."""
        for name in names:
            shutil.copyfile(authority.folder / name, self.mine / name)

    def client(self) -> Client:
        if self.form == "files":
            certificate, key, authority = (self.mine / name for name in (*PAIR, "ca.crt"))
            connection = by_certificate(self.api.url, authority=authority, certificate=certificate, key=key)
            return Client(connection, user_agent="t", deadline_s=5.0)
        user = {"client-certificate": str(self.mine / "client.crt"), "client-key": str(self.mine / "client.key")}
        cluster = {"certificate-authority": str(self.mine / "ca.crt")}
        path = self.api.write_kubeconfig(self.mine / "config", user=user, cluster=cluster)
        return Client(kubeconfig.load(str(path)), user_agent="t", deadline_s=5.0)


PAIR = ("client.crt", "client.key")


@pytest.fixture
def guarded(old, tmp_path, request):
    with FakeApiServer(tls=old.server_context(ask_for_client=True)) as api:
        api.put(node("n"))
        found = Guarded(api, tmp_path, getattr(request, "param", "kubeconfig"))
        found.give(old, *PAIR, "ca.crt")
        yield found


def read(client: Client) -> bytes:
    return client.get(paths.node("n"))


def write(client: Client) -> bytes:
    return client.patch(paths.node("n"), b"{}")


def watch(client: Client) -> None:
    with client.watch(paths.nodes(), query={"resourceVersion": "1001"}, silence_limit_s=0.2) as stream:
        assert next(stream.batches(look_s=0.05)) == []


BOTH_FORMS = pytest.mark.parametrize("guarded", ["kubeconfig", "files"], indirect=True)


@BOTH_FORMS
@pytest.mark.parametrize("call", [read, watch])
def test_a_client_certificate_renewed_in_place_is_used_when_the_old_one_is_refused(guarded, old, new, call):
    client = guarded.client()
    call(client)
    guarded.give(new, *PAIR)
    guarded.serve(old, new)
    call(client)
    client.close()


@BOTH_FORMS
@pytest.mark.parametrize("call", [read, watch, write])
def test_an_authority_renewed_in_place_is_trusted(guarded, old, new, call):
    client = guarded.client()
    call(client)
    guarded.give(new, "ca.crt")
    guarded.serve(new, old)
    call(client)
    client.close()


def test_an_authority_that_is_no_longer_ours_is_not_trusted(guarded, new):
    client = guarded.client()
    read(client)
    guarded.give(new, "ca.crt")
    guarded.api.cut_connections()
    client._server.credentials.refresh()
    with pytest.raises(errors.Unreachable, match=r"TLS.*; compare certificate-authority and address"):
        read(client)
    client.close()


def test_a_certificate_that_the_server_does_not_want_is_told_as_such_and_not_as_its_own(guarded, old, new):
    client = guarded.client()
    read(client)
    guarded.serve(old, new)

    def told() -> str:
        with pytest.raises(errors.Unreachable) as raised:
            read(client)
        return str(raised.value)

    # The server's alert may be lost when it closes at once.
    wait_until(lambda: "the server refuses the client certificate" in told(), told)
    client.close()


@BOTH_FORMS
def test_a_refusal_on_a_kept_connection_leads_to_a_new_one_with_the_new_certificate(guarded, old, new):
    """As a real API server refuses a certificate that has expired since."""
    client = guarded.client()
    read(client)
    guarded.give(new, *PAIR)
    kept = set(guarded.api._connections)
    guarded.api.answer_next(401)
    context = new.server_context(ask_for_client=True)
    context.load_cert_chain(old.folder / "server.crt", old.folder / "server.key")
    guarded.api._tls = context
    read(client)
    client.close()
    assert (len(guarded.api.requests), len(kept)) == (3, 1)


def test_a_certificate_whose_key_has_not_come_yet_leaves_the_last_in_use(guarded, old, new):
    client = guarded.client()
    guarded.give(new, "client.crt")
    client._server.credentials._looked_s = float("-inf")
    read(client)
    guarded.give(new, "client.key")
    guarded.serve(old, new)
    read(client)
    client.close()


@pytest.mark.parametrize("lost", ["client.crt", "client.key", "ca.crt", "config"])
def test_a_file_that_is_gone_leaves_the_last_in_use(guarded, lost):
    client = guarded.client()
    (guarded.mine / lost).unlink()
    client._server.credentials._looked_s = float("-inf")
    read(client)
    client.close()


def test_files_are_looked_at_every_ten_seconds_without_any_refusal(guarded, new):
    connection = guarded.client()._server
    first = connection.tls.context(0.0)
    guarded.give(new, *PAIR)
    found = [connection.tls.context(monotonic) is first for monotonic in (9.9, 10.0, 20.0)]
    assert found == [True, False, False]


def test_what_has_not_changed_is_not_loaded_again(guarded):
    connection = guarded.client()._server
    first = connection.tls.context(0.0)
    for name in (*PAIR, "ca.crt"):
        (guarded.mine / name).touch()
    assert connection.tls.context(10.0) is first


def test_a_kubeconfig_with_another_certificate_inside_is_loaded(guarded, old, new):
    client = guarded.client()
    read(client)
    text = (guarded.mine / "config").read_text()
    (guarded.mine / "config").write_text(text.replace(str(guarded.mine / "client."), str(new.folder / "client.")))
    guarded.serve(old, new)
    read(client)
    client.close()


def test_the_authority_of_a_pod_is_read_again(old, new, tmp_path):
    (tmp_path / "token").write_text("of-the-pod")
    shutil.copyfile(old.folder / "ca.crt", tmp_path / "ca.crt")
    with FakeApiServer(tls=old.server_context()) as api:
        api.put(node("n"))
        host, port = api.url.removeprefix("https://").split(":")
        environ = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
        client = Client(in_cluster(tmp_path, environ), user_agent="t", deadline_s=5.0)
        read(client)
        api._tls = new.server_context()
        api.cut_connections()
        (tmp_path / "ca.crt").write_text("half writ")
        with pytest.raises(errors.Unreachable, match="TLS"):
            read(client)
        shutil.copyfile(new.folder / "ca.crt", tmp_path / "ca.crt")
        read(client)
        client.close()


def test_a_static_pods_token_and_authority_are_renewed_where_they_lie(old, new, tmp_path):
    """By the play, on the host: the running extender goes on with what has taken their place."""
    ca, token = tmp_path / "ca.crt", tmp_path / "token"
    shutil.copyfile(old.folder / "ca.crt", ca)
    token.write_text("first")
    with FakeApiServer(tls=old.server_context()) as api:
        api.put(node("n"))
        api.tokens = {"first"}
        client = Client(
            connect(None, server=api.url, token_file=str(token), ca_file=str(ca)), user_agent="t", deadline_s=5.0
        )
        read(client)
        api.tokens = {"second"}
        token.write_text("second")
        read(client)
        api._tls = new.server_context()
        api.cut_connections()
        shutil.copyfile(new.folder / "ca.crt", ca)
        read(client)


def test_files_are_looked_at_each_minute_and_what_does_not_fit_leaves_the_last_in_use(old, new, tmp_path):
    """As between the two writes of a renewal, or with a file cut off by a full disk."""
    for name in (*PAIR, "ca.crt"):
        shutil.copyfile(old.folder / name, tmp_path / name)
    files = CertificateFiles(
        authority=tmp_path / "ca.crt", certificate=tmp_path / "client.crt", key=tmp_path / "client.key"
    )
    first = files.context(0.0)
    shutil.copyfile(new.folder / "client.crt", tmp_path / "client.crt")
    found = [files.context(monotonic) is first for monotonic in (59.9, 60.0)]
    shutil.copyfile(new.folder / "client.key", tmp_path / "client.key")
    found += [files.context(monotonic) is first for monotonic in (119.9, 120.0, 180.0)]
    assert [True, True, True, False, False] == found


KEPT, AGAIN = "credentials cannot be read again, the last ones stay in use", "credentials read again"


@pytest.mark.parametrize("name", [*PAIR, "ca.crt"])
@pytest.mark.parametrize(
    "content",
    [
        pytest.param(None, id="gone"),
        pytest.param("", id="empty"),
        pytest.param("half", id="half written"),
        pytest.param("another", id="of another authority, without the others"),
        pytest.param("folder", id="a folder"),
    ],
)
def test_a_file_that_cannot_be_used_leaves_the_last_in_use_until_it_is_right(old, new, tmp_path, caplog, name, content):
    """A minute each, and one line. An empty file of authorities does not mean those that this machine trusts."""
    for file in (*PAIR, "ca.crt"):
        shutil.copyfile(old.folder / file, tmp_path / file)
    path = tmp_path / name
    right = path.read_text()
    files = CertificateFiles(
        authority=tmp_path / "ca.crt", certificate=tmp_path / "client.crt", key=tmp_path / "client.key"
    )
    first = files.context(0.0)
    path.unlink()
    if content == "folder":
        path.mkdir()
    elif content is not None:
        another = (new.folder / name).read_text()
        path.write_text({"": "", "half": right[: len(right) // 2], "another": another}[content])
    with caplog.at_level(logging.INFO):
        found = [files.context(monotonic) is first for monotonic in (60.0, 120.0)]
        if content == "another" and name == "ca.crt":
            assert ([False, False], []) == (found, caplog.records), "that is a right one, of another server"
            return
        if content == "folder":
            path.rmdir()
        path.write_text(right)
        found.append(files.context(180.0) is first)
    assert ([True] * 3, [KEPT, AGAIN]) == (found, [record.message for record in caplog.records])
    assert [True] * 2 == [str(path) in record.files and not record.exc_info for record in caplog.records]


def test_a_certificate_that_is_not_valid_leaves_the_last_in_use_as_long_as_that_is(old, new, tmp_path, caplog):
    """A day ago it ended; in a week the one that is used will have, too, and then what is there is as good."""
    for file in (*PAIR, "ca.crt"):
        shutil.copyfile(old.folder / file, tmp_path / file)
    wall = [time.time()]
    files = CertificateFiles(
        authority=tmp_path / "ca.crt",
        certificate=tmp_path / "client.crt",
        key=tmp_path / "client.key",
        wall=lambda: wall[0],
    )
    first = files.context(0.0)
    for part in ("crt", "key"):
        shutil.copyfile(new.folder / f"expired.{part}", tmp_path / f"client.{part}")
    found = [files.context(monotonic) is first for monotonic in (60.0, 120.0)]
    assert [KEPT] == [record.message for record in caplog.records]
    assert "the certificate is not valid: it ended at" in caplog.records[0].error
    wall[0] += 7 * 86400
    assert [True, True, False] == [*found, files.context(180.0) is first]


@pytest.mark.parametrize("content", [None, "", "x"], ids=["gone", "empty", "no kubeconfig"])
def test_a_kubeconfig_that_cannot_be_used_is_told_of_once_and_when_it_can_again(guarded, caplog, content):
    credentials, config = guarded.client()._server.credentials, guarded.mine / "config"
    credentials.headers(0.0)
    right = config.read_text()
    with caplog.at_level(logging.INFO):
        config.unlink() if content is None else config.write_text(content)
        for monotonic in (20.0, 40.0):
            credentials.headers(monotonic)
        config.write_text(right)
        credentials.headers(60.0)
    assert [KEPT, AGAIN] == [record.message for record in caplog.records]


def test_what_is_given_inline_is_written_again_after_a_full_disk(old, new, tmp_path, monkeypatch):
    """Into files, by the package: it remembers them before it writes them."""

    def config(authority: Authority) -> str:
        given = base64.b64encode((authority.folder / "ca.crt").read_bytes()).decode()
        cluster = {"server": "https://127.0.0.1:1", "certificate-authority-data": given}
        named = {"clusters": [{"name": "c", "cluster": cluster}], "users": [{"name": "u", "user": {}}]}
        context = {"name": "x", "context": {"cluster": "c", "user": "u"}}
        return json.dumps({**named, "contexts": [context], "current-context": "x"})

    def full(*of: object, **more: object) -> object:
        if "wb" in of:
            raise OSError(errno.ENOSPC, "No space left on device")
        return Path(str(of[0])).open(*of[1:], **more)

    path = tmp_path / "config"
    path.write_text(config(old))
    credentials = kubeconfig.load(str(path)).credentials
    first = credentials.context(0.0)
    path.write_text(config(new))
    with monkeypatch.context() as disk:
        disk.setattr(kubeconfig.kube_config, "open", full, raising=False)
        with pytest.raises(CredentialsInvalid, match="No space left on device"):
            credentials.refresh()
        during = credentials.context(0.0)
    credentials.refresh()
    assert (True, False) == (during is first, credentials.context(0.0) is first)


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        pytest.param("client.crt", None, "client.crt: No such file", id="a kubelet that has not joined yet"),
        pytest.param("client.crt", "", "cannot be used", id="an empty file"),
        pytest.param("ca.crt", "x", "cannot be used", id="an authority that is none"),
        pytest.param("ca.crt", "", "the file of authorities is empty", id="an empty one"),
    ],
)
def test_files_that_cannot_be_used_at_the_start_are_told_of_in_one_line(old, tmp_path, name, content, expected):
    for file in (*PAIR, "ca.crt"):
        shutil.copyfile(old.folder / file, tmp_path / file)
    (tmp_path / name).unlink() if content is None else (tmp_path / name).write_text(content)
    with pytest.raises(CredentialsInvalid) as caught:
        by_certificate(
            "https://127.0.0.1:1",
            authority=tmp_path / "ca.crt",
            certificate=tmp_path / "client.crt",
            key=tmp_path / "client.key",
        )
    assert (True, False) == (expected in str(caught.value), "\n" in str(caught.value))


def test_a_key_with_a_password_asks_nobody_for_it(old):
    with pytest.raises(CredentialsInvalid, match="encrypted"):
        by_certificate(
            "https://127.0.0.1:1",
            authority=old.folder / "ca.crt",
            certificate=old.folder / "server.crt",
            key=old.folder / "locked.key",
        )
