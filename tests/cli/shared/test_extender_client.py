"""Extenders are found and queried, and each failure is one line with a remedy."""

import argparse
import sys
import time
from urllib.parse import parse_qs

import pytest

from cli.__main__ import main
from cli.shared import extender_client
from extender.web.report import NO_BROWSER_HEADER
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


def test_every_extender_is_queried_by_one_port_forward_with_the_header_of_readygate(capsys, cluster):
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
            "e-1 has no /api/v1/nodes; check its release, and that the port is not kube-scheduler's",
            id="another release",
        ),
        pytest.param(
            (200, b"<html>"), "e-1 sent no report; check that it is an extender of this release", id="another server"
        ),
        pytest.param((200, b'{"nodes": 1}'), "e-1 sent no report", id="another shape"),
        pytest.param((200, b"{}"), "e-1 sent no report", id="an empty object"),
        pytest.param((200, b'{"notAnswering":"\xff","nodes":[]}'), "e-1 sent no report", id="no UTF-8"),
        pytest.param((200, b'{"nodes":' + b"[" * 100_000), "e-1 sent no report", id="deep"),
        pytest.param((302, b""), "e-1", id="a redirect is not followed"),
        pytest.param((421, b'{"Error":"Misdirected Request"}'), "e-1", id="a name that it does not go by"),
    ],
)
def test_an_extender_that_does_not_answer_is_one_line_with_a_remedy(capsys, cluster, answer, expected):
    cluster.extenders = [Extender("e-1", nodes=answer)]
    code, out, err = status(capsys)
    assert (3, "", True, 1) == (code, out, expected in err, len(err.splitlines())), err


