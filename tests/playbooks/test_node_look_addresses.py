"""The addresses that look.sh tells of a host: its kubelet's DNS servers, and what the API server tells its kubelet."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.playbooks.test_node_plugin_look import Host
from tests.scripted.tls import Authority, make_authority
from tools.kit.serving import serving

# As the API server writes them, for a client that is no terminal's.
SERVICE = {
    "metadata": {
        "annotations": {"last": '{"spec":{"clusterIPs":["203.0.113.9"]}}'},
        "managedFields": [{"fieldsV1": {"f:spec": {"f:clusterIP": {}, "f:clusterIPs": {}}}}],
    },
    "spec": {"clusterIP": "10.96.0.1", "clusterIPs": ["10.96.0.1", "fd00::1"], "ports": [{"port": 443}]},
}
ENDPOINTS = {
    "metadata": {"name": "kubernetes"},
    "subsets": [
        {"addresses": [{"ip": "192.0.2.12"}, {"ip": "192.0.2.11"}], "ports": [{"name": "https", "port": 6443}]},
    ],
}
# Answers by what is asked for, and keeps the words it was called by.
OPENSSL = """#!/bin/sh
[ "$1" = s_client ] || exit 1
echo "$*" >> "$ANSWERS/asked"
read -r request
case "$request" in
    *services*) cat "$ANSWERS/service" ;;
    *endpoints*) cat "$ANSWERS/endpoints" ;;
