"""Control plane hosts that are folders of this machine: playbooks run on them for real, with a kubectl that answers
from files and notes what it was asked. No scheduler is changed there: systemd is not to be had.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.playbooks.rendering import PLAYBOOKS
from tests.playbooks.seeing import manifest

KUBECTL = """#!/bin/sh
echo "{host} $*" >> {cluster}/calls
case " $* " in
  *" --raw=/configz "*) exec cat {host_folder}/configz;;
esac
case " $* " in *" --patch-file=/dev/stdin "*) cat > /dev/null;; esac  # else who writes it finds nobody who reads
[ ! -e {cluster}/down ] || {{ echo "dial tcp: connection refused" >&2; exit 1; }}
case " $* " in
  *" auth whoami "*) cat {host_folder}/whoami;;
  *" configmap kubeadm-config "*) cat {cluster}/kubeadm-config;;
  *" get lease readygate-playbooks "*) cat {cluster}/lease;;
  *" delete lease readygate-playbooks "*) : > {cluster}/lease;;
  *" create --filename=- "* | *" replace --filename=- "*) cat > {cluster}/lease;;
  *" get lease kube-scheduler "*) cat {cluster}/leader;;
  *" get nodes --selector"*) cat {cluster}/nodes;;
  *" --output=json "*) echo '{{"items": []}}';;
  *" --filename=- ") cat > /dev/null; echo something/there;;
esac
"""
NOT_FOUND = 'Error from server (NotFound): configmaps "kubeadm-config" not found'
LIMIT_S = 900.0  # it is here for what hangs; beside other rings one run has taken 309 s


@dataclass(frozen=True)
class Run:
    code: int
    output: str

    @property
    def told(self) -> str:
        """The messages of what failed, or the end of the output."""
        failed = re.findall(r"^fatal: .*", self.output, re.MULTILINE)
        return "\n".join(failed) or self.output[-3000:]


class Here:
    """`names` are the hosts and their Nodes; each has kubeadm's manifest and a scheduler that asks nobody."""

    def __init__(self, folder: Path, names: Sequence[str], **variables: Any) -> None:
        self.folder, self.names = folder, names
        self.cluster = folder / "cluster"
        self.cluster.mkdir()
        for name in ("calls", "lease", "leader"):
            (self.cluster / name).write_text("")
        (self.cluster / "nodes").write_text("".join(f"node/{name}\n" for name in names))
        self.has_cluster("apiVersion: kubeadm.k8s.io/v1beta4\n")
        for name in names:
            self._host(name)
        own = f"{folder}/{{{{ inventory_hostname }}}}"
        self.variables = {
            "__readygate_scheduler_config_folder": f"{own}/readygate",
            "__readygate_extender_folder": f"{own}/extender",
            "readygate_scheduler_config_manifest": f"{own}/manifests/kube-scheduler.yaml",
            "readygate_extender_manifests": f"{own}/manifests",
            "readygate_bin_dir": f"{own}/bin",
            "readygate_image": "registry.example/readygate:1.1",
            **variables,
        }

    def _host(self, name: str) -> None:
        host = self.folder / name
        for part in ("bin", "manifests", "readygate"):
            (host / part).mkdir(parents=True)
        kubectl = KUBECTL.format(host=name, host_folder=host, cluster=self.cluster)
        for program, text in {"kubectl": kubectl, "systemd-run": "#!/bin/sh\nexit 1\n"}.items():
            (host / "bin" / program).write_text(text)
            (host / "bin" / program).chmod(0o755)
        (host / "whoami").write_text(json.dumps({"status": {"userInfo": {"username": f"system:node:{name}"}}}))
        (host / "manifests" / "kube-scheduler.yaml").write_text(manifest())
        self.asks(name)

    def asks(self, name: str, *extenders: dict[str, Any]) -> None:
        loaded = {"kind": "KubeSchedulerConfiguration", "extenders": list(extenders)}
        (self.folder / name / "configz").write_text(json.dumps({"componentconfig": loaded}))

    def has_cluster(self, configuration: str) -> None:
        """kubeadm's ClusterConfiguration."""
        found = {"metadata": {"resourceVersion": "1"}, "data": {"ClusterConfiguration": configuration}}
        (self.cluster / "kubeadm-config").write_text(json.dumps(found))

    def play(self, playbook: str, *options: str, **variables: Any) -> Run:
        own = {"ansible_connection": "local", "ansible_become": False, "ansible_python_interpreter": sys.executable}
        inventory = {"control_plane": {"hosts": {name: {} for name in self.names}, "vars": own}}
        (self.folder / "inventory.yml").write_text(json.dumps(inventory))
        command = [sys.executable, "-m", "ansible", "playbook", "-i", str(self.folder / "inventory.yml"), *options]
        command += ["--extra-vars", json.dumps(self.variables | variables), str(PLAYBOOKS / playbook)]
        environ = {**os.environ, "ANSIBLE_NOCOLOR": "1", "ANSIBLE_HOME": str(self.folder / "ansible")}
        done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        return Run(done.returncode, done.stdout + done.stderr)

    def calls(self, word: str) -> list[str]:
        """What kubectl was asked that has this word."""
        lines = (self.cluster / "calls").read_text().splitlines()
        return [line for line in lines if word in line]

    def lease(self) -> str:
        """Of the run that is at work; empty for none."""
        return (self.cluster / "lease").read_text()
