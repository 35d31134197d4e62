"""The check `certificates`: when the kubelet's certificates end."""

import datetime as dt
import subprocess
from functools import partial
from pathlib import Path

import pytest

from agent.checks.builtin.certificates import (
    DAY_S,
    Check,
    NoCertificateError,
    Settings,
    Validity,
    judged,
    validity,
)
from agent.checks.state import CheckState, Finding
from tools.kit.cases import cases

failed, passed, unknown, warned = (
    partial(Finding, state) for state in (CheckState.FAILED, CheckState.PASSED, CheckState.UNKNOWN, CheckState.WARNED)
)

WALL = 1_800_000_000.0
YEAR_S = 365 * DAY_S


def of(left_days: float, life_s: float = YEAR_S, file: str = "client.pem") -> Validity:
    ends = WALL + left_days * DAY_S
    return Validity(file, ends - life_s, ends)


@cases(
    "found, blind, expected",
    ("good for long", [of(200)], [], passed("client.pem 200.0 days")),
    ("a week", [of(6.5)], [], warned("client.pem ends in 6.5 days")),
    ("ended", [of(0)], [], failed("client.pem has ended at 2027-01-15T08:00:00Z")),
    ("not valid yet", [of(400)], [], failed("client.pem is not valid before 2027-02-19T08:00:00Z")),
    ("half of a day's life", [of(0.5, life_s=DAY_S)], [], passed("client.pem 0.5 days")),
    ("the last tenth of it", [of(0.09, life_s=DAY_S)], [], warned("client.pem ends in 0.1 days")),
    ("the worst", [of(6.5), of(-1, file="server.pem")], [], failed("server.pem has ended at 2027-01-14T08:00:00Z")),
    ("unreadable", [of(200)], ["cannot read /x: Permission denied"], unknown("cannot read /x: Permission denied")),
    ("none", [], [], unknown("/pki has none of a, b")),
)
def test_when_they_end(found: list[Validity], blind: list[str], expected: Finding) -> None:
    assert expected == judged(found, blind, Settings("/pki", ("a", "b")), WALL)


def made(folder: Path, *, days: int, name: str = "client.pem", by: str = "/O=system:nodes/CN=system:node:n") -> Path:
    """By openssl: the key first, as in the kubelet's own file, so that what is looked for is in the middle."""
    key, certificate, both = folder / "key", folder / "certificate", folder / name
    words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    words += ["-subj", by, "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*words, "-days", str(days)], check=True, capture_output=True)
    both.write_bytes(key.read_bytes() + certificate.read_bytes())
    return both


ITSELF = "/CN=node-1-ca@1790000000"  # as client-go calls the CA of such a certificate


@pytest.mark.parametrize("days", [1, 365, 36500], ids=["a day", "a year", "beyond 2049, in another form of time"])
def test_openssl_says_the_same(tmp_path: Path, days: int) -> None:
    file = made(tmp_path, days=days)
    words = ["openssl", "x509", "-in", str(file), "-noout", "-dates"]
    said = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    dates = [line.partition("=")[2] for line in said.splitlines()]
    form = "%b %d %H:%M:%S %Y %Z"
    expected = tuple(dt.datetime.strptime(date, form).replace(tzinfo=dt.UTC).timestamp() for date in dates)
    assert expected == validity(file.read_bytes())


@pytest.mark.parametrize(
    ("server", "by", "expected"),
    [
        pytest.param(True, ITSELF, CheckState.PASSED, id="beside the one that it has from the cluster: a leftover"),
        pytest.param(False, ITSELF, CheckState.WARNED, id="alone: the one that it serves with, and nobody verifies"),
        pytest.param(False, "/CN=ca of ours", CheckState.FAILED, id="one that somebody has put there"),
    ],
)
def test_the_certificate_that_a_kubelet_made_for_itself_ends(
    tmp_path: Path, *, server: bool, by: str, expected: CheckState
) -> None:
    """A year after the node was made; all nodes of a cluster that were made on a day have it."""
    own = made(tmp_path, days=1, name="kubelet.crt", by=by)
    made(tmp_path, days=90, name="kubelet-client-current.pem")
    if server:
        made(tmp_path, days=90, name="kubelet-server-current.pem")
    _, ends = validity(own.read_bytes())
    assert expected is Check(Settings(str(tmp_path)), 60.0, wall=lambda: ends)().state


def test_one_that_was_renewed_in_place_is_seen(tmp_path: Path) -> None:
    file = made(tmp_path, days=1)
    _, ends = validity(file.read_bytes())
    check = Check(Settings(str(tmp_path), (file.name, "none")), 60.0, wall=lambda: ends)
    assert check().state is CheckState.FAILED
    made(tmp_path, days=90)
    assert check().state is CheckState.PASSED


@pytest.mark.parametrize(
    "pem",
    [
        b"",
        b"-----BEGIN PRIVATE KEY-----\nMII=\n-----END PRIVATE KEY-----\n",
        b"-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n",
        b"-----BEGIN CERTIFICATE-----\nMIID\n-----END CERTIFICATE-----\n",
        b"-----BEGIN CERTIFICATE-----\n!!!!\n-----END CERTIFICATE-----\n",
        b"-----BEGIN CERTIFICATE-----\nMIL/////\n-----END CERTIFICATE-----\n",
    ],
    ids=["nothing", "a key alone", "an empty one", "a short one", "no base64", "a length beyond the end"],
)
def test_what_is_no_certificate(pem: bytes) -> None:
    with pytest.raises(NoCertificateError):
        validity(pem)


def test_half_of_one_does_not_parse(tmp_path: Path) -> None:
    lines = made(tmp_path, days=1).read_bytes().partition(b"-----BEGIN CERT")[2].splitlines()[1:-1]
    for count in range(len(lines) - 3):
        cut = b"-----BEGIN CERTIFICATE-----\n" + b"\n".join(lines[:count]) + b"\n-----END CERTIFICATE-----\n"
        with pytest.raises(NoCertificateError):
            validity(cut)


def test_a_file_without_a_certificate_is_unknown(tmp_path: Path) -> None:
    (tmp_path / "a.pem").write_text("hello")
    found = Check(Settings(str(tmp_path), ("a.pem",)), 60.0)()
    assert Finding(CheckState.UNKNOWN, "a.pem: holds no certificate") == found


def test_the_kubelets_link_is_followed_within_the_folder_that_is_given(tmp_path: Path) -> None:
    made(tmp_path, days=90, name="kubelet-client-2026-01-01.pem")
    (tmp_path / "current.pem").symlink_to("/var/lib/kubelet/pki/kubelet-client-2026-01-01.pem")
    assert Check(Settings(str(tmp_path), ("current.pem",)), 60.0)().state is CheckState.PASSED
