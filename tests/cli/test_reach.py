"""How extenders are found and asked, and what is said when they are not."""

import argparse
import sys
import time
from urllib.parse import parse_qs

import pytest

from cli import reach
from cli.__main__ import main
from extender.web.schema import NO_BROWSER_HEADER
from tests.cli.served import NAMESPACE, Extender, serving, status_of
from tests.scripted.tls import make_authority
from tools.fakes import portforward
from tools.kit import kubeconfig

NODES = {"nodes": []}
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"


def status(capsys, *arguments):
    code = main(["status", *arguments])
    written = capsys.readouterr()
    return code, written.out, written.err


def test_every_replica_is_asked_by_one_port_forward_and_says_no_browser_asks(capsys, cluster):
    cluster.extenders = [Extender("e-1", nodes=NODES), Extender("e-2", nodes=NODES)]
    assert status(capsys)[0] == 0
    seen = [(path, headers[NO_BROWSER_HEADER]) for one in cluster.extenders for path, headers in one.requests]
    assert [("nodes", "readygate"), ("gates", "readygate")] * 2 == seen
    assert ["Bearer secret"] * 2 == [headers["Authorization"] for one in cluster.extenders for headers in one.forwards]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param(
            (404, b'{"Error":"Not Found"}'),
            "e-1 has no /api/v1/nodes: is it of another release, or is this kube-scheduler's port?",
            id="another release",
        ),
        pytest.param((200, b"<html>"), "e-1 gives no report; is it an extender of this release?", id="another server"),
        pytest.param((200, b'{"nodes": 1}'), "e-1 gives no report", id="another shape"),
        pytest.param((200, b"{}"), "e-1 gives no report", id="an empty object"),
        pytest.param((200, b'{"notAnswering":"\xff","nodes":[]}'), "e-1 gives no report", id="no UTF-8"),
        pytest.param((200, b'{"nodes":' + b"[" * 100_000), "e-1 gives no report", id="deep"),
        pytest.param((302, b""), "e-1", id="a redirect is not followed"),
        pytest.param((421, b'{"Error":"Misdirected Request"}'), "e-1", id="a name that it does not go by"),
    ],
)
def test_a_replica_that_does_not_answer_is_one_line_with_a_remedy(capsys, cluster, answer, expected):
    cluster.extenders = [Extender("e-1", nodes=answer)]
    code, out, err = status(capsys)
    assert (3, "", True, 1) == (code, out, expected in err, len(err.splitlines())), err


