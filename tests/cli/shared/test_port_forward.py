"""A forwarded port of a pod: bytes arrive unchanged in any framing, and each failure ends the connection."""

import gc
import io
import random
import re
import socket
import struct
import threading
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from cli.shared import port_forward
from cli.shared.port_forward import ForwardError, PortForward, Relay
from kube.auth import Connection, NoToken
from tests.cli.served import serving, status_of
from tests.scripted.tls import make_authority
from tools.fakes import portforward as kubelet
from tools.kit.waiting import wait_until

pytestmark = pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
PATIENT_S = 60.0
PORT = 4711
PORT_TEXT = struct.pack("<H", PORT)
TEXT, BINARY, CONTINUED, PING, PONG = 1, 2, 0, 9, 10


class Renewed:
    """A token that the server knows once it was read again."""

    def __init__(self):
        self.token = "old"

    def headers(self, _monotonic):
        return {"Authorization": f"Bearer {self.token}"}

    def refresh(self):
        self.token = "new"


def forward_to(url, *, context=None, credentials=None):
    there = Connection(url, context, credentials or NoToken())
    return PortForward(there, "ns", "e-1", PORT, host="control-1", user_agent="readygate/test")


@contextmanager
def forwarding(serve):
    """serve: of a handler of http.server, or (status, body)."""
    with serving(lambda *_: serve) as url:
        yield forward_to(url)


def echo(_port):
    """A process in the pod that sends back what it receives."""
    near, far = socket.socketpair()

    def serve():
        with far, suppress(OSError):
            while block := far.recv(2**16):
                far.sendall(block)

    threading.Thread(target=serve, daemon=True).start()
    return near


def received(sock, size=0):
    """So many bytes, or all until the end."""
    sock.settimeout(PATIENT_S)
    found = bytearray()
    while (not size or len(found) < size) and (block := sock.recv(2**16)):
        found += block
    return bytes(found)


def echoed(forward, payload):
    with forward.dial(PATIENT_S) as sock:
        threading.Thread(target=sock.sendall, args=(payload,), daemon=True).start()
        return received(sock, len(payload))


def test_bytes_arrive_unchanged_both_ways_over_tls(tmp_path):
    """TLS: a record may hold the end of a message, and what the library has not read makes no socket readable."""
    payload, authority = random.randbytes(700_000), make_authority(tmp_path)
    with serving(lambda *_: lambda handler: kubelet.forward(handler, echo), tls=authority.server_context()) as url:
        forward = forward_to(url, context=authority.client_context())
        assert payload == echoed(forward, payload)


def test_bytes_in_the_tls_record_of_the_upgrade_are_delivered_at_once(tmp_path):
    authority, over = make_authority(tmp_path), threading.Event()

    def serve(handler):
        wire, handler.wfile = handler.wfile, io.BytesIO()
        kubelet.Channels(handler).begin().send(kubelet.DATA, b"hello")
        wire.write(handler.wfile.getvalue())
        over.wait(PATIENT_S)

    with serving(lambda *_: serve, tls=authority.server_context()) as url:
        with forward_to(url, context=authority.client_context()).dial(PATIENT_S) as sock:
            sock.settimeout(PATIENT_S / 6)
            found = sock.recv(5)
        over.set()
    assert found == b"hello"


