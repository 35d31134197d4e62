"""Bytes that are no text, brackets without end, values of another kind, where the agent decodes: one line at most."""

import json
import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.checks.builtin.kernel_log import _kept
from agent.identity.token import BoundToken
from agent.kubelet.node.lease import LeaseKeeper
from agent.kubelet.runtime.process import ProcessRuntime
from agent.opinion.kubelet import KubeletWatch, PortAnswer
from agent.report.condition import ConditionPublisher
from agent.store.granted_resources import GrantedResources
from agent.wire.containers import RuntimePod
from kube.client import Dated
from kube.errors import CredentialsInvalid, MalformedReply
from kube.listing import ListerWatcher
from kube.objects import UNREADABLE
from tests.agent.kubelet.runtime.test_process import CIDR
from tests.agent.opinion.test_pods import PodObject
from tests.agent.report.test_condition import TRUE
from tools.kit.clock import Clock

DEEP = b"[" * 100_000
KINDS = pytest.mark.parametrize("deep", [pytest.param(False, id="no text"), pytest.param(True, id="without end")])
NO_TEXT = {
    "token": b'{"status": {"token": "\xff"}}',
    "pod": b'{"metadata": {"uid": "\xff"}}',
    "lease": b'{"spec": {"renewTime": "\xff"}}',
    "sandbox": b'{"ip": "\xff", "host_network": false}',
    "position": b'{"boot_id": "\xff"}',
    "granted": b'{"version": 1, "checksum": 0, "data": "\xff"}',
    "list": b'{"kind": "PodList", "metadata": {"resourceVersion": "\xff"}}',
}


class Server:
    """An API server that answers each call with these bytes."""

    def __init__(self, answer: bytes) -> None:
        self.answer = answer

    def create(self, _path: str, _body: bytes, **_more: object) -> bytes:
        return self.answer

    def patch(self, _path: str, _body: bytes, **_more: object) -> bytes:
        return self.answer

    def get(self, _path: str, **_more: object) -> bytes:
        return self.answer

    def get_dated(self, _path: str, **_more: object) -> Dated:
        return Dated(self.answer, None)

    def branch(self) -> "Server":
        return self

    def close(self) -> None: ...


def bad(name: str, *, deep: bool) -> bytes:
    return b'{"x": ' + DEEP if deep else NO_TEXT[name]


def silent(caplog: pytest.LogCaptureFixture) -> bool:
    return [] == [record.message for record in caplog.records if record.exc_info]


@KINDS
def test_a_token(deep: bool) -> None:
    token = BoundToken(Server(bad("token", deep=deep)), namespace="n", account="a", pod_name="p", pod_uid="u")
    with pytest.raises(CredentialsInvalid, match="no token for the health pod n/p"):
        token.headers(0.0)


@KINDS
def test_a_pod_that_was_written(deep: bool, caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock(1000.0)
    publisher = ConditionPublisher(
        Server(bad("pod", deep=deep)), namespace="n", pod_name="p", pod_uid="u", monotonic=clock, random=lambda: 0.5
    )
    publisher.publish(TRUE)
    for _ in range(5):
        clock.time += publisher.turn()
    assert (True, ["condition patch failed, will retry"]) == (publisher.errors > 1, [r.message for r in caplog.records])


@KINDS
def test_a_lease(deep: bool) -> None:
    clock = Clock(1000.0)
    watch = KubeletWatch(
        Server(bad("lease", deep=deep)),
        "n",
        health_url=None,
        lease_limit_s=24.0,
        on_change=lambda: None,
        ask=lambda _: PortAnswer(True, ""),
        monotonic=clock,
    )
    for _ in range(3):
        clock.time += watch.turn()


@pytest.mark.parametrize("answer", [b'{"metadata": "m", "spec": {}}', b'{"metadata": [1]}', b'{"spec": 1.5}', b"[]"])
def test_a_lease_of_another_shape(answer: bytes, caplog: pytest.LogCaptureFixture) -> None:
    lease = LeaseKeeper(Server(answer), "n", duration_s=40, monotonic=Clock(1000.0))
    assert 0 < lease.turn()
    assert ["node lease not renewed"] == [record.message for record in caplog.records]


@pytest.mark.parametrize("seconds", ["1" + "0" * 400, "1.5", "null", '"3600"'])
def test_a_token_that_holds_for_ever(seconds: str) -> None:
    answer = f'{{"status": {{"token": "t"}}, "spec": {{"expirationSeconds": {seconds}}}}}'.encode()
    with pytest.raises(CredentialsInvalid, match="no token for the health pod n/p"):
        BoundToken(Server(answer), namespace="n", account="a", pod_name="p", pod_uid="u").headers(0.0)


@KINDS
def test_a_list(deep: bool) -> None:
    lister = ListerWatcher(Server(bad("list", deep=deep)), "/api/v1/pods", PodObject)
    with pytest.raises(MalformedReply):
        lister.page(limit=None)
    with pytest.raises(UNREADABLE):
        lister.decode_event(b'{"object": {"metadata": {}, "spec": ' + (DEEP if deep else b'{"nodeName": "\xff"}}}'))


@KINDS
def test_what_a_pod_was(deep: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = tmp_path / "pods" / "u"
    folder.mkdir(parents=True)
    (folder / "pod.json").write_bytes(bad("sandbox", deep=deep))
    runtime = ProcessRuntime(tmp_path, CIDR, on_event=lambda _event: None)
    runtime.start()
    runtime.stop()
    assert ([RuntimePod("u")], ["state file not usable"]) == ([runtime.pod("u")], [r.message for r in caplog.records])


@pytest.mark.parametrize(
    "bits",
    [{"created_at": 1.7e300}, {"started_at": -1.7e19}, {"finished_at": 1e20}, {"exit_code": 2**31}, {"attempt": -1}],
)
def test_an_instance_that_cannot_be_told_of_is_passed_over(
    bits: dict[str, float], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its times have to become dates, its numbers those of the API."""
    folder = tmp_path / "pods" / "uid-1" / "c"
    folder.mkdir(parents=True)
    (folder.parent / "pod.json").write_text(json.dumps({"ip": "127.20.1.5", "host_network": False}))
    known = {"id": "process://1", "name": "c", "attempt": 0, "created_at": 1.7e9, "exit_code": 0}
    (folder / "0.json").write_text(json.dumps({**known, "attempt": 1}))
    (folder / "1.json").write_text(json.dumps({**known, **bits}))
    runtime = ProcessRuntime(tmp_path, CIDR, on_event=lambda _event: None)
    runtime.start()
    found = runtime.pod("uid-1").containers
    runtime.stop()
    assert ([1], ["state file not usable"]) == ([c.restart_count for c in found], [r.message for r in caplog.records])


@KINDS
@pytest.mark.parametrize(
    ("name", "read", "expected"),
    [
        pytest.param("granted", lambda path: GrantedResources(path).of("u"), None, id="what pods were granted"),
        pytest.param(
            "position", lambda path: _kept(str(path), "b").sequence, -1, id="how far the kernel's log was read"
        ),
    ],
)
def test_a_file_of_ours(
    deep: bool,
    name: str,
    read: Callable[[Path], object],
    expected: object,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    (tmp_path / "file").write_bytes(bad(name, deep=deep))
    with caplog.at_level(logging.INFO):
        assert expected == read(tmp_path / "file")
    assert (True, True) == (silent(caplog), len(caplog.records) <= 1)


def test_these_would_be_right_otherwise() -> None:
    assert [dict] * len(NO_TEXT) == [type(json.loads(one.replace(b"\xff", b"x"))) for one in NO_TEXT.values()]
