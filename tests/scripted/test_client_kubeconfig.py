"""A kubeconfig leads to a server: TLS, client certificates, tokens, exec plugins; one line for each way it cannot."""

import base64
import json
import sys
import time
from dataclasses import replace

import pytest

from kube import errors, kubeconfig, paths
from kube.auth import in_cluster
from kube.client import Client
from kube.connect import connect
from kube.errors import CredentialsInvalid
from tests.scripted.following import node
from tests.scripted.tls import make_authority
from tools.fakes.api_server import FakeApiServer
from tools.kit.waiting import wait_until


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return make_authority(tmp_path_factory.mktemp("pki"))


@pytest.fixture
def api():
    with FakeApiServer() as server:
        yield server


def get(connection) -> bytes:
    client = Client(connection, user_agent="t", deadline_s=5)
    try:
        return client.get(paths.nodes())
    finally:
        client.close()


def data(path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


@pytest.mark.parametrize("inline", [False, True], ids=["files", "data"])
def test_a_client_certificate_and_the_cluster_s_authority(authority, tmp_path, inline):
    names = {"certificate-authority": "ca.crt", "client-certificate": "client.crt", "client-key": "client.key"}
    fields = {
        f"{name}-data" if inline else name: data(authority.folder / file) if inline else str(authority.folder / file)
        for name, file in names.items()
    }
    cluster = {name: value for name, value in fields.items() if name.startswith("certificate-authority")}
    user = {name: value for name, value in fields.items() if name.startswith("client")}
    with FakeApiServer(tls=authority.server_context(ask_for_client=True)) as api:
        connection = kubeconfig.load(str(api.write_kubeconfig(tmp_path / "config", user=user, cluster=cluster)))
        assert get(connection)


def test_tls_is_verified_unless_the_file_says_otherwise(authority, tmp_path, recwarn):
    with FakeApiServer(tls=authority.server_context()) as api:
        strict = kubeconfig.load(str(api.write_kubeconfig(tmp_path / "strict")))
        with pytest.raises(errors.Unreachable, match=r"TLS with https.* failed"):
            get(strict)
        loose = {"insecure-skip-tls-verify": True}
        assert get(kubeconfig.load(str(api.write_kubeconfig(tmp_path / "loose", cluster=loose))))
    assert [str(w.message) for w in recwarn.list] == []


def test_the_name_in_the_certificate_may_be_given(tmp_path):
    named = make_authority(tmp_path, address="DNS:kubernetes.test")
    cluster = {"certificate-authority": str(tmp_path / "ca.crt")}
    with FakeApiServer(tls=named.server_context()) as api:
        with pytest.raises(errors.Unreachable, match="TLS"):
            get(kubeconfig.load(str(api.write_kubeconfig(tmp_path / "plain", cluster=cluster))))
        cluster["tls-server-name"] = "kubernetes.test"
        assert get(kubeconfig.load(str(api.write_kubeconfig(tmp_path / "named", cluster=cluster))))


def test_a_watch_over_tls_is_unblocked_by_close(authority, tmp_path):
    cluster = {"certificate-authority": str(authority.folder / "ca.crt")}
    with FakeApiServer(tls=authority.server_context()) as api:
        client = Client(
            kubeconfig.load(str(api.write_kubeconfig(tmp_path / "config", cluster=cluster))), user_agent="t"
        )
        stream = client.watch(paths.nodes(), query={"resourceVersion": "1000"})
        api.put(node("n"))
        lines = iter(stream)
        first = json.loads(next(lines))["type"]
        began = time.monotonic()
        client.close()
        stream.close()
        assert (first, list(lines), time.monotonic() - began < 10.0) == ("ADDED", [], True)


def test_a_pod_needs_no_file(authority, tmp_path):
    (tmp_path / "token").write_text("of-the-pod")
    (tmp_path / "ca.crt").write_bytes((authority.folder / "ca.crt").read_bytes())
    with FakeApiServer(tls=authority.server_context()) as api:
        api.tokens = {"of-the-pod"}
        host, port = api.url.removeprefix("https://").split(":")
        assert get(in_cluster(tmp_path, {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}))


def test_a_token_is_sent(api, tmp_path):
    """Also where a tool has written down that nobody is acted as."""
    api.tokens = {"secret"}
    user = {"token": "secret", "as": None, "as-user-extra": {}}
    assert get(connect(str(api.write_kubeconfig(tmp_path / "config", user=user))))


def test_a_token_file_is_read_again_each_minute(api, tmp_path):
    (tmp_path / "token").write_text("first")
    path = api.write_kubeconfig(tmp_path / "config", user={"tokenFile": str(tmp_path / "token")})
    credentials = kubeconfig.load(str(path)).credentials
    found = [credentials.headers(0.0)]
    (tmp_path / "token").write_text("second")
    found += [credentials.headers(59.0), credentials.headers(60.0)]
    assert [h["Authorization"] for h in found] == ["Bearer first", "Bearer first", "Bearer second"]


def exec_user(tmp_path, body: str) -> dict:
    """An exec plugin: a Python file that counts its runs and prints an ExecCredential made of `body`."""
    script = tmp_path / "plugin.py"
    script.write_text(
        "import json, pathlib, sys\n"
        f"runs = pathlib.Path({str(tmp_path / 'runs')!r})\n"
        "runs.write_text((runs.read_text() if runs.exists() else '') + 'x')\n"
        "run = len(runs.read_text())\n"
        "api = 'client.authentication.k8s.io/v1'\n"
        f"{body}\n"
    )
    return {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": sys.executable, "args": [str(script)]}}


TELL = "print(json.dumps({'apiVersion': api, 'kind': 'ExecCredential', 'status': {'token': f'token-{run}'%s}}))"


def test_the_token_of_an_exec_plugin_is_asked_for_again_after_a_401(api, tmp_path):
    path = api.write_kubeconfig(tmp_path / "config", user=exec_user(tmp_path, TELL % ""))
    connection = kubeconfig.load(str(path))
    api.tokens = {"token-2"}
    assert get(connection)
    assert [r.headers["Authorization"] for r in api.requests] == ["Bearer token-1", "Bearer token-2"]


def test_the_token_of_an_exec_plugin_is_asked_for_again_when_it_expires(api, tmp_path):
    user = exec_user(tmp_path, TELL % ", 'expirationTimestamp': '2020-01-01T00:00:00Z'")
    credentials = kubeconfig.load(str(api.write_kubeconfig(tmp_path / "config", user=user))).credentials
    found = [credentials.headers(monotonic)["Authorization"] for monotonic in (0.0, 9.0, 10.0, 11.0)]
    assert found == ["Bearer token-1", "Bearer token-1", "Bearer token-2", "Bearer token-2"]


def test_a_plugin_that_fails_is_told_in_one_line_and_not_on_standard_error(api, tmp_path, capfd):
    user = exec_user(tmp_path, "sys.exit('please log in')")
    with pytest.raises(CredentialsInvalid, match=r"returned 1\. please log in; run the exec plugin by hand"):
        kubeconfig.load(str(api.write_kubeconfig(tmp_path / "config", user=user)))
    assert capfd.readouterr() == ("", "")


def test_a_plugin_that_hangs_is_given_up(api, tmp_path, monkeypatch):
    monkeypatch.setattr(kubeconfig, "EXEC_LIMIT_S", 0.3)
    user = exec_user(tmp_path, "import time; time.sleep(3)")
    with pytest.raises(CredentialsInvalid, match="gave no answer within"):
        kubeconfig.load(str(api.write_kubeconfig(tmp_path / "config", user=user)))


def test_a_plugin_that_hangs_again_and_again_is_not_run_without_end(api, tmp_path, monkeypatch):
    """Each that cannot be ended leaves a process and a thread behind; a token that has expired is asked for every ten
    seconds."""
    monkeypatch.setattr(kubeconfig, "_kill_processes_of", lambda _: None)
    monkeypatch.setattr(kubeconfig, "END_LIMIT_S", 0.0)
    monkeypatch.setattr(kubeconfig, "EXEC_LIMIT_S", 0.3)
    begun = tmp_path / "begun"
    begun.touch()
    user = exec_user(tmp_path, f"import time; open({str(begun)!r}, 'a').write('x'); time.sleep(4)")
    credentials = kubeconfig.KubeconfigCredentials(str(api.write_kubeconfig(tmp_path / "config", user=user)), None)
    for _ in range(3 * kubeconfig.HUNG_MAX):
        with pytest.raises(CredentialsInvalid, match="gave no answer within"):
            credentials.load()
    wait_until(lambda: len(begun.read_text()) == kubeconfig.HUNG_MAX, begun.read_text)
    wait_until(lambda: not any(thread.is_alive() for thread in credentials._hung), "their ends", timeout_s=20)
    with pytest.raises(CredentialsInvalid, match="gave no answer within"):
        credentials.load()
    wait_until(lambda: len(begun.read_text()) > kubeconfig.HUNG_MAX, "it is run again")


@pytest.mark.parametrize(
    "hangs",
    [
        pytest.param("time.sleep(600)", id="itself"),
        pytest.param("subprocess.run(['sleep', '600'])", id="in a process of its own, which has its output too"),
    ],
)
def test_a_plugin_that_hung_again_and_again_is_run_once_it_answers(api, tmp_path, monkeypatch, hangs):
    """Who gives tokens is away for a while, and the plugin waits for it without end."""
    monkeypatch.setattr(kubeconfig, "EXEC_LIMIT_S", 0.3)
    away = tmp_path / "away"
    away.touch()
    user = exec_user(tmp_path, f"import os, subprocess, time\nif os.path.exists({str(away)!r}): {hangs}\n{TELL % ''}")
    credentials = kubeconfig.KubeconfigCredentials(str(api.write_kubeconfig(tmp_path / "config", user=user)), None)
    try:
        for _ in range(2 * kubeconfig.HUNG_MAX):
            with pytest.raises(CredentialsInvalid, match="gave no answer within"):
                credentials.load()
        assert sum(thread.is_alive() for thread in credentials._hung) <= kubeconfig.HUNG_MAX
        away.unlink()
        monkeypatch.setattr(kubeconfig, "EXEC_LIMIT_S", 20.0)
        assert credentials.load().api_key["BearerToken"].startswith("Bearer token-")
    finally:
        for thread in credentials._hung:
            kubeconfig._kill_processes_of(thread)
    wait_until(lambda: not any(thread.is_alive() for thread in credentials._hung), "the ends of those that hang still")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        pytest.param(None, "no such file; name an existing one", id="missing"),
        pytest.param("", "file is empty; correct the file", id="empty"),
        pytest.param("just text", "it is not a kubeconfig", id="text"),
        pytest.param("a: [", "it is not YAML", id="broken YAML"),
        pytest.param("\x00", "it is not YAML", id="binary"),
        pytest.param("{}", "Expected key current-context", id="no content"),
        pytest.param("current-context: a", "name a in .*contexts", id="no contexts"),
        pytest.param(
            "{current-context: a, contexts: [], clusters: [], users: []}", "name a in .*contexts", id="no such"
        ),
    ],
)
def test_a_broken_file_is_told_in_one_line(tmp_path, content, expected):
    path = tmp_path / "config"
    if content is not None:
        path.write_text(content)
    with pytest.raises(CredentialsInvalid, match=expected) as caught:
        connect(str(path))
    assert ("\n" in str(caught.value), str(caught.value).startswith(f"kubeconfig {path}: ")) == (False, True)


