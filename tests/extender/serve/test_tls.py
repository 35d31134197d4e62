"""Both ends of a connection in memory: no socket, no clock. The files are made by the openssl command, once."""

import logging
import shutil
import ssl

import pytest

from extender.config.settings import Tls
from extender.serve import limits, tls
from tests.scripted.tls import make_authority
from tools.kit.cases import cases
from tools.kit.scope import draws

VERSIONS = pytest.mark.parametrize("newest", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["1.2", "1.3"])


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    return make_authority(tmp_path_factory.mktemp("ours"), clients={"scheduler": "system:kube-scheduler"}).folder


@pytest.fixture(scope="module")
def theirs(tmp_path_factory):
    return make_authority(tmp_path_factory.mktemp("theirs")).folder


def settings(folder, *, client_ca=True, names=()):
    files = [str(folder / name) for name in ("server.crt", "server.key", "ca.crt")]
    return Tls(*(files if client_ca else files[:2]), client_names=names)


class Client:
    """The other end. certificate: folder and name of its own, None for none."""

    def __init__(self, trusted, certificate=None, *, newest=ssl.TLSVersion.TLSv1_3):
        context = ssl.create_default_context(cafile=str(trusted / "ca.crt"))
        context.minimum_version, context.maximum_version = min(newest, ssl.TLSVersion.TLSv1_2), newest
        if certificate:
            folder, name = certificate
            context.load_cert_chain(folder / f"{name}.crt", folder / f"{name}.key")
        self._incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self._incoming, self.outgoing, server_hostname="127.0.0.1")

    def try_(self, call):
        try:
            return call()
        except ssl.SSLWantReadError:
            return None

    def take(self, data):
        self._incoming.write(data)


def shake(stream, client, *, piece=100_000):
    """Both sides take turns until neither has anything to say. piece: how many bytes come off the wire at a time."""
    for _ in range(4):
        client.try_(client.tls.do_handshake)
        data = client.outgoing.read()
        for start in range(0, len(data), piece):
            assert stream.receive(data[start : start + piece]) == b""
        client.take(stream.pending())
    client.try_(client.tls.read)  # what a client of TLS 1.3 learns only now: that its certificate was refused
    return stream


def say(client, words):
    client.tls.write(words)
    return client.outgoing.read()


@VERSIONS
@pytest.mark.parametrize("piece", [1, 100_000], ids=["a byte at a time", "all at once"])
def test_a_request_and_its_answer(ours, newest, piece):
    stream, client = tls.Certificates(settings(ours)).stream(), Client(ours, (ours, "client"), newest=newest)
    assert (stream.ready, stream.may_ask) == (False, False)
    shake(stream, client, piece=piece)
    assert (stream.ready, stream.may_ask) == (True, True)
    request, answer = b"POST " * 20_000, b"{} " * 50_000
    assert request == stream.receive(say(client, request))
    client.take(stream.send(answer))
    assert answer == b"".join(iter(lambda: client.try_(lambda: client.tls.read(65536)) or b"", b""))
    client.take(stream.ended())
    assert client.tls.read() == b""  # the end, and not a wire that was cut


def test_a_client_that_says_it_is_done_gives_what_it_sent_before(ours):
    client = Client(ours)
    stream = shake(tls.Certificates(settings(ours)).stream(), client)
    last = say(client, b"last")
    client.try_(client.tls.unwrap)
    assert (b"last", b"") == (stream.receive(last + client.outgoing.read()), stream.receive(b""))


@VERSIONS
def test_after_a_client_has_said_that_it_is_done_nothing_more_of_it_is_kept(ours, newest):
    client = Client(ours, newest=newest)
    stream = shake(tls.Certificates(settings(ours)).stream(), client)
    client.try_(client.tls.unwrap)
    assert (b"", True) == (stream.receive(client.outgoing.read()), stream.done)
    for _ in range(100):
        assert b"" == stream.receive(b"x" * 65536)
    assert 0 == stream._incoming.pending


@VERSIONS
def test_half_a_record_waits_where_it_has_a_bound(ours, newest):
    stream = shake(tls.Certificates(settings(ours)).stream(), Client(ours, newest=newest))
    assert b"" == stream.receive(b"\x17\x03\x03\x40\x00" + b"x" * 16_000)
    assert 0 == stream._incoming.pending


