"""A client certificate whose time has come or is yet to come: one line with the file and the time."""

import datetime as dt
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from kube.auth import CertificateFiles
from kube.certificates import not_valid

DAY_S = 86_400.0
BEGINS = 1_800_000_000.0
ENDS = BEGINS + 365 * DAY_S
NOT_YET = "it is not valid before 2027-01-15T08:00:00Z, and the clock of this machine shows 2027-01-15T07:59:59Z"
ENDED = "it ended at 2028-01-15T08:00:00Z"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Certificate and key in one file, as a kubelet keeps them."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "system:node:a")])
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), 1)
        .not_valid_before(dt.datetime.fromtimestamp(BEGINS, dt.UTC))
        .not_valid_after(dt.datetime.fromtimestamp(ENDS, dt.UTC))
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("pki") / "kubelet-client-current.pem"
    pem = serialization.Encoding.PEM
    path.write_bytes(
        made.public_bytes(pem) + key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return path


@pytest.mark.parametrize(
    ("wall", "expected"),
    [
        pytest.param(BEGINS - 1, NOT_YET, id="not valid yet, or the clock is behind"),
        pytest.param(BEGINS, "", id="from its first second on it is"),
        pytest.param(ENDS - 1, "", id="up to its last"),
        pytest.param(ENDS, ENDED, id="it has ended"),
    ],
)
def test_what_is_wrong_with_its_time(file: Path, wall: float, expected: str) -> None:
    assert expected == not_valid(file.read_bytes(), wall)


def test_what_is_no_certificate_says_nothing_of_time() -> None:
    assert ["", ""] == [
        not_valid(b"x", 0.0),
        not_valid(b"-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----", 0.0),
    ]


def test_one_line_names_the_file_once_a_day_and_again_after_a_renewal(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    wall = [ENDS - 1]
    files = CertificateFiles(authority=file, certificate=file, key=file, wall=lambda: wall[0])
    assert [] == caplog.records
    for wall[0] in (ENDS, ENDS + 60, ENDS + DAY_S - 1, ENDS + DAY_S):
        files.refresh()  # as after each refusal, and each minute
    wall[0] = BEGINS + 1  # the clock was set
    files.refresh()
    wall[0] = BEGINS - 1
    files.refresh()
    expected = [("the client certificate is not valid", str(file), text) for text in (ENDED, ENDED, NOT_YET)]
    assert expected == [(record.message, record.file, record.error) for record in caplog.records]  # type: ignore[attr-defined]


def test_one_that_has_ended_already_is_told_of_at_the_start(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    CertificateFiles(authority=file, certificate=file, key=file, wall=lambda: ENDS)
    assert [ENDED] == [record.error for record in caplog.records]  # type: ignore[attr-defined]