def test_many_connections_at_once_do_not_mix():
    payloads = [random.randbytes(50_000) for _ in range(30)]
    found = {}
    with forwarding(lambda handler: kubelet.forward(handler, echo)) as forward:
        threads = [
            threading.Thread(target=lambda number=number: found.update({number: echoed(forward, payloads[number])}))
            for number in range(len(payloads))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert dict(enumerate(payloads)) == found


def test_bytes_are_the_same_however_the_kubelet_splits_its_messages():
    """Drawn: the port in one message or two, data of 0 to 70,000 bytes, in parts, pings and other channels between."""
    payload, complaint = random.randbytes(300_000), b"lost connection to pod"

    def serve(handler):
        channels = kubelet.Channels(handler)
        streams = {kubelet.DATA: PORT_TEXT + payload, kubelet.ERROR: PORT_TEXT + complaint}
        while any(streams.values()):
            channel = random.choice([channel for channel, left in streams.items() if left])
            size = random.choice([0, 1, 2, 3, 125, 126, 5000, 70_000])
            message, streams[channel] = streams[channel][:size], streams[channel][size:]
            whole = bytes([channel]) + message
            cut = random.randrange(len(whole) + 1) if random.random() < 0.3 else len(whole)
            channels.frame(BINARY, whole[:cut], last=cut == len(whole))
            if cut < len(whole):
                channels.frame(CONTINUED, whole[cut:])
            odd = [(PING, b"are you there"), (PONG, b""), (TEXT, b"words"), (BINARY, b""), (BINARY, b"\x07other")]
            if random.random() < 0.3:
                channels.frame(*random.choice(odd))
        channels.end()

    with forwarding(serve) as forward, forward.dial(PATIENT_S) as sock:
        assert payload == received(sock)
        assert complaint.decode() == forward.complaint


@pytest.mark.parametrize(
    "frames",
    [
        pytest.param(b"\x82\x7f" + struct.pack(">Q", 10_000), id="half a message"),
        pytest.param(b"", id="nothing"),
    ],
)
def test_a_side_that_closes_ends_the_connection_while_the_other_is_silent(monkeypatch, frames):
    """Half a message is waited for, though not for ever."""
    monkeypatch.setattr(port_forward, "STALLED_S", 0.2)

    def serve(handler):
        channels = kubelet.Channels(handler)
        with suppress(EOFError, OSError):  # the other side may have closed already
            channels.begin()
            handler.wfile.write(frames)
            channels.receive()
        ended.set()

    ended = threading.Event()
    with forwarding(serve) as forward:
        forward.dial(PATIENT_S).close()
        assert ended.wait(PATIENT_S)


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param(b"\xf2\x03\x00" + PORT_TEXT, id="reserved bits"),
        pytest.param(b"\x80\x01\x00", id="a part of no message"),
        pytest.param(b"\x87\x01\x00", id="an unknown opcode"),
        pytest.param(b"\x88\x01\x00", id="half a close"),
        pytest.param(b"\x81\x02\xff\xff", id="text that is no UTF-8"),
        pytest.param(b"HTTP/1.1 500 Internal Server Error\r\n\r\n", id="another protocol"),
    ],
)
def test_an_invalid_message_ends_the_connection(monkeypatch, frame):
    monkeypatch.setattr(port_forward, "STALLED_S", 0.2)  # what begins as the head of a longer message is waited for

    def serve(handler):
        channels = kubelet.Channels(handler).begin()
        handler.wfile.write(frame)
        with suppress(EOFError, OSError, IndexError):
            channels.receive()

    with forwarding(serve) as forward, forward.dial(PATIENT_S) as sock:
        assert received(sock) == b""


def test_a_connection_ends_if_the_client_reads_nothing(monkeypatch):
    monkeypatch.setattr(port_forward, "STALLED_S", 0.2)
    ended = threading.Event()

    def serve(handler):
        channels = kubelet.Channels(handler).begin()
        with suppress(OSError):
            while True:
                channels.send(kubelet.DATA, b"x" * 30_000)
        ended.set()

    with forwarding(serve) as forward, forward.dial(PATIENT_S):
        assert ended.wait(PATIENT_S)


def test_closed_connections_leave_no_thread_and_no_descriptor():
    """Without the garbage collector, which would close in the end what nothing refers to."""

    def left():
        return len(list(Path("/proc/self/fd").iterdir())), threading.active_count()

    with forwarding(lambda handler: kubelet.forward(handler, echo)) as forward:
        before = left()
        gc.disable()
        try:
            for _ in range(20):
                assert echoed(forward, b"hello") == b"hello"
            wait_until(
                lambda: all(now <= then for now, then in zip(left(), before, strict=True)),
                lambda: f"{left()} are {before}",
                timeout_s=PATIENT_S,
            )
        finally:
            gc.enable()


def upgrade(handler, **wrong):
    """An answer to the upgrade that is as it should be but for what is named."""
    handler.close_connection = True
    lines = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Protocol": kubelet.PROTOCOL}
    lines |= {"Sec-WebSocket-Accept": kubelet.accepted(handler.headers["Sec-WebSocket-Key"])} | {
        name.replace("_", "-"): value for name, value in wrong.items()
    }
    handler.send_response_only(101)
    for name, value in lines.items():
        handler.send_header(name, value)
    handler.end_headers()


