"""The check `certificates`: when the kubelet's certificates end."""

import datetime as dt
import os
import subprocess
from collections.abc import Callable
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


CLIENT, DATED = "kubelet-client-current.pem", "kubelet-client-2026-01-04-10-11-12.pem"


def linked(root: Path, to: str, name: str = CLIENT) -> None:
    (root / name).symlink_to(to.replace("{}", str(root)))


def link_to_empty(root: Path) -> None:
    (root / DATED).touch()
    linked(root, DATED)


def replaced(root: Path) -> None:
    made(root, days=90, name=DATED)
    linked(root, f"/var/lib/kubelet/pki/{DATED}", "kubelet-client-updated.pem")


# What is in the place of the client certificate, beside a good kubelet.crt: state, and the words after the file's name.
FAULTS: list[tuple[str, Callable[[Path], object], str, str]] = [
    (
        "kubernetes/kubernetes#53288: its target was in a transient folder",
        lambda root: linked(root, "{}/gone.crt"),
        "warned",
        "leads to {}/gone.crt, which is not there",
    ),
    (
        "kubernetes/website#28312: the dated file is gone",
        lambda root: linked(root, f"/var/lib/kubelet/pki/{DATED}"),
        "warned",
        f"leads to /var/lib/kubelet/pki/{DATED}, which is not there",
    ),
    (
        "the same, by a relative link",
        lambda root: linked(root, DATED),
        "warned",
        f"leads to {DATED}, which is not there",
    ),
    ("kubernetes/kubernetes#34956: empty after a crash", lambda root: (root / CLIENT).touch(), "warned", "is empty"),
    ("rancher/rancher#33618: its link leads to an empty file", link_to_empty, "warned", "is empty"),
    (
        "zero bytes, as a journal leaves them",
        lambda root: (root / CLIENT).write_bytes(bytes(900)),
        "warned",
        "holds nothing but zero bytes",
    ),
    ("apprenda/kismatic#251: a folder in its place", lambda root: (root / CLIENT).mkdir(), "warned", "is a folder"),
    (
        "a pipe in its place, which nobody waits for",
        lambda root: os.mkfifo(root / CLIENT),
        "warned",
        "is no regular file",
    ),
    ("a link to itself", lambda root: linked(root, CLIENT), "warned", "leads in a circle"),
    (
        "two links to each other",
        lambda root: [linked(root, "b.pem"), linked(root, CLIENT, "b.pem")],
        "warned",
        "leads in a circle",
    ),
    (
        "the link is gone, the dated file is there",
        lambda root: made(root, days=90, name=DATED),
        "warned",
        f"is not there, {DATED} is",
    ),
    (
        "rancher/rancher#15801: no certificate in it",
        lambda root: (root / CLIENT).write_text("hello"),
        "unknown",
        ": holds no certificate",
    ),
    (
        "a link to a folder that the agent does not see",
        lambda root: linked(root, "/nowhere/kubelet.crt"),
        "unknown",
        "leads to /nowhere/kubelet.crt, which is not seen from here",
    ),
    (
        "the same, by a relative link out of the folder",
        lambda root: linked(root, "../nowhere/kubelet.crt"),
        "unknown",
        "leads to ../nowhere/kubelet.crt, which is not seen from here",
    ),
    ("the kubelet is just replacing the link", replaced, "passed", ""),
    ("it was never there", lambda _: None, "passed", ""),
]


@cases("fault, state, words", *FAULTS)
def test_what_is_wrong_with_the_file_itself_is_told_apart(
    tmp_path: Path, fault: Callable[[Path], object], state: str, words: str
) -> None:
    """Each is another finding; none of them passes, as a file that is not there does."""
    made(tmp_path, days=90, name="kubelet.crt")
    fault(tmp_path)
    found = Check(Settings(str(tmp_path)), 60.0)()
    assert CheckState(state) is found.state, found
    words = words.replace("{}", str(tmp_path))
    if state == "passed":
        assert found.output.startswith("kubelet.crt 9") or found.output.startswith("kubelet.crt 8"), found
        assert found.output.endswith(f"; not there: {CLIENT}, kubelet-server-current.pem"), found
    else:
        assert f"{CLIENT}{'' if words.startswith(':') else ' '}{words}" == found.output


def test_what_cannot_be_read_is_unknown_and_what_is_broken_beside_it_is_reported(tmp_path: Path) -> None:
    (tmp_path / CLIENT).touch()
    found = Check(Settings(str(tmp_path), (CLIENT, f"{CLIENT}/a")), 60.0)()
    assert unknown(f"cannot read {tmp_path}/{CLIENT}/a: Not a directory; {CLIENT} is empty") == found


@cases(
    "found, blind, broken, missing, expected",
    ("broken and unread", [of(200)], ["cannot read x"], ["a is empty"], [], unknown("cannot read x; a is empty")),
    (
        "broken and ended",
        [of(-1)],
        [],
        ["a is empty"],
        [],
        failed("client.pem has ended at 2027-01-14T08:00:00Z; a is empty"),
    ),
    ("broken alone", [], [], ["a is empty"], ["b"], warned("a is empty")),
    ("broken and soon over", [of(6.5)], [], ["a is empty"], [], warned("a is empty; client.pem ends in 6.5 days")),
    ("none", [], [], [], ["a", "b"], unknown("/pki has none of a, b")),
)
def test_the_worst_of_several_counts(
    found: list[Validity], blind: list[str], broken: list[str], missing: list[str], expected: Finding
) -> None:
    assert expected == judged(found, blind, Settings("/pki", ("a", "b")), WALL, broken, missing)


def test_a_serving_certificate_that_is_gone_makes_no_leftover_of_the_kubelets_own(tmp_path: Path) -> None:
    own = made(tmp_path, days=1, name="kubelet.crt", by=ITSELF)
    linked(tmp_path, "kubelet-server-2026-01-04-10-11-12.pem", "kubelet-server-current.pem")
    _, ends = validity(own.read_bytes())
    found = Check(Settings(str(tmp_path)), 60.0, wall=lambda: ends)()
    assert (CheckState.WARNED, True) == (found.state, "kubelet.crt has ended" in found.output), found


def test_a_link_out_of_the_folder_is_followed_below_the_hosts_files(tmp_path: Path) -> None:
    """The agent sees the host's files at /host: a link of an operator's from the kubelet's folder to another one."""
    pki, other = tmp_path / "host/var/lib/kubelet/pki", tmp_path / "host/etc/ours"
    for folder in (pki, other):
        folder.mkdir(parents=True)
    linked(pki, "/etc/ours/kubelet.crt", "kubelet.crt")
    gone = Check(Settings(str(pki)), 60.0)()
    made(other, days=90, name="kubelet.crt")
    there = Check(Settings(str(pki)), 60.0)()
    assert warned("kubelet.crt leads to /etc/ours/kubelet.crt, which is not there") == gone
    assert CheckState.PASSED is there.state
