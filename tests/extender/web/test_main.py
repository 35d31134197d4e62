"""Starts of `readygate-status-api` that must fail: one line with cause and remedy, and an exit code."""

import logging
import signal
import socket
import threading

import pytest
import yaml

from extender.web import __main__ as entry


@pytest.fixture(autouse=True)
def restored(monkeypatch):
    """main() sets up logging, signals and priority for a process of its own."""
    monkeypatch.setattr("os.nice", lambda _: 0)
    root, hook = logging.getLogger(), threading.excepthook
    handlers, level = root.handlers[:], root.level
    signals = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    threading.excepthook = hook
    logging.captureWarnings(capture=False)
    for number, handler in signals.items():
        signal.signal(number, handler)


def start(folder, capsys, configuration, *arguments):
    path = folder / "extender.yaml"
    path.write_text(yaml.safe_dump(configuration))
    code = entry.main(["--config", str(path), *arguments])
    written = capsys.readouterr()
    return code, written.out, written.err


FEED = {"feed": {"socket": "/nowhere/feed/socket"}}


@pytest.mark.parametrize(
    ("configuration", "expected"),
    [
        pytest.param({}, "feed.socket: is empty, allowed: the path at which the extender listens", id="no feed"),
        pytest.param(FEED | {"statusApi": {"port": "x"}}, "statusApi.port: is the text", id="a wrong value"),
        pytest.param({"fed": {}}, "fed: unknown key, allowed: listen, kubernetes, gates", id="an unknown key"),
    ],
)
@pytest.mark.parametrize("arguments", [(), ("--check",)], ids=["start", "check"])
def test_a_configuration_that_cannot_be_used(tmp_path, capsys, configuration, expected, arguments):
    code, out, err = start(tmp_path, capsys, configuration, *arguments)
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert err.startswith("readygate-status-api: ")
    assert expected in err


def test_check_reads_the_file_only(tmp_path, capsys):
    assert start(tmp_path, capsys, FEED, "--check") == (0, f"{tmp_path}/extender.yaml: ok\n", "")


def test_a_port_that_is_taken(tmp_path, capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, _, err = start(tmp_path, capsys, FEED | {"statusApi": {"port": port}})
    assert (code, len(err.splitlines())) == (1, 1)
    assert f"cannot listen on 127.0.0.1 port {port}: Address already in use; change statusApi.address" in err


def test_an_address_that_is_in_no_environment(tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("HOST_IP", raising=False)
    code, _, err = start(tmp_path, capsys, FEED | {"statusApi": {"port": 0, "moreAddresses": ["$(HOST_IP)"]}})
    expected = "statusApi.moreAddresses: $(HOST_IP) has no value in the environment; set it, or write an address"
    assert (2, f"readygate-status-api: {expected}\n") == (code, err)