esac
"""
# What listens, by its local address; no unit and no process is kube-proxy's.
SS = """#!/bin/sh
for address in $LISTENING; do echo "LISTEN 0 4096 $address 0.0.0.0:*"; done
"""
NONE = "#!/bin/sh\nexit 1\n"
IP = "#!/bin/sh\necho '2: eth0    inet 192.0.2.21/24 brd 192.0.2.255 scope global eth0'\n"


class Asked:
    def __init__(self, root: Path) -> None:
        self.host, self.answers, self.config = Host(root), root / "answers", root / "config.yaml"
        for path in (self.answers, programs := root / "programs"):
            path.mkdir()
        for name, text in (("openssl", OPENSSL), ("ip", IP), ("ss", SS), ("pidof", NONE), ("systemctl", NONE)):
            (programs / name).write_text(text)
            (programs / name).chmod(0o755)
        self.pods = root / "pods"
        given = {"ANSWERS": str(self.answers), "KUBELET_CONFIG": str(self.config), "PODS": str(self.pods)}
        self.environment = {**given, "PATH": f"{programs}:{os.environ['PATH']}"}
        self.config.write_text("clusterDNS:\n- 10.96.0.10\nclusterDomain: cluster.local\n")
        self.answer("service", SERVICE)
        self.answer("endpoints", ENDPOINTS)

    def answer(self, name: str, value: object) -> None:
        body = json.dumps(value, separators=(",", ":"))
        (self.answers / name).write_text(f"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n{body}\n")

    def seen(self, *, server: str = "", address: str = "192.0.2.21", **more: str) -> dict[str, str]:
        return self.host.seen(server=server, address=address, **self.environment, **more)

    @property
    def words(self) -> list[str]:
        file = self.answers / "asked"
        return file.read_text().splitlines() if file.exists() else []


@pytest.fixture
def asked(tmp_path: Path) -> Asked:
    return Asked(tmp_path)


def test_the_api_servers_service_and_what_is_behind_it(asked: Asked) -> None:
    seen = asked.seen()
    expected = ("10.96.0.1,fd00::1", "192.0.2.11,192.0.2.12,", "6443")
    assert expected == tuple(seen[key] for key in ("services", "endpoints", "api_port"))
    assert 2 == len(asked.words)


def test_nobody_is_asked_where_addresses_are_not_looked_for(asked: Asked) -> None:
    seen = asked.seen(address="")
    assert ([], set()) == (asked.words, {"dns", "domain", "own", "services"} & seen.keys())


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param("", id="it is away"),
        pytest.param('HTTP/1.0 403 Forbidden\r\n\r\n{"kind":"Status","code":403}\n', id="it does not let the kubelet"),
        pytest.param("HTTP/1.0 200 OK\r\n\r\n<html>", id="another answers"),
    ],
)
def test_what_it_told_the_last_time_holds_where_it_does_not_answer(asked: Asked, answer: str) -> None:
    kept = "# Seen: services=10.96.0.1\n# Seen: api_port=6443\nmode: node\n"
    asked.host.configuration.write_text(kept)
    (asked.answers / "service").write_text(answer)
    seen = asked.seen()
    assert ("10.96.0.1", "", "6443") == tuple(seen[key] for key in ("services", "endpoints", "api_port"))


NONE_BEHIND = {"metadata": {"name": "kubernetes"}}


def test_what_was_behind_it_the_last_time_holds_where_it_is_out_of_it(asked: Asked) -> None:
    seen_before = ("services=10.96.0.1", "endpoints=192.0.2.12", "api_port=6443")
    asked.host.configuration.write_text("".join(f"# Seen: {line}\n" for line in seen_before) + "mode: node\n")
    asked.answer("endpoints", NONE_BEHIND)
    seen = asked.seen()
    expected = ("10.96.0.1,fd00::1", "192.0.2.12", "6443", 2)
    assert expected == (seen["services"], seen["endpoints"], seen["api_port"], len(asked.words))


def test_on_a_new_host_nothing_is_known_of_what_is_behind_a_service_without_a_server(asked: Asked) -> None:
    asked.answer("endpoints", NONE_BEHIND)
    seen = asked.seen()
    assert ("10.96.0.1,fd00::1", "", "") == (seen["services"], seen["endpoints"], seen["api_port"])


def test_on_a_new_host_nothing_is_known_where_it_does_not_answer(asked: Asked) -> None:
    (asked.answers / "service").unlink()
    assert "" == asked.seen()["services"]


@pytest.mark.parametrize(
    ("server", "expected"),
    [
        pytest.param("", "-connect 192.0.2.1:6443 by -verify_ip 192.0.2.1", id="of the kubelet's kubeconfig"),
        pytest.param(
            "https://api.example.com", "-connect api.example.com:443 by -verify_hostname api.example.com", id="a name"
        ),
        pytest.param(
            "https://api.example.com:8443/a",
            "-connect api.example.com:8443 by -verify_hostname api.example.com",
            id="a name, a port, a path",
        ),
        pytest.param("https://[fd00::1]:6443", "-connect [fd00::1]:6443 by -verify_ip fd00::1", id="of IPv6"),
        pytest.param("https://[fd00::1]", "-connect [fd00::1]:443 by -verify_ip fd00::1", id="of IPv6, without a port"),
    ],
)
def test_whom_it_asks_and_whose_certificate_it_believes(asked: Asked, server: str, expected: str) -> None:
    asked.seen(server=server)
    words = asked.words[0].split()
    connect, (by, name) = words.index("-connect"), words[-2:]
    assert expected == f"-connect {words[connect + 1]} by {by} {name}"
    assert {"-CAfile", "-verify_return_error"} <= set(words)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            "clusterDNS:\n- 10.96.0.10\nclusterDomain: a.b\n", ("10.96.0.10", "a.b"), id="as kubeadm writes it"
        ),
        pytest.param(
            'clusterDNS:\n  - "10.96.0.10"\n  - fd00::a\nx: 1\n', ("10.96.0.10,fd00::a", ""), id="two, in quotes"
        ),
        pytest.param(
            'clusterDomain: "a.b"\nclusterDNS: ["10.96.0.10", \'fd00::a\']\n',
            ("10.96.0.10,fd00::a", "a.b"),
            id="on a line",
        ),
        pytest.param("clusterDNS: []\nevictionHard:\n- x\n", ("", ""), id="none"),
        pytest.param("# clusterDNS:\n# - 10.96.0.10\nother:\n- a\n", ("", ""), id="a comment, another list"),
        pytest.param(None, ("", ""), id="no such file"),
    ],
)
def test_the_kubelets_dns_servers_and_domain(asked: Asked, text: str | None, expected: tuple[str, str]) -> None:
    asked.config.unlink() if text is None else asked.config.write_text(text)
    seen = asked.seen()
    assert expected == (seen["dns"], seen["domain"])


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        pytest.param("192.0.2.21", "yes", id="its own"),
        pytest.param("192.0.2.2", "no", id="another that begins alike"),
        pytest.param("none", "no", id="the inventory has none"),
    ],
)
def test_whether_the_inventorys_address_is_the_hosts_own(asked: Asked, address: str, expected: str) -> None:
    assert expected == asked.seen(address=address)["own"]


@pytest.mark.parametrize(
    ("listening", "pod", "expected"),
    [
        pytest.param("*:10256", True, "127.0.0.1", id="kube-proxy as kubeadm starts it"),
        pytest.param("127.0.0.1:10256", False, "127.0.0.1", id="in k3s, without a pod"),
        pytest.param("[::]:10256", True, "::1", id="of IPv6 alone"),
        pytest.param("[fd00::21]:10256", True, "fd00::21", id="at the node's own address"),
        pytest.param("10.0.0.21:10256 127.0.0.1:10256", True, "10.0.0.21", id="at two of them"),
        pytest.param("", True, "192.0.2.7", id="it is being started again: where it was"),
        pytest.param("", False, "", id="there is none any more"),
    ],
)
def test_where_kube_proxy_tells_how_it_is(asked: Asked, listening: str, pod: bool, expected: str) -> None:
    asked.host.configuration.write_text("# Seen: proxy=192.0.2.7\nmode: node\n")
    if pod:
        (asked.pods / "uid/volumes/kubernetes.io~configmap/kube-proxy").mkdir(parents=True)
    assert expected == asked.seen(LISTENING=listening)["proxy"]


@contextmanager
def api_server(authority: Authority) -> Iterator[int]:
    """Its port. It wants a client's certificate, and tells what a kubelet may read."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            told = {"services": SERVICE, "endpoints": ENDPOINTS}.get(self.path.split("/")[-2])
            self.send_response(200 if told else 404)
            self.end_headers()
            self.wfile.write(json.dumps(told).encode())

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.socket = authority.server_context(ask_for_client=True).wrap_socket(server.socket, server_side=True)
    with serving(server):
        yield server.server_port


@pytest.mark.parametrize(
    ("authority", "name", "expected"),
    [
        pytest.param("ours", "127.0.0.1", "10.96.0.1,fd00::1", id="of the cluster's CA, for its address"),
        pytest.param("ours", "localhost", "", id="for another name than it is called by"),
        pytest.param("others", "127.0.0.1", "", id="of another CA"),
    ],
)
def test_only_an_api_server_with_a_certificate_of_the_clusters_ca_is_believed(
    tmp_path: Path, authority: str, name: str, expected: str
) -> None:
    for folder in ("ours", "others"):
        (tmp_path / folder).mkdir()
    ours = make_authority(tmp_path / "ours")
    make_authority(tmp_path / "others")
    host = Host(tmp_path / "host")
    files = (("client-certificate", "client.crt"), ("client-key", "client.key"))
    with host.kubeconfig.open("a") as kubeconfig:
        kubeconfig.writelines(f"    {key}: {ours.folder / file}\n" for key, file in files)
    with api_server(ours) as port:
        seen = host.seen(
            authority=str(tmp_path / authority / "ca.crt"), server=f"https://{name}:{port}", address="192.0.2.1"
        )
    assert expected == seen["services"]