@pytest.mark.parametrize(
    ("forward", "expected"),
    [
        pytest.param(
            status_of(403, "Forbidden", 'pods "e-1" is forbidden: User "ana" cannot get resource "pods/portforward"'),
            'you may not forward port 9377 of e-1: pods "e-1" is forbidden: User "ana" cannot get resource '
            '"pods/portforward"; the rights needed are get and, from Kubernetes 1.35 on, create on pods/portforward',
            id="no right to get",
        ),
        pytest.param(
            status_of(403, "Forbidden", 'pods "e-1" is forbidden: '),
            'you may not forward port 9377 of e-1: pods "e-1" is forbidden; the rights needed are get and, from '
            "Kubernetes 1.35 on, create on pods/portforward",
            id="no right to create, of which a real API server gives no reason",
        ),
        pytest.param(
            status_of(401, "Unauthorized", "Unauthorized"), "renew the credentials of the kubeconfig", id="unknown"
        ),
        pytest.param(status_of(404, "NotFound", 'pods "e-1" not found'), "e-1 was just deleted; try again", id="gone"),
        pytest.param(
            status_of(500, "InternalError", "error dialing backend: dial tcp 10.0.0.1:10250: connect: refused"),
            "the kubelet of control-1 does not answer the API server, so e-1 cannot be reached: error dialing backend: "
            "dial tcp 10.0.0.1:10250: connect: refused; check that kubelet, and that the API server may connect "
            "to it (port 10250)",
            id="no kubelet",
        ),
        pytest.param(
            status_of(500, "InternalError", "etcdserver: request timed out"),
            "cannot forward port 9377 of e-1: the API server failed or is busy: InternalError: etcdserver: request "
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
            "nothing listens at port 9377 of e-1: it is starting or has failed; see its log",
            id="no process at the port",
        ),
        pytest.param(
            portforward.complaining("error forwarding port 9377 to pod e-1: \x1b[31msandbox is gone\n" + "x" * 10**6),
            "the kubelet of control-1 cannot reach port 9377 of e-1: error forwarding port 9377 to pod e-1: ",
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
def test_a_stalled_kubelet_costs_the_deadline_and_hides_no_other_extender(capsys, cluster, monkeypatch, accepts):
    monkeypatch.setattr(extender_client, "DEADLINE_S", 0.3)
    cluster.extenders = [Extender(f"e-{number}", nodes=NODES) for number in range(4)]
    stalled = portforward.Stalled(accepts=accepts)
    for slow in cluster.extenders[:3]:
        slow.forward = stalled
    code, out, _ = status(capsys)
    stalled.release()
    expected = "! e-{} did not answer within" if accepts else "! the kubelet of control-1 does not answer"
    assert (0, [True] * 3) == (code, [expected.format(number) in out for number in range(3)]), out


def test_an_extender_that_does_not_answer_hides_no_other_extender(capsys, cluster):
    cluster.extenders = [Extender("e-1", nodes=(200, b"<html>")), Extender("e-2", nodes=NODES)]
    code, out, _ = status(capsys)
    assert (0, True) == (code, "! e-1 sent no report; check that it is an extender of this release\n" in out)


def test_slow_extenders_cost_one_deadline_together(capsys, cluster, monkeypatch):
    monkeypatch.setattr(extender_client, "DEADLINE_S", 0.3)
    cluster.extenders = [Extender(f"e-{number}", nodes=NODES) for number in range(4)]
    for slow in cluster.extenders[:3]:
        slow.delay_s = 1.5
    began = time.monotonic()
    code, out, _ = status(capsys)
    assert (0, 3) == (code, out.count(" did not answer within 0.3 s; it or its host may be overloaded")), out
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
        pytest.param((200, b"hello"), "check the server in the kubeconfig", id="no API server"),
        pytest.param(
            status_of(500, "InternalError", "etcdserver: request timed out"),
            "the API server failed or is busy: InternalError: etcdserver: request timed out; try again in a while",
            id="the API server fails",
        ),
        pytest.param(
            status_of(429, "TooManyRequests", "too many requests"),
            "failed or is busy: TooManyRequests",
            id="it is busy",
        ),
        pytest.param((200, b'{"items":[]}'), "install readygate, or name another", id="no extender"),
    ],
)
def test_an_api_server_that_lists_no_extenders_is_one_line_with_a_remedy(capsys, cluster, answer, expected):
    cluster.objects[PODS] = answer
    code, out, err = status(capsys)
    assert (3, "", True, 1) == (code, out, expected in err, len(err.splitlines())), err


def test_a_missing_kubeconfig_is_one_line_with_a_remedy(capsys):
    expected = (
        "readygate status: there is no kubeconfig: name one with --kubeconfig or KUBECONFIG, or an extender with "
        "--server (http://127.0.0.1:9377 on one of its hosts)\n"
    )
    assert (3, "", expected) == status(capsys)


@pytest.mark.parametrize(
    "command", [["why", "pod", "a/b", "--server", "http://127.0.0.1:1"], ["hold", "--node", "n"]], ids=" ".join
)
def test_commands_that_need_the_api_server_need_a_kubeconfig(capsys, command):
    code = main(command)
    expected = "there is no kubeconfig: name one with --kubeconfig or KUBECONFIG\n"
    assert (3, f"readygate {command[0]}: {expected}") == (code, capsys.readouterr().err)


@pytest.mark.usefixtures("cluster")
def test_a_kubeconfig_without_the_package_for_it_names_the_package(monkeypatch, capsys):
    monkeypatch.delitem(sys.modules, "kube.kubeconfig", raising=False)
    monkeypatch.delattr("kube.kubeconfig", raising=False)
    monkeypatch.setitem(sys.modules, "kubernetes.client", None)
    code, out, err = status(capsys, "--kubeconfig", "/etc/some.conf")
    assert (3, "", True, 1) == (code, out, "pip install 'readygate[kubeconfig]'" in err, len(err.splitlines()))
    assert ("", "default") == extender_client.context(argparse.Namespace(kubeconfig="/etc/some.conf", context=None))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param(("--kubeconfig", "/nowhere"), "kubeconfig /nowhere: no such file", id="no such file"),
        pytest.param(("--context", "other"), "other", id="no such context"),
    ],
)
@pytest.mark.usefixtures("cluster")
def test_an_invalid_kubeconfig_is_one_line(capsys, arguments, expected):
    code, out, err = status(capsys, *arguments)
    assert (3, "", True, 1) == (code, out, expected in err, len(err.splitlines()))