@pytest.mark.parametrize(
    ("forward", "expected"),
    [
        pytest.param(
            status_of(403, "Forbidden", 'pods "e-1" is forbidden: User "ana" cannot get resource "pods/portforward"'),
            'you may not forward port 9377 of e-1: pods "e-1" is forbidden: User "ana" cannot get resource '
            '"pods/portforward"; it takes get and, from Kubernetes 1.35 on, create on pods/portforward',
            id="no right to get",
        ),
        pytest.param(
            status_of(403, "Forbidden", 'pods "e-1" is forbidden: '),
            'you may not forward port 9377 of e-1: pods "e-1" is forbidden; it takes get and, from Kubernetes 1.35 on, '
            "create on pods/portforward",
            id="no right to create, of which a real API server gives no reason",
        ),
        pytest.param(
            status_of(401, "Unauthorized", "Unauthorized"), "renew the credentials of the kubeconfig", id="unknown"
        ),
        pytest.param(status_of(404, "NotFound", 'pods "e-1" not found'), "e-1 has just gone; try again", id="gone"),
        pytest.param(
            status_of(500, "InternalError", "error dialing backend: dial tcp 10.0.0.1:10250: connect: refused"),
            "the kubelet of control-1 does not answer the API server, so e-1 cannot be reached: error dialing backend: "
            "dial tcp 10.0.0.1:10250: connect: refused; look at that kubelet, and whether the API server may connect "
            "to it (port 10250)",
            id="no kubelet",
        ),
        pytest.param(
            status_of(500, "InternalError", "etcdserver: request timed out"),
            "cannot forward port 9377 of e-1: the API server fails or is busy: InternalError: etcdserver: request "
            "timed out; try again in a while",
            id="the API server fails",
        ),
        pytest.param(
            status_of(400, "BadRequest", "pod e-1 does not have a host assigned"),
            "the API server answers BadRequest: pod e-1 does not have a host assigned",
            id="not on a node",
        ),
        pytest.param((502, b"<html>\x1b[31m" + b"x" * 9000), "cannot forward port 9377 of e-1", id="a proxy's page"),
        pytest.param((302, b""), "cannot forward port 9377 of e-1", id="a redirect takes no credentials elsewhere"),
        pytest.param((200, b"{}"), "cannot forward port 9377 of e-1", id="no upgrade"),
        pytest.param(
            portforward.complaining(portforward.REFUSED),
            "nothing listens at port 9377 of e-1: is it starting, or failing? Look at its log",
            id="no process at the port",
        ),
        pytest.param(
            portforward.complaining("error forwarding port 9377 to pod e-1: \x1b[31msandbox is gone\n" + "x" * 10**6),
            "the kubelet of control-1 does not reach port 9377 of e-1: error forwarding port 9377 to pod e-1: ",
            id="an error of the container runtime",
        ),
        pytest.param(portforward.cut, "the connection to e-1 broke: ", id="cut"),
    ],
)
def test_a_port_that_cannot_be_forwarded_is_one_line_with_a_remedy(capsys, cluster, forward, expected):
    cluster.extenders = [Extender("e-1", nodes=NODES), Extender("e-2", nodes=NODES)]
    cluster.extenders[0].forward = forward
    code, out, err = status(capsys)
    assert (0, "", True) == (code, err, "1 of 2 extenders answer" in out), out
    cluster.extenders.pop()
    code, out, err = status(capsys)
    assert (3, "", True, 1) == (code, out, expected in err, len(err.splitlines())), err
    assert ("\x1b" not in err, len(err) < 1000) == (True, True), err


@pytest.mark.parametrize("accepts", [False, True], ids=["before the upgrade", "after the upgrade"])
def test_a_stalled_kubelet_costs_the_deadline_and_hides_no_other_replica(capsys, cluster, monkeypatch, accepts):
    monkeypatch.setattr(reach, "DEADLINE_S", 0.3)
    cluster.extenders = [Extender(f"e-{number}", nodes=NODES) for number in range(4)]
    stalled = portforward.Stalled(accepts=accepts)
    for slow in cluster.extenders[:3]:
        slow.forward = stalled
    code, out, _ = status(capsys)
    stalled.release()
    expected = "! e-{} gives no answer within" if accepts else "! the kubelet of control-1 does not answer"
    assert (0, [True] * 3) == (code, [expected.format(number) in out for number in range(3)]), out


def test_one_that_does_not_answer_does_not_hide_the_others(capsys, cluster):
    cluster.extenders = [Extender("e-1", nodes=(200, b"<html>")), Extender("e-2", nodes=NODES)]
    code, out, _ = status(capsys)
    assert (0, True) == (code, "! e-1 gives no report; is it an extender of this release?\n" in out)


