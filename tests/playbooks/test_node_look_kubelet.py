"""What look.sh tells of a kubelet by its flags and its configuration: the file, and the folder of files over it, merged
as mergeKubeletConfigurations in cmd/kubelet/app/server.go of Kubernetes 1.36 does."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.playbooks.test_node_plugin_look import Host
from tools.kit.cases import cases

FACTS = ("dns", "domain", "health", "port", "runtime", "cgroup_root", "unread")
USUAL = "http://127.0.0.1:10248/healthz"
BASE = """# as kubeadm writes it
apiVersion: kubelet.config.k8s.io/v1beta1
clusterDNS:
- 10.96.0.10
clusterDomain: cluster.local
containerRuntimeEndpoint: ""
evictionHard:
  memory.available: 100Mi
healthzBindAddress: 127.0.0.1
healthzPort: 10248
kind: KubeletConfiguration
staticPodPath: /etc/kubernetes/manifests
"""
WITHOUT = {
    "dns": "10.96.0.10",
    "domain": "cluster.local",
    "health": USUAL,
    "port": "",
    "runtime": "",
    "cgroup_root": "",
    "unread": "",
}


@contextmanager
def process(flags: Sequence[str]) -> Iterator[int]:
    code = "import sys; print(flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code, *flags], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as kubelet:
        assert kubelet.stdout is not None
        assert kubelet.stdin is not None
        assert kubelet.stdout.readline()
        try:
            yield kubelet.pid
        finally:
            kubelet.stdin.close()


def facts(root: Path, flags: Sequence[str], files: dict[str, str]) -> dict[str, str]:
    """Of a kubelet with these flags, in which {} is the folder that has these files."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text.replace("{}", str(root)))
    programs = root / "programs"
    programs.mkdir()
    with process([flag.replace("{}", str(root)) for flag in flags]) as pid:
        for name, text in (("pidof", f'[ "$1" = kubelet ] && echo {pid}'), ("openssl", "exit 1"), ("ss", "exit 1")):
            (programs / name).write_text(f"#!/bin/sh\n{text}\n")
            (programs / name).chmod(0o755)
        seen = Host(root / "host").seen(address="192.0.2.1", PATH=f"{programs}:{os.environ['PATH']}")
    return {key: seen[key].replace(str(root), "{}") for key in FACTS}


CONFIG, FOLDER = "--config={}/config.yaml", "--config-dir={}/d"
EKS = json.dumps({"kind": "KubeletConfiguration", "clusterDNS": ["172.20.0.10"], "healthzPort": 10248}, indent=2)


