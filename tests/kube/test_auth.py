"""Service account credentials: rotation by the monotonic clock, and one line for each way they can be missing."""

import base64
import json
import logging
import subprocess
import sys

import pytest

from kube import auth
from kube.auth import TokenFile, expiry_of, is_ending
from kube.connect import connect
from kube.errors import CredentialsInvalid


@pytest.fixture
def token(tmp_path):
    path = tmp_path / "token"
    path.write_text("first\n")
    return path


def bearer(credentials, monotonic: float) -> str:
    return credentials.headers(monotonic)["Authorization"]


@pytest.mark.parametrize(
    ("monotonic", "expected"), [(100.0, "Bearer first"), (159.9, "Bearer first"), (160.0, "Bearer second")]
)
def test_a_token_is_read_again_after_a_minute(token, monotonic, expected):
    credentials = TokenFile(token)
    bearer(credentials, 100.0)
    token.write_text("second")
    assert expected == bearer(credentials, monotonic)


def test_a_token_is_read_again_at_once_after_a_refusal(token):
    credentials = TokenFile(token)
    bearer(credentials, 100.0)
    token.write_text("second")
    credentials.refresh()
    assert bearer(credentials, 100.1) == "Bearer second"


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(None, id="gone"),
        pytest.param("", id="empty"),
        pytest.param(" \n", id="blank"),
        pytest.param("sec\r\nX-Evil: 1", id="two lines"),
        pytest.param("sec ond", id="two words"),
        pytest.param("sec\x00", id="no text"),
        pytest.param("secönd", id="other letters"),
    ],
)
def test_while_the_file_is_swapped_the_last_token_stays(token, content):
    credentials = TokenFile(token)
    bearer(credentials, 100.0)
    if content is None:
        token.unlink()
    else:
        token.write_text(content)
    credentials.refresh()
    during = bearer(credentials, 101.0)
    token.write_text("second")
    assert (during, bearer(credentials, 102.0)) == ("Bearer first", "Bearer second")


def test_a_file_that_cannot_be_used_is_told_of_once_and_when_it_can_again(token, caplog):
    credentials = TokenFile(token)
    with caplog.at_level(logging.INFO):
        for content in (None, "", "secret\nsecret", "second", "second", ""):
            if content is None:
                bearer(credentials, 100.0)
                token.unlink()
            else:
                token.write_text(content)
            credentials.refresh()
            bearer(credentials, 100.0)
    kept, again = "credentials cannot be read again, the last ones stay in use", "credentials read again"
    told = [(r.message, r.files, getattr(r, "error", "")) for r in caplog.records]
    gone, empty = "cannot be read: No such file or directory", "is empty: wait for the kubelet or mount it"
    assert [(kept, str(token), gone), (again, str(token), ""), (kept, str(token), empty)] == told


def test_what_is_no_token_is_never_shown(token):
    token.write_text("secret\nsecret")
    with pytest.raises(CredentialsInvalid, match=r"token file .*token holds no token: more than one line") as told:
        TokenFile(token).headers(0.0)
    assert "secret" not in str(told.value)


def test_a_token_that_never_was_is_an_error_with_its_path(tmp_path):
    with pytest.raises(CredentialsInvalid, match=str(tmp_path / "token")):
        TokenFile(tmp_path / "token").headers(0.0)


POD = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}


@pytest.mark.parametrize(
    ("environ", "files", "expected"),
    [
        pytest.param({}, {}, "not inside a pod: .*name a kubeconfig file", id="no pod"),
        pytest.param(POD, {}, "no service account token at .*automountServiceAccountToken", id="no token"),
        pytest.param(POD, {"token": "t"}, "ca.crt cannot be used: No such file", id="no certificate authority"),
        pytest.param(POD, {"token": "t", "ca.crt": "x"}, "ca.crt cannot be used: ", id="a broken one"),
        pytest.param(POD, {"token": "t", "ca.crt": ""}, "ca.crt cannot be used: .*is empty", id="an empty one"),
    ],
)
def test_what_is_missing_in_a_pod_is_named_in_one_line(tmp_path, environ, files, expected):
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    with pytest.raises(CredentialsInvalid, match=expected) as caught:
        auth.in_cluster(tmp_path, environ)
    assert "\n" not in str(caught.value)