def test_a_slow_replica_costs_its_deadline_once(capsys, cluster, monkeypatch):
    monkeypatch.setattr(reach, "DEADLINE_S", 0.3)
    cluster.extenders = [Extender(f"e-{number}", nodes=NODES) for number in range(4)]
    for slow in cluster.extenders[:3]:
        slow.delay_s = 1.5
    began = time.monotonic()
    code, out, _ = status(capsys)
    assert (0, 3) == (code, out.count(" gives no answer within 0.3 s; is it or its host overloaded?")), out
    assert time.monotonic() - began < 3


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param(
            status_of(403, "Forbidden", 'pods is forbidden: User "ana" cannot list resource "pods" in API group ""'),
            f"you may not list pods of namespace {NAMESPACE} with the label app.kubernetes.io/name=readygate-extender: "
            'pods is forbidden: User "ana" cannot list resource "pods" in API group ""; ask for that right, or another '
            "--context",
            id="no right to list pods",
        ),
        pytest.param(
            status_of(401, "Unauthorized", "Unauthorized"), "renew the credentials of the kubeconfig", id="unknown"
        ),
        pytest.param((200, b"hello"), "is the kubeconfig's server one?", id="no API server"),
        pytest.param(
            status_of(500, "InternalError", "etcdserver: request timed out"),
            "the API server fails or is busy: InternalError: etcdserver: request timed out; try again in a while",
            id="the API server fails",
        ),
        pytest.param(
            status_of(429, "TooManyRequests", "too many requests"), "fails or is busy: TooManyRequests", id="it is busy"
        ),
        pytest.param((200, b'{"items":[]}'), "is readygate deployed in this cluster, or elsewhere", id="no extender"),
    ],
)
def test_an_api_server_that_does_not_tell_where_they_are(capsys, cluster, answer, expected):
    cluster.objects[PODS] = answer
    code, out, err = status(capsys)
    assert (3, "", True, 1) == (code, out, expected in err, len(err.splitlines())), err


def test_there_is_no_kubeconfig(capsys):
    expected = (
        "readygate status: there is no kubeconfig: name one with --kubeconfig or KUBECONFIG, or an extender with "
        "--server (http://127.0.0.1:9377 on one of its hosts)\n"
    )
    assert (3, "", expected) == status(capsys)


@pytest.mark.parametrize(
    "command", [["why", "pod", "a/b", "--server", "http://127.0.0.1:1"], ["hold", "--node", "n"]], ids=" ".join
)
def test_no_extender_is_asked_for_what_only_the_api_server_knows(capsys, command):
    code = main(command)
    expected = "there is no kubeconfig: name one with --kubeconfig or KUBECONFIG\n"
    assert (3, f"readygate {command[0]}: {expected}") == (code, capsys.readouterr().err)


@pytest.mark.usefixtures("cluster")
def test_a_kubeconfig_in_the_image_which_has_no_package_for_it(monkeypatch, capsys):
    monkeypatch.delitem(sys.modules, "kube.kubeconfig", raising=False)
    monkeypatch.delattr("kube.kubeconfig", raising=False)
    monkeypatch.setitem(sys.modules, "kubernetes.client", None)
    code, out, err = status(capsys, "--kubeconfig", "/etc/some.conf")
    assert (3, "", True, 1) == (code, out, "pip install 'readygate[kubeconfig]'" in err, len(err.splitlines()))
    assert ("", "default") == reach.context(argparse.Namespace(kubeconfig="/etc/some.conf", context=None))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param(("--kubeconfig", "/nowhere"), "kubeconfig /nowhere: no such file", id="no such file"),
        pytest.param(("--context", "other"), "other", id="no such context"),
    ],
)
@pytest.mark.usefixtures("cluster")
def test_a_kubeconfig_that_cannot_be_used(capsys, arguments, expected):
    code, out, err = status(capsys, *arguments)
    assert (3, "", True, 1) == (code, out, expected in err, len(err.splitlines()))


def test_an_api_server_that_does_not_listen(capsys, tmp_path):
    file = kubeconfig.write(tmp_path / "k", server="http://127.0.0.1:1", user=kubeconfig.token_user("secret"))
    code, _, err = status(capsys, "--kubeconfig", str(file))
    assert (3, True) == (code, "the API server does not answer: cannot list pods" in err), err


def test_an_api_server_whose_certificate_is_not_known(capsys, tmp_path):
    with serving(lambda *_: (200, b"{}"), tls=make_authority(tmp_path).server_context()) as url:
        file = kubeconfig.write(tmp_path / "k", server=url, user=kubeconfig.token_user("secret"))
        code, _, err = status(capsys, "--kubeconfig", str(file))
    assert (3, True, 1) == (code, "TLS with" in err, len(err.splitlines())), err