@pytest.mark.parametrize(
    "wrong",
    [{"Sec_WebSocket_Accept": "x"}, {"Sec_WebSocket_Protocol": "other"}, {"Upgrade": "h2c"}, {"Connection": "close"}],
    ids=str,
)
def test_an_upgrade_to_something_else_is_refused(wrong):
    with (
        forwarding(lambda handler: upgrade(handler, **wrong)) as forward,
        pytest.raises(ForwardError, match="cannot forward port 4711 of e-1"),
    ):
        forward.dial(PATIENT_S)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"\r\n",
        b"x\r\n\r\n",
        b"HTTP/1.1\r\n\r\n",
        b"HTTP/1.1 1 \xff\r\n\r\n",
        b"HTTP/1.1 x y\r\n\r\n",
        b"\x16\x03\x01",
    ]
    + [b"HTTP/1.1 101 z\r\n" + line + b"\r\n\r\n" for line in (b":", b"no header", b"Upgrade:", b"\xff: \xff")]
    + [b"HTTP/1.1 500 z\r\nContent-Length: " + size + b"\r\n\r\n{}" for size in (b"-1", b"x", b"99", b"9" * 5000)],
    ids=repr,
)
def test_an_answer_without_upgrade_is_an_error_of_one_line(answer):
    def serve(handler):
        handler.close_connection = True
        handler.wfile.write(answer)

    with forwarding(serve) as forward, pytest.raises(ForwardError, match="port 4711 of e-1: ") as said:
        forward.dial(PATIENT_S)
    assert (True, True) == (len(str(said.value)) < 1000, str(said.value).isprintable())


def test_random_bytes_of_a_kubelet_end_the_connection_without_an_error_in_a_thread(monkeypatch):
    """Drawn: bytes by chance, after the heads of frames."""
    monkeypatch.setattr(port_forward, "STALLED_S", 0.05)

    def serve(handler):
        kubelet.Channels(handler).begin()
        with suppress(OSError):
            for _ in range(random.randrange(5)):
                head = bytes([random.randrange(256), random.choice([0, 1, 2, 5, 125, 126, 127, 130])])
                handler.wfile.write(head + random.randbytes(random.randrange(12)))

    with forwarding(serve) as forward:
        for _ in range(200):
            with forward.dial(PATIENT_S) as sock:
                received(sock)


def test_an_upgrade_that_comes_byte_by_byte_ends_at_the_deadline():
    def serve(handler):
        handler.close_connection = True
        with suppress(OSError):
            handler.wfile.write(b"HTTP/1.1 101 Switching Protocols\r\n")
            while not over.wait(0.01):
                handler.wfile.write(b"x")

    over = threading.Event()
    with forwarding(serve) as forward:
        with pytest.raises(ForwardError, match="the kubelet of control-1 does not answer the API server"):
            forward.dial(0.3)
        over.set()


def test_a_renewed_token_is_read_again_and_tried_once():
    asked = []

    def answer(_target, headers):
        asked.append(headers["Authorization"])
        refused = status_of(401, "Unauthorized", "Unauthorized")
        return refused if asked[-1] == "Bearer old" else lambda handler: kubelet.forward(handler, echo)

    with serving(answer) as url:
        assert echoed(forward_to(url, credentials=Renewed()), b"hello") == b"hello"
    assert ["Bearer old", "Bearer new"] == asked


def test_a_redirect_takes_no_credentials_elsewhere():
    elsewhere = []

    def lead(handler):
        handler.close_connection = True
        handler.send_response(302)
        handler.send_header("Location", other)
        handler.end_headers()

    with (
        serving(lambda target, _: elsewhere.append(target) or (200, b"")) as other,
        serving(lambda *_: lead) as url,
        pytest.raises(ForwardError, match="cannot forward port 4711 of e-1"),
    ):
        forward_to(url, credentials=Renewed()).dial(PATIENT_S)
    assert elsewhere == []


def test_no_proxy_of_the_environment_is_used(monkeypatch):
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    with forwarding(lambda handler: kubelet.forward(handler, echo)) as forward:
        assert echoed(forward, b"hello") == b"hello"


def test_the_error_names_an_unreachable_api_server_and_the_cause():
    with pytest.raises(
        ForwardError, match=re.escape("e-1: http://127.0.0.1:1: Connection refused; check --kubeconfig")
    ):
        forward_to("http://127.0.0.1:1").dial(PATIENT_S)


def test_the_request_has_the_path_and_port_of_the_api():
    asked = []

    def answer(target, _headers):
        asked.append(target)
        return 404, b""

    with serving(answer) as url, pytest.raises(ForwardError, match="e-1 was just deleted"):
        forward_to(f"{url}/k8s/clusters/c-1/").dial(PATIENT_S)
    assert asked == ["/k8s/clusters/c-1/api/v1/namespaces/ns/pods/e-1/portforward?ports=4711"]


def test_relay_reports_whether_the_pod_has_sent_anything():
    with forwarding(lambda handler: kubelet.forward(handler, echo)) as forward:
        near, far = socket.socketpair()
        relay = Relay(forward.open(PATIENT_S))
        carrying = threading.Thread(target=relay.run, args=(far,))
        carrying.start()
        with far, near:
            assert not relay.received
            near.sendall(b"hello")
            assert received(near, 5) == b"hello"
            near.close()
            carrying.join()
    assert (relay.received, relay.complaint) == (True, "")