@pytest.mark.parametrize(
    ("cluster", "user", "expected"),
    [
        pytest.param({"server": "not-a-url"}, {}, "set it as https://host:port", id="no address"),
        pytest.param({"proxy-url": "http://p"}, {}, "proxy-url is not supported", id="a proxy"),
        pytest.param({"certificate-authority": "/none"}, {}, "File does not exist: /none", id="no authority file"),
        pytest.param({"certificate-authority-data": "eA=="}, {}, "correct the file", id="a broken authority"),
        pytest.param({}, {"client-certificate": "/none", "client-key": "/none"}, "/none", id="no client certificate"),
        pytest.param({}, {"tokenFile": "/none"}, "No such file or directory", id="no token file"),
    ],
)
def test_a_broken_entry_is_told_in_one_line(api, tmp_path, cluster, user, expected):
    path = api.write_kubeconfig(tmp_path / "config", user=user, cluster={"server": "https://127.0.0.1:1", **cluster})
    with pytest.raises(CredentialsInvalid, match=expected) as caught:
        connect(str(path))
    assert "\n" not in str(caught.value)


def several(tmp_path, *documents) -> str:
    """Files of one context each, by its name; None is one that is not there, "" nothing between two colons."""
    found = []
    for place, document in enumerate(documents):
        file = tmp_path / f"{place}.conf"
        if document:
            file.write_text(json.dumps(document))
        found.append("" if document == "" else str(file))
    return ":".join(found)