@pytest.mark.parametrize(
    "command", [("status",), ("why", "pod", "a/b"), ("hold", "--gate", "g", "--node", "n")], ids=lambda words: words[0]
)
def test_an_exec_plugin_is_run_once_for_a_command(capsys, cluster, tmp_path, command):
    """It may ask a person for the code of a device."""
    plugin = tmp_path / "plugin"
    credential = '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "t"}}'
    plugin.write_text(f"#!/bin/sh\necho run >> {tmp_path}/runs\necho '{credential}'\n")
    plugin.chmod(0o755)
    user = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": str(plugin)}}
    file = kubeconfig.write(tmp_path / "k", server=cluster.url, user=user)
    cluster.extenders = [Extender("e-1", nodes=NODES, gates={"gates": [{"gate": "g"}]})]
    cluster.objects["/api/v1/namespaces/a/pods/b"] = {"metadata": {"name": "b"}, "spec": {"nodeName": "n"}}
    main([*command, "--kubeconfig", str(file)])
    assert "run\n" == (tmp_path / "runs").read_text(), capsys.readouterr()


@pytest.mark.parametrize("command", ["doctor", "sweep"])
@pytest.mark.usefixtures("capsys")
def test_nodes_are_listed_in_pages_that_a_slow_line_carries_in_time(cluster, command):
    """A Node has 25 KB where its kubelet tells of fifty images: a hundred are 4 s at 5 Mbit/s."""
    cluster.any_selector = True
    cluster.objects["/api/v1/nodes"] = {"items": []}
    main([command])
    limits = [
        int(found["limit"][0])
        for query in cluster.queries
        if "labelSelector" not in (found := parse_qs(query)) and "limit" in found
    ]
    assert limits == [100]


# By URL


@pytest.mark.parametrize(
    ("url", "code", "expected"),
    [
        pytest.param(
            "http://127.0.0.1:1", 3, "nothing answers at http://127.0.0.1:1: is readygate-status-api", id="nobody"
        ),
        pytest.param("127.0.0.1:9377", 2, "is no URL", id="no scheme"),
        pytest.param("http://", 2, "is no URL", id="no host"),
        pytest.param("http://127.0.0.1:x", 2, "is no URL", id="no port"),
        pytest.param("http://[::1", 2, "http://[::1 is no URL", id="half an address of IPv6"),
        pytest.param("http://::1:9377", 2, "an IPv6 address in brackets", id="an address of IPv6 without brackets"),
        pytest.param(
            "http://[::1]:1", 3, "nothing answers at http://[::1]:1: is readygate-status-api", id="nobody, by IPv6"
        ),
    ],
)
def test_an_address_that_does_not_answer(capsys, url, code, expected):
    found, out, err = status(capsys, "--server", url)
    assert (code, "", True, 1) == (found, out, expected in err, len(err.splitlines())), err


def test_several_urls_are_asked_and_none_through_the_kubeconfig(capsys, cluster):
    extenders = [Extender("a", nodes=NODES), Extender("b", nodes=NODES)]
    with (
        serving(lambda path, headers: extenders[0].get(path.removeprefix("/api/v1/").partition("?")[0], headers)) as a,
        serving(lambda path, headers: extenders[1].get(path.removeprefix("/api/v1/").partition("?")[0], headers)) as b,
    ):
        code, out, _ = status(capsys, "--server", a, "--server", b)
    assert (0, True, []) == (code, "2 of 2 extenders agree" in out, cluster.extenders)


def test_in_the_extenders_own_pod_what_serves_people_there_is_asked(monkeypatch, tmp_path):
    (tmp_path / "token").write_text("t")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")
    monkeypatch.setattr(reach, "SERVICE_ACCOUNT_ROOT", tmp_path)
    arguments = argparse.Namespace(server=[], kubeconfig=None, context=None, readygate_namespace=NAMESPACE)
    with serving(lambda *_: (200, b"{}")) as url:
        monkeypatch.setattr(reach, "STATUS_API_PORT", int(url.rpartition(":")[2]))
        assert isinstance(reach.extenders(arguments), reach.Servers)
