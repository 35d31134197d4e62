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

FACTS = ("dns", "domain", "health", "port", "runtime")
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
WITHOUT = {"dns": "10.96.0.10", "domain": "cluster.local", "health": USUAL, "port": "", "runtime": ""}


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