@pytest.mark.parametrize(
    ("flags", "files", "expected"),
    [
        pytest.param([CONFIG], {}, {}, id="the file alone"),
        pytest.param([CONFIG, FOLDER], {}, {}, id="a folder that is not there"),
        pytest.param([CONFIG, FOLDER], {"d/README": "clusterDomain: x\n"}, {}, id="a file that is none of its own"),
        pytest.param(
            [CONFIG, FOLDER],
            {"d/10.conf": "clusterDNS:\n- 169.254.20.10\n- 10.96.0.10\n"},
            {"dns": "169.254.20.10,10.96.0.10"},
            id="a list takes the place of the whole list",
        ),
        pytest.param(
            [CONFIG, FOLDER],
            {"d/10.conf": "clusterDomain: ten.example\n", "d/20.conf": 'clusterDomain: "twenty.example" # why\n'},
            {"domain": "twenty.example"},
            id="of two files the later by name",
        ),
        pytest.param(
            [CONFIG, FOLDER],
            {"d/a.conf": "clusterDomain: file.example\n", "d/a/b.conf": "clusterDomain: folder.example\n"},
            {"domain": "file.example"},
            id="a folder comes where its name does: before that name with more behind it",
        ),
        pytest.param(
            [CONFIG, FOLDER], {"d/10.conf": "clusterDomain: null\n"}, {"domain": ""}, id="null takes one away"
        ),
        pytest.param(
            [CONFIG, "--config-dir", "{}/d"],
            {"d/10.conf": "healthzPort: 10348\nhealthzBindAddress: 0.0.0.0\nport: 10350\n"},
            {"health": "http://127.0.0.1:10348/healthz", "port": "10350"},
            id="its ports, with a flag in two words",
        ),
        pytest.param(
            [CONFIG, FOLDER],
            {"d/10.conf": "healthzPort: 0\n"},
            {"health": "none"},
            id="it tells nobody whether it is well",
        ),
        pytest.param(
            [CONFIG, FOLDER],
            {"d/10.conf": "healthzBindAddress: fd00::21\n"},
            {"health": "http://[fd00::21]:10248/healthz"},
            id="at an address of IPv6",
        ),
        pytest.param(
            [CONFIG, FOLDER],
            {"d/10.conf": "containerRuntimeEndpoint: unix://{}/crio.sock\n", "crio.sock": ""},
            {"runtime": "{}/crio.sock"},
            id="its container runtime",
        ),
        pytest.param(
            [CONFIG, FOLDER, "--container-runtime-endpoint=unix://{}/a.sock"],
            {"d/10.conf": "containerRuntimeEndpoint: unix://{}/b.sock\n", "a.sock": "", "b.sock": ""},
            {"runtime": "{}/a.sock"},
            id="a flag comes before all files",
        ),
        pytest.param(
            [CONFIG, "--cluster-domain=a.example", "--cluster-domain=b.example"],
            {},
            {"domain": "b.example"},
            id="of a flag that is given twice the last counts",
        ),
        pytest.param(
            [CONFIG, "--cluster-dns=10.96.0.11", "--cluster-dns=10.96.0.12"],
            {},
            {"dns": "10.96.0.11,10.96.0.12"},
            id="of a list all of them",
        ),
        pytest.param(
            ["--config={}/config.json", "--config-dir={}/config.json.d"],
            {"config.json": EKS, "config.json.d/40-nodeadm.conf": json.dumps({"clusterDomain": "eks.example"})},
            {"dns": "172.20.0.10", "domain": "eks.example"},
            id="all of it in JSON, as of EKS",
        ),
        pytest.param(
            [CONFIG, FOLDER],
            {
                "d/10.conf": json.dumps({"clusterDomain": "ten.example", "healthzPort": 10348}) + "\n",
                "d/20.conf": json.dumps({"clusterDomain": "twenty.example"}),
                "d/30.conf": json.dumps({"clusterDomain": None, "clusterDNS": ["10.96.0.11"]}),
            },
            {"dns": "10.96.0.11", "domain": "", "health": "http://127.0.0.1:10348/healthz"},
            id="several files in JSON over one in YAML",
        ),
        pytest.param(
            [FOLDER],
            {"d/10.conf": "clusterDomain: alone.example\n"},
            {"dns": "", "domain": "alone.example"},
            id="a folder without a file before it",
        ),
    ],
)
def test_its_configuration_is_read_as_it_merges_it(
    tmp_path: Path, flags: Sequence[str], files: dict[str, str], expected: dict[str, str]
) -> None:
    found = facts(tmp_path, flags, {"config.yaml": BASE} | files)
    there = {} if "runtime" in expected else {"runtime": found["runtime"]}  # what this machine has
    assert WITHOUT | there | expected == found


KEYS = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"