@VERSIONS
def test_a_client_that_sends_a_record_a_byte_is_cut_before_they_cost_time(ours, newest):
    """Each costs as much as a packet of its own; and so does one that changes keys, which holds no byte at all."""
    client = Client(ours, newest=newest)
    stream = shake(tls.Certificates(settings(ours)).stream(), client)
    few, many = ([say(client, b"x") for _ in range(count)] for count in (50, limits.SMALL_RECORDS_MAX))
    assert b"x" * 50 == stream.receive(b"".join(few))
    with pytest.raises(tls.StreamError, match="records"):
        stream.receive(b"".join(many))
    assert 0 == stream._incoming.pending


@pytest.mark.parametrize("piece", [1, 7, 100_000], ids=["a byte at a time", "in sevens", "all at once"])
def test_small_records_are_counted_anew_after_each_answer_and_large_ones_are_not(ours, piece):
    client = Client(ours)
    stream = shake(tls.Certificates(settings(ours)).stream(), client)
    for _ in range(draws(2, 3)):
        words = [b"x" * size for size in (1, 600, 16_384, 40_000)] * 20
        wire = b"".join(say(client, word) for word in words)
        got = [stream.receive(wire[start : start + piece]) for start in range(0, len(wire), piece)]
        assert b"".join(words) == b"".join(got)
        client.take(stream.send(b"answer"))


@pytest.mark.parametrize(
    ("client_ca", "names", "certificate", "may_ask"),
    [
        pytest.param(False, (), None, True, id="no client CA: nobody shows who they are"),
        pytest.param(True, (), None, False, id="without a certificate, as the kubelet's probes come"),
        pytest.param(True, (), "client", True, id="any certificate of the CA"),
        pytest.param(True, ("system:kube-scheduler",), "scheduler", True, id="the name that is allowed"),
        pytest.param(True, ("other", "system:kube-scheduler"), "scheduler", True, id="one of two names"),
        pytest.param(True, ("system:kube-scheduler",), "client", False, id="another name of the same CA"),
        pytest.param(True, ("system:kube-scheduler",), None, False, id="a name is wanted and there is no certificate"),
        pytest.param(True, ("client.example",), "client", True, id="a DNS name among the alternative names"),
        pytest.param(True, ("system",), "scheduler", False, id="the beginning of a name"),
    ],
)
def test_who_may_ask_a_verb(ours, client_ca, names, certificate, may_ask):
    certificates = tls.Certificates(settings(ours, client_ca=client_ca, names=names))
    stream = shake(certificates.stream(), Client(ours, certificate and (ours, certificate)))
    assert (True, may_ask) == (stream.ready, stream.may_ask)


@VERSIONS
def test_x57_a_certificate_of_another_ca_ends_the_handshake(ours, theirs, newest, caplog):
    certificates = tls.Certificates(settings(ours))
    stream, client = certificates.stream(), Client(ours, (theirs, "client"), newest=newest)
    with pytest.raises(tls.StreamError, match="certificate verify failed"):
        shake(stream, client)
    assert not stream.may_ask
    client.take(stream.pending())
    with pytest.raises(ssl.SSLError, match="UNKNOWN_CA"):
        client.tls.read() if newest == ssl.TLSVersion.TLSv1_3 else client.tls.do_handshake()
    certificates._look()
    assert ["TLS handshakes refused"] == [record.message for record in caplog.records]


def test_an_expired_certificate_ends_the_handshake(ours):
    with pytest.raises(tls.StreamError, match="certificate verify failed"):
        shake(tls.Certificates(settings(ours)).stream(), Client(ours, (ours, "expired")))


@pytest.mark.parametrize(
    "words",
    [b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"\x16\x03\x01\x00\x05hello", b"\xff" * 100],
    ids=["plain HTTP", "a hello that is none", "noise"],
)
def test_what_is_no_handshake_ends_the_connection(ours, words):
    stream = tls.Certificates(settings(ours)).stream()
    with pytest.raises(tls.StreamError):
        stream.receive(words)
    assert isinstance(stream.pending() + stream.ended(), bytes)


