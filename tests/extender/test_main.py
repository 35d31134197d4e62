"""Starts that must fail: one line with cause and remedy and an exit code. The same code as the real process runs."""

import logging
import runpy
import signal
import threading

import pytest
import yaml

from extender import __main__ as entry
from extender.process.server import CONF
from extender.process.worker import Worker
from tools.kit import kubeconfig


@pytest.fixture(autouse=True)
def restored():
    """main() sets up logging and signals for a process of its own."""
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


def start(folder, capsys, text, *arguments):
    path = folder / "extender.yaml"
    path.write_text(text)
    code = entry.main(["--config", str(path), *arguments])
    written = capsys.readouterr()
    return code, written.out, written.err


BAD_KUBECONFIG = "kubernetes: {kubeconfig: %s}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("gate: {}", "gate: unknown key, allowed: listen, kubernetes, gates", id="unknown key"),
        pytest.param("listen: {port: '80'}", 'listen.port: is the text "80", allowed: a port', id="wrong type"),
        pytest.param("listen: [", "line 1, column 10: expected", id="no YAML"),
        pytest.param(BAD_KUBECONFIG % "/nowhere/kubeconfig", "/nowhere/kubeconfig", id="no kubeconfig file"),
        pytest.param(BAD_KUBECONFIG % "/etc/hostname", "/etc/hostname", id="a kubeconfig that is none"),
        pytest.param("{}", "KUBERNETES_SERVICE_HOST", id="neither in a pod nor a kubeconfig"),
    ],
)
def test_a_bad_configuration(tmp_path, capsys, monkeypatch, text, expected):
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    code, out, err = start(tmp_path, capsys, text)
    assert (code, out) == (2, "")
    assert expected in err
    assert err.startswith("readygate-extender: ")
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    "address",
    ["192.0.2.1", "300.1.1.1", "127..0.1", "a" * 64],
    ids=["of another host", "of no host", "with an empty label", "with a label that is too long"],
)
def test_an_address_that_cannot_be_taken(tmp_path, capsys, address):
    file = kubeconfig.write(tmp_path / "kubeconfig", server="http://127.0.0.1:1")
    config = {"listen": {"address": address, "port": 1}, "kubernetes": {"kubeconfig": str(file)}}
    code, _, err = start(tmp_path, capsys, yaml.safe_dump(config))
    assert code == 1
    assert f"cannot listen on {address} port 1: " in err
    assert len(err.splitlines()) == 1


def test_check_reads_the_file_only(tmp_path, capsys):
    assert start(tmp_path, capsys, "kubernetes: {kubeconfig: /nowhere}", "--check") == (
        0,
        f"{tmp_path}/extender.yaml: ok\n",
        "",
    )
    assert start(tmp_path, capsys, "x: 1", "--check")[0] == 2


def test_without_a_file(capsys):
    with pytest.raises(SystemExit) as caught:
        entry.main([])
    assert (caught.value.code, "--config" in capsys.readouterr().err) == (2, True)


def test_the_servers_fixed_settings():
    conf = runpy.run_path(str(CONF))
    assert (Worker, 1) == (conf["worker_class"], conf["workers"])
    assert (conf["control_socket_disable"], conf["graceful_timeout"], conf["max_requests"]) == (True, 3, 0)