def test_an_unreachable_api_server_is_named(capsys, tmp_path):
    file = kubeconfig.write(tmp_path / "k", server="http://127.0.0.1:1", user=kubeconfig.token_user("secret"))
    code, _, err = status(capsys, "--kubeconfig", str(file))
    assert (3, True) == (code, "the API server does not answer: cannot list pods" in err), err


def test_an_untrusted_certificate_is_named(capsys, tmp_path):
    with serving(lambda *_: (200, b"{}"), tls=make_authority(tmp_path).server_context()) as url:
        file = kubeconfig.write(tmp_path / "k", server=url, user=kubeconfig.token_user("secret"))
        code, _, err = status(capsys, "--kubeconfig", str(file))
    assert (3, True, 1) == (code, "TLS with" in err, len(err.splitlines())), err


@pytest.mark.parametrize(
    "command", [("status",), ("why", "pod", "a/b"), ("hold", "--gate", "g", "--node", "n")], ids=lambda words: words[0]
)
def test_an_exec_plugin_is_run_once_for_a_command(capsys, cluster, tmp_path, command):
    """An exec plugin may prompt the user."""
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
    """A Node with fifty images has 25 KB, so a hundred take 4 s at 5 Mbit/s."""
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
            "http://127.0.0.1:1",
            3,
            "nothing answers at http://127.0.0.1:1; check that readygate-people",
            id="no server",
        ),
        pytest.param("127.0.0.1:9377", 2, "is not a URL", id="no scheme"),
        pytest.param("http://", 2, "is not a URL", id="no host"),
        pytest.param("http://127.0.0.1:x", 2, "is not a URL", id="no port"),
        pytest.param("http://[::1", 2, "http://[::1 is not a URL", id="half an address of IPv6"),
        pytest.param(
            "http://::1:9377", 2, "with an IPv6 address in brackets", id="an address of IPv6 without brackets"
        ),
        pytest.param(
            "http://[::1]:1",
            3,
            "nothing answers at http://[::1]:1; check that readygate-people",
            id="no server, by IPv6",
        ),
    ],
)
def test_a_server_url_that_does_not_answer_or_parse_is_one_line(capsys, url, code, expected):
    found, out, err = status(capsys, "--server", url)
    assert (code, "", True, 1) == (found, out, expected in err, len(err.splitlines())), err


def test_several_server_urls_are_queried_instead_of_the_kubeconfig(capsys, cluster):
    extenders = [Extender("a", nodes=NODES), Extender("b", nodes=NODES)]
    with (
        serving(lambda path, headers: extenders[0].get(path.removeprefix("/api/v1/").partition("?")[0], headers)) as a,
        serving(lambda path, headers: extenders[1].get(path.removeprefix("/api/v1/").partition("?")[0], headers)) as b,
    ):
        code, out, _ = status(capsys, "--server", a, "--server", b)
    assert (0, True, []) == (code, "2 of 2 extenders agree" in out, cluster.extenders)


def test_in_the_extenders_own_pod_its_status_api_is_queried(monkeypatch, tmp_path):
    (tmp_path / "token").write_text("t")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")
    monkeypatch.setattr(extender_client, "SERVICE_ACCOUNT_ROOT", tmp_path)
    arguments = argparse.Namespace(server=[], kubeconfig=None, context=None, readygate_namespace=NAMESPACE)
    with serving(lambda *_: (200, b"{}")) as url:
        monkeypatch.setattr(extender_client, "STATUS_API_PORT", int(url.rpartition(":")[2]))
        assert isinstance(extender_client.extenders(arguments), extender_client.Servers)