def test_noise_after_the_handshake_ends_the_connection(ours):
    stream = shake(tls.Certificates(settings(ours)).stream(), Client(ours))
    with pytest.raises(tls.StreamError):
        stream.receive(b"\x17\x03\x03\x00\x20" + b"x" * 32)


def test_an_old_version_is_refused(ours):
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        client = Client(ours, newest=ssl.TLSVersion.TLSv1_1)
    client.tls.context.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.raises((tls.StreamError, ssl.SSLError)):
        shake(tls.Certificates(settings(ours)).stream(), client)


# Rotation: what is on disk, what is served


@pytest.fixture
def disk(ours, tmp_path):
    """A copy whose files may change."""
    shutil.copytree(ours, tmp_path, dirs_exist_ok=True)
    return tmp_path


def serves(certificates, trusted, certificate=None):
    try:
        return shake(certificates.stream(), Client(trusted, certificate)).ready
    except (tls.StreamError, ssl.SSLError):
        return False


def replace(disk, source, *names):
    for name in names:
        shutil.copy(source / name, disk / name)


def errors(caplog):
    return [record.error for record in caplog.records if record.levelno == logging.ERROR]


def test_x57_a_new_pair_serves_the_next_connection_and_the_kept_one_goes_on(disk, ours, theirs):
    certificates, kept = tls.Certificates(settings(disk)), Client(ours)
    stream = shake(certificates.stream(), kept)
    replace(disk, theirs, "server.crt", "server.key")
    certificates.look()
    assert (True, False) == (serves(certificates, theirs), serves(certificates, ours))
    assert b"more" == stream.receive(say(kept, b"more"))


def test_a_half_written_pair_leaves_the_one_before_and_is_said_once(disk, ours, theirs, caplog):
    certificates = tls.Certificates(settings(disk))
    replace(disk, theirs, "server.crt")
    certificates.look()
    certificates.look()
    assert (True, 1) == (serves(certificates, ours), len(errors(caplog)))
    assert "KEY_VALUES_MISMATCH" in errors(caplog)[0]
    replace(disk, theirs, "server.key")
    certificates.look()
    assert (True, 1) == (serves(certificates, theirs), len(errors(caplog)))


@pytest.mark.parametrize("name", ["server.crt", "server.key", "ca.crt"])
@pytest.mark.parametrize(
    "damage", [lambda path: path.unlink(), lambda path: path.write_text("")], ids=["gone", "empty"]
)
def test_a_file_that_is_gone_or_empty_leaves_what_was(disk, ours, name, damage, caplog):
    certificates = tls.Certificates(settings(disk))
    damage(disk / name)
    certificates.look()
    certificates.look()
    assert (True, 1) == (serves(certificates, ours, (ours, "client")), len(errors(caplog)))


def test_x57_a_new_client_ca_is_asked_at_the_next_connection(disk, ours, theirs):
    certificates = tls.Certificates(settings(disk))
    replace(disk, theirs, "ca.crt")
    certificates.look()
    assert (True, False) == (
        serves(certificates, ours, (theirs, "client")),
        serves(certificates, ours, (ours, "client")),
    )


def test_files_that_stay_are_not_loaded_again(disk, caplog):
    caplog.set_level(logging.INFO)
    tls.Certificates(settings(disk)).look()
    assert [] == caplog.records


@cases(
    "spoil, expected",
    ("no certificate", lambda disk: (disk / "server.crt").unlink(), "listen.tls.certificate: "),
    ("no key", lambda disk: (disk / "server.key").write_text("x"), "listen.tls.certificate: "),
    ("another's key", lambda disk: shutil.copy(disk / "client.key", disk / "server.key"), "MISMATCH"),
    ("a passphrase", lambda disk: shutil.copy(disk / "locked.key", disk / "server.key"), "server.key"),
    ("a CA that is none", lambda disk: (disk / "ca.crt").write_text("x"), "listen.tls.clientCA: "),
)
def test_files_that_cannot_be_used_at_the_start_are_one_line(disk, spoil, expected):
    spoil(disk)
    with pytest.raises(tls.CertificateError, match=expected) as caught:
        tls.Certificates(settings(disk))
    assert "\n" not in str(caught.value)