def of_context(name, **more) -> dict:
    return {
        "clusters": [{"name": name, "cluster": {"server": f"http://{name}:6443"}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": f"of-{name}"}}],
        "users": [{"name": name, "user": {"token": name}}],
        **more,
    }


@pytest.mark.parametrize(
    ("documents", "expected"),
    [
        pytest.param(
            (of_context("a", **{"current-context": "a"}), of_context("b", **{"current-context": "b"})),
            "a",
            id="the first that names a current context",
        ),
        pytest.param(
            (of_context("a", **{"current-context": ""}), of_context("b", **{"current-context": "b"})),
            "b",
            id="one without a current context names none",
        ),
        pytest.param(
            (of_context("a", **{"current-context": "b"}), of_context("b", **{"current-context": ""})),
            "b",
            id="a context of another file",
        ),
        pytest.param((None, of_context("b", **{"current-context": "b"})), "b", id="the first is not there"),
        pytest.param((of_context("b", **{"current-context": "b"}), None), "b", id="the last is not there"),
        pytest.param(("", of_context("b", **{"current-context": "b"}), ""), "b", id="colons at both ends"),
    ],
)
def test_of_several_files_the_context_is_taken_that_kubectl_takes(tmp_path, documents, expected):
    path = several(tmp_path, *documents)
    found = kubeconfig.load(path)
    told = (found.server, found.credentials.headers(0.0)["Authorization"], kubeconfig.context(path))
    assert (f"http://{expected}:6443", f"Bearer {expected}", (expected, f"of-{expected}")) == told


def test_several_files_of_which_none_is_there(tmp_path):
    path = several(tmp_path, None, None)
    with pytest.raises(CredentialsInvalid, match="no such file; name an existing one"):
        kubeconfig.load(path)


@pytest.mark.parametrize("user", [{"as": "ben"}, {"as-groups": ["system:masters"]}], ids=["as", "as-groups"])
def test_a_user_that_acts_as_another_one_is_refused(api, tmp_path, user):
    path = api.write_kubeconfig(tmp_path / "config", user={"token": "t", **user})
    with pytest.raises(CredentialsInvalid, match=r"act as another user \(as\) is not supported"):
        connect(str(path))


def test_the_address_may_be_overridden(api, tmp_path):
    path = api.write_kubeconfig(tmp_path / "config", cluster={"server": "http://127.0.0.1:1"})
    assert get(connect(str(path), server=api.url))


@pytest.mark.parametrize("server", ["10.0.0.1:6443", "https://", "https://host:port", "ftp://h", "https://[::1:6443"])
def test_an_address_that_cannot_be_used_is_told_at_once(api, server):
    with pytest.raises(CredentialsInvalid, match="give it as https://host:port"):
        Client(replace(api.connection(), server=server), user_agent="t")