def jwt(payload: bytes) -> str:
    return f"e30.{base64.urlsafe_b64encode(payload).decode().rstrip('=')}.sig"


@pytest.mark.parametrize(
    ("token", "expected"),
    [
        pytest.param(jwt(b'{"exp": 1800000000}'), 1.8e9, id="a service account's"),
        pytest.param(jwt(b'{"iat": 1}'), None, id="one that says nothing of it"),
        pytest.param(jwt(b'{"exp": "soon"}'), None, id="one that says it in words"),
        pytest.param(jwt(b'{"exp": null}'), None, id="nothing"),
        pytest.param(jwt(b"[1]"), None, id="no claims"),
        pytest.param(jwt(b"{"), None, id="no JSON"),
        pytest.param("a.\u00e9.c", None, id="no base64"),
        pytest.param("opaque", None, id="no JWT"),
    ],
)
def test_when_a_token_ends(token, expected):
    assert expected == expiry_of(token)


DAY_S = 86400.0


@pytest.mark.parametrize(
    ("life_days", "left_days", "expected"),
    [
        pytest.param(365, 31, False, id="a year's, a month is left"),
        pytest.param(365, 29, True, id="a year's, less is left"),
        pytest.param(30, 4, False, id="a month's"),
        pytest.param(30, 2, True, id="a month's, a tenth of it is left"),
        pytest.param(1 / 24, 0.19 / 24, False, id="a pod's, before the kubelet renews it"),
    ],
)
def test_whether_somebody_should_renew_it(life_days, left_days, expected):
    token = jwt(json.dumps({"iat": 0, "exp": life_days * DAY_S}).encode())
    assert expected is is_ending(token, (life_days - left_days) * DAY_S)


def test_a_token_that_nobody_renews_is_told_of_once_a_day(tmp_path, caplog):
    path = tmp_path / "token"
    path.write_text(jwt(json.dumps({"iat": 0, "exp": 365 * DAY_S}).encode()))
    credentials = TokenFile(path, wall=lambda: 350 * DAY_S)
    for monotonic in (0.0, 100.0, DAY_S - 1, DAY_S + 100):
        credentials.headers(monotonic)
    assert ["the token ends soon and was not renewed"] * 2 == [record.message for record in caplog.records]
    assert (365 * DAY_S, "1971-01-01T00:00:00Z") == (credentials.expiry, caplog.records[0].ends)


def test_files_of_somebody_who_is_no_pod(tmp_path):
    files = {"server": "https://192.0.2.11:6443", "token_file": str(tmp_path / "t"), "ca_file": str(tmp_path / "ca")}
    with pytest.raises(CredentialsInvalid, match=f"certificate authority {tmp_path}/ca cannot be used: No such file"):
        connect(None, **files)


def test_connect_without_a_file_is_in_cluster(monkeypatch):
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(CredentialsInvalid, match="not inside a pod"):
        connect(None)


def test_in_cluster_costs_no_import_of_the_package_kubernetes():
    program = "import sys, kube.reflector, kube.connect; sys.exit('kubernetes' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False, timeout=20).returncode == 0


def test_a_kubeconfig_where_the_package_is_not_installed_is_refused_in_one_line():
    program = """
import sys
sys.modules["kubernetes"] = None
from kube.connect import connect
from kube.errors import CredentialsInvalid
for _ in range(2):
    try:
        connect("/etc/some.conf")
    except CredentialsInvalid as e:
        print(e)
"""
    done = subprocess.run([sys.executable, "-c", program], check=True, timeout=20, capture_output=True, text=True)
    expected = (
        "no kubeconfig can be read: the package kubernetes.client is not installed; "
        "pip install 'readygate[kubeconfig]', or in a pod name no kubeconfig"
    )
    assert [expected] * 2 == done.stdout.splitlines()
