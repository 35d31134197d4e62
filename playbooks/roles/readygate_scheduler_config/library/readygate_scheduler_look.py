#!/usr/bin/python
"""Reads the state of kube-scheduler of this host, readygate's folder and kubeadm's ConfigMap. Changes nothing.

With `settle` it first ends an interrupted change.
"""

import json
import os
import re
import shutil

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.readygate_scheduler.command import settle
from ansible.module_utils.readygate_scheduler.host_io import HostIO, noted, read
from ansible.module_utils.readygate_scheduler.jobs import digest
from ansible.module_utils.readygate_scheduler.proof import configuration_of
from ansible.module_utils.readygate_scheduler.scheduler import Scheduler, address_of

DOCUMENTATION = r"""
module: readygate_scheduler_look
short_description: Reads the state of kube-scheduler of this host
options:
  folder: {type: path, required: true, description: readygate's folder}
  target: {type: path, required: true, description: the scheduler's manifest, or the drop-in of its unit}
  unit: {type: str, default: "", description: the scheduler's unit, where systemd runs it}
  kubeconfig: {type: path, required: true, description: kubeconfig for the API server and /configz}
  kubelet_kubeconfig: {type: path, required: true, description: kubeconfig with this host's node name}
  api: {type: bool, default: true, description: ask the API server too}
  settle: {type: bool, default: false, description: end an interrupted change first}
author: The readygate authors
"""


def text(path):
    found = read(path)
    return None if found is None else found.decode("utf-8", "replace")


class Look:
    """Reads the state of one host; `given` are the module's parameters."""

    def __init__(self, given):
        self.given = given
        self.io = HostIO()
        self.scheduler = Scheduler()

    def ask(self, argv):
        """The output of a command as JSON, or {"error": ...}."""
        code, output = self.io.run(argv, 15.0)
        if code == 0:
            try:
                return json.loads(output)
            except ValueError:
                pass
        return {"error": " ".join(output.split())[-400:] or "%s failed with code %d" % (argv[0], code)}

    @staticmethod
    def kubectl(kubeconfig):
        # By its full name: the program that systemd runs has another PATH.
        return [shutil.which("kubectl") or "kubectl", "--kubeconfig", kubeconfig, "--request-timeout=10s"]

    def process(self, target):
        """The process that the manifest describes, if several schedulers run; None for none."""
        running = sorted(self.scheduler.processes().items())
        described = [(who, argv) for who, argv in running if all(one in (target or "") for one in argv[1:])]
        return (described or running or [None])[-1]

    def configs(self, process, target, before):
        """Content by path of the files in --config of the process and of the manifest.

        A file is read in the file system of the process, else in that of the host. The manifest may be of a process
        that does not run.
        """
        argv = " ".join([*(process[1] if process else []), target or ""])
        paths = set(re.findall(r"--config[= ]([^\s\"']+)", argv)) | {(before or {}).get("config", "")}
        root = "/proc/%d/root" % process[0][0] if process else ""
        return {path: text(root + path) or text(path) for path in paths if path}

    def of_host(self):
        folder, target = self.given["folder"], text(self.given["target"])
        before = noted(os.path.join(folder, "original", "noted.json")) or None
        process = self.process(target)
        in_manifest = ["kube-scheduler", *re.findall(r"^\s*- (--\S+)$", target or "", re.MULTILINE)]
        argv = process[1] if process else in_manifest
        names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
        url = address_of(argv)
        seen = {
            "target": target,
            "target_digest": digest(None if target is None else target.encode()),
            "process": process[1] if process else [],
            "configs": self.configs(process, target, before),
            "noted": before,
            "healthz": url + "/healthz",
            "healthy": self.scheduler.healthy(url + "/healthz"),
            "open": "pending" in names,
            "original": text(os.path.join(folder, "original", os.path.basename(self.given["target"]))),
            "without": text(os.path.join(folder, "proven", "without")),
            "files": [os.path.join(folder, name) for name in names if name.startswith("kube-scheduler-")],
            "apiserver": text(os.path.join(os.path.dirname(self.given["target"]), "kube-apiserver.yaml")),
            "unit_text": "",
        }
        if self.given["unit"]:
            seen["unit_text"] = self.io.run(["systemctl", "cat", self.given["unit"]])[1]
        seen["kubectl"] = self.kubectl(self.given["kubeconfig"])
        ask = ["get", "--raw=/configz", "--server=" + url, "--insecure-skip-tls-verify"]
        seen["configz_command"] = [*seen["kubectl"], *ask]
        return seen

    def of_api(self, seen):
        if not self.given["api"]:
            return {
                "cluster": {"error": "it was not requested"},
                "node": "",
                "configz": {"error": "it was not requested"},
            }
        ask = [*self.kubectl(self.given["kubeconfig"]), "--namespace=kube-system", "get", "configmap", "kubeadm-config"]
        who = self.ask([*self.kubectl(self.given["kubelet_kubeconfig"]), "auth", "whoami", "--output=json"])
        name = who.get("status", {}).get("userInfo", {}).get("username", "")
        loaded = self.ask(seen["configz_command"])
        try:
            loaded = loaded if "error" in loaded else configuration_of(json.dumps(loaded))
        except (ValueError, AttributeError) as e:
            loaded = {"error": str(e)}
        return {
            "cluster": self.ask([*ask, "--output=json"]),
            "node": name[len("system:node:") :] if name.startswith("system:node:") else "",
            "node_error": who.get("error", ""),
            "configz": loaded,
        }


def main():
    module = AnsibleModule(
        argument_spec={
            "folder": {"type": "path", "required": True},
            "target": {"type": "path", "required": True},
            "unit": {"type": "str", "default": ""},
            "kubeconfig": {"type": "path", "required": True},
            "kubelet_kubeconfig": {"type": "path", "required": True},
            "api": {"type": "bool", "default": True},
            "settle": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    settled = settle(module.params["folder"]) if module.params["settle"] and not module.check_mode else None
    if settled and settled["outcome"] == "busy":
        module.fail_json(msg=settled["cause"])
    look = Look(module.params)
    seen = look.of_host()
    seen.update(look.of_api(seen))
    module.exit_json(changed=bool(settled and settled["changed"]), settled=settled, seen=seen)


if __name__ == "__main__":
    main()