@cases(
    "text, dns, domain",
    ("a quoted key", KEYS + "\"clusterDNS\":\n- 10.96.0.10\n'clusterDomain': a.b\n", "10.96.0.10", "a.b"),
    ("a flow list over lines", KEYS + "clusterDNS: [\n  10.96.0.10, # one\n  fd00::a,\n]\n", "10.96.0.10,fd00::a", ""),
    ("a byte order mark", "\ufeffclusterDNS:\n- 10.96.0.10\nclusterDomain: a.b\n", "10.96.0.10", "a.b"),
    ("ends of lines of Windows", "clusterDNS:\r\n- 10.96.0.10\r\nclusterDomain: a.b\r\n", "10.96.0.10", "a.b"),
    (
        "openshift/machine-config-operator#4350: JSON",
        json.dumps({"clusterDomain": "a.b", "clusterDNS": ["10.96.0.10"]}),
        "10.96.0.10",
        "a.b",
    ),
    (
        "linuxkit/kubernetes#86: JSON by hand, with tabs",
        '{\n\t"clusterDNS": [\t"10.96.0.10"\n\t], "clusterDomain":"a.b"\n}',
        "10.96.0.10",
        "a.b",
    ),
    ("all of it as a flow mapping", "{clusterDNS: [10.96.0.10], clusterDomain: 'a.b'}\n", "10.96.0.10", "a.b"),
    (
        "eksctl-io/eksctl#987: addresses within one text",
        "clusterDNS: ['10.96.0.10,10.96.0.11']\n",
        "10.96.0.10,10.96.0.11",
        "",
    ),
    (
        "gravitational/planet#824: a list with two blanks",
        "clusterDNS:\n  - 10.96.0.10\n  - 10.96.0.11\n",
        "10.96.0.10,10.96.0.11",
        "",
    ),
    ("openshift/machine-config-operator#107: another case is another key", "clusterDns:\n- 10.96.0.10\n", "", ""),
    ("begin and end of a document", "%YAML 1.1\n---\nclusterDomain: a.b\n...\n---\nclusterDomain: c.d\n", "", "a.b"),
    ("an anchor", "x: &x [10.96.0.10]\nclusterDNS: *x\n", "10.96.0.10", ""),
    ("a blank before the colon", "clusterDomain : a.b\n", "", "a.b"),
    ("a key that another one holds", "other:\n  clusterDomain: x\nclusterDomain: a.b\n", "", "a.b"),
    ("a text that looks like a key", "other: |\n  x\nclusterDomain: a.b\nmore: 'x\n  clusterDomain: y'\n", "", "a.b"),
    ("null, and a list with one", "clusterDomain: ~\nclusterDNS: [null, 10.96.0.10]\n", "10.96.0.10", ""),
)
def test_the_kubelets_file_is_read_as_yaml(tmp_path: Path, text: str, dns: str, domain: str) -> None:
    found = facts(tmp_path, [CONFIG], {"config.yaml": text})
    assert (dns, domain, "") == (found["dns"], found["domain"], found["unread"])


@cases(
    "encoding, text",
    ("UTF-16 with its mark", "utf-16", "clusterDomain: ä.b\n"),
    ("UTF-8", "utf-8", "clusterDomain: ä.b\n"),
)
def test_the_kubelets_file_is_read_in_each_encoding_of_yaml(tmp_path: Path, encoding: str, text: str) -> None:
    config = tmp_path / "config.yaml"
    config.write_bytes(text.encode(encoding))
    seen = Host(tmp_path / "host").seen(address="192.0.2.1", KUBELET_CONFIG=str(config), PAUSE_S="0", LC_ALL="C")
    assert "ä.b" == seen["domain"]


@cases(
    "config, flags, root",
    ("kubernetes-sigs/kind#2737", "cgroupRoot: /kubelet\n", [], "/kubelet"),
    ("kubernetes/kubernetes#49281: a flag", "", ["--cgroup-root=/container.slice"], "/container.slice"),
    ("the usual one", "cgroupRoot: /\n", [], "/"),
    ("none", "", [], ""),
)
def test_below_which_control_group_the_kubelet_makes_that_of_its_pods(
    tmp_path: Path, config: str, flags: list[str], root: str
) -> None:
    assert root == facts(tmp_path, [CONFIG, *flags], {"config.yaml": BASE + config})["cgroup_root"]


