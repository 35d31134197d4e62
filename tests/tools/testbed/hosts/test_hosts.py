"""A start of the hosts, as far as it can be seen without them."""

import subprocess

import pytest

from tools.testbed.hosts import hosts
from tools.testbed.hosts.hosts import Hosts

READY = "True True True"


@pytest.mark.parametrize(
    "first",
    [
        pytest.param((1, "", "etcdserver: request timed out"), id="the API server gives no answer for a moment"),
        pytest.param((0, "True False ", ""), id="some are not Ready yet"),
        pytest.param((0, "True True ", ""), id="one has not joined yet"),
    ],
)
def test_it_waits_until_all_are_ready(first, tmp_path, monkeypatch):
    answers = [first, (0, READY, ""), (1, "", "no account yet"), (0, READY, ""), (0, "default", "")]
    made = Hosts(folder=tmp_path, progress=lambda _: None)
    monkeypatch.setattr(hosts, "kube_binaries", lambda _: tmp_path)

    def run(argv, **_):
        return subprocess.CompletedProcess(argv, *answers.pop(0))

    monkeypatch.setattr(hosts.subprocess, "run", run)
    made._wait_ready()
    assert [] == answers