@cases(
    "files, unread",
    (
        "a list without an end",
        {"config.yaml": "a: b\nclusterDNS: [10.96.0.10\n"},
        "{}/config.yaml: line 3: no comma",
    ),
    ("a file of the folder", {"config.yaml": BASE, "d/1.conf": "a: 'b"}, "{}/d/1.conf: line 1: no end of a quote"),
    ("no keys in it", {"config.yaml": "clusterDomain\n"}, "{}/config.yaml: no keys"),
)
def test_what_of_the_kubelets_is_not_understood_is_reported(tmp_path: Path, files: dict[str, str], unread: str) -> None:
    assert unread == facts(tmp_path, [CONFIG, FOLDER], files)["unread"]


def test_a_host_without_a_file_and_without_a_process_has_not_been_asked(tmp_path: Path) -> None:
    none = tmp_path / "none.yaml"
    (tmp_path / "pidof").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "pidof").chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    seen = Host(tmp_path / "host").seen(address="192.0.2.1", KUBELET_CONFIG=str(none), PAUSE_S="0", PATH=path)
    assert f"{none}: is not there, and no process is called kubelet" == seen["unread"]


def test_a_host_without_python_is_not_taken_for_one_that_names_no_server(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(BASE)
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("python3", "python"):
        (programs / name).write_text("#!/bin/sh\nexit 127\n")
        (programs / name).chmod(0o755)
    path = f"{programs}:{os.environ['PATH']}"
    config = str(tmp_path / "config.yaml")
    seen = Host(tmp_path / "host").seen(address="192.0.2.1", KUBELET_CONFIG=config, PAUSE_S="0", PATH=path)
    expected = ("", f"{config}: not read, as {programs}/python3 ended with 127", "https://192.0.2.1:6443")
    assert expected == (seen["dns"], seen["unread"], seen["server"])


def test_no_package_of_the_host_is_needed(tmp_path: Path) -> None:
    """Nor one that a host puts in the way, by its environment or beside the program."""
    (tmp_path / "yaml.py").write_text("raise SystemExit('used')")
    (tmp_path / "config.yaml").write_text(BASE)
    more = {"KUBELET_CONFIG": str(tmp_path / "config.yaml"), "PYTHONPATH": str(tmp_path), "PAUSE_S": "0"}
    assert "10.96.0.10" == Host(tmp_path / "host").seen(address="192.0.2.1", **more)["dns"]


KUBECONFIG = """
apiVersion: v1
kind: Config
clusters:
- name: other
  cluster: {server: "https://192.0.2.9:6443"}
- cluster:
    certificate-authority: pki/ca.crt
    server: https://192.0.2.1:6443
  name: ours
users:
- {name: other, user: {token: x}}
- name: node
  user:
    "client-certificate": /var/lib/kubelet/pki/kubelet-client-current.pem
    client-key: '/var/lib/kubelet/pki/kubelet-client-current.pem'
contexts: [{name: c, context: {cluster: ours, user: node}}]
current-context: c
"""
IDENTITY = ("https://192.0.2.1:6443", *["/var/lib/kubelet/pki/kubelet-client-current.pem"] * 2)


@cases(
    "text",
    ("of its current context", KUBECONFIG),
    ("with a byte order mark", "\ufeff" + KUBECONFIG),
    ("ends of lines of Windows", KUBECONFIG.replace("\n", "\r\n")),
)
def test_the_kubelets_kubeconfig_is_read_as_yaml(tmp_path: Path, text: str) -> None:
    host = Host(tmp_path)
    host.kubeconfig.write_text(text)
    (tmp_path / "pki").mkdir()
    (tmp_path / "pki/ca.crt").write_text("ca")
    seen = host.seen(PAUSE_S="0")
    assert (*IDENTITY, str(tmp_path / "pki/ca.crt")) == tuple(
        seen[key] for key in ("server", "certificate", "key", "authority")
    )
