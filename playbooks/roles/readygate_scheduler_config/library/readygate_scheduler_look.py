#!/usr/bin/python
"""Looks at kube-scheduler of this host, at readygate's folder and at kubeadm's ConfigMap; changes nothing.

With `settle` it first ends what an interrupted change has left.
"""

import json
import os
import re
import shutil

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.readygate_scheduler.command import settle
from ansible.module_utils.readygate_scheduler.hands import Hands, noted, read
from ansible.module_utils.readygate_scheduler.jobs import digest
from ansible.module_utils.readygate_scheduler.proof import configuration_of
from ansible.module_utils.readygate_scheduler.scheduler import Scheduler, address_of

DOCUMENTATION = r"""
module: readygate_scheduler_look
short_description: Looks at kube-scheduler of this host
options:
  folder: {type: path, required: true, description: readygate's folder}
  target: {type: path, required: true, description: the scheduler's manifest, or the drop-in of its unit}
  unit: {type: str, default: "", description: the scheduler's unit, where systemd runs it}
  kubeconfig: {type: path, required: true, description: how the API server and /configz are asked}
  kubelet_kubeconfig: {type: path, required: true, description: tells this host's node name}
  api: {type: bool, default: true, description: ask the API server too}
  settle: {type: bool, default: false, description: end first what an interrupted change has left}
author: The readygate authors
"""


def text(path):
    found = read(path)
    return None if found is None else found.decode("utf-8", "replace")


class Look:
    """What is seen; `given` are the module's parameters."""

    def __init__(self, given):
        self.given = given
        self.hands = Hands()
        self.scheduler = Scheduler()

    def ask(self, argv):
        """What a command says as JSON, or {"error": ...}."""
        code, said = self.hands.run(argv, 15.0)
        if code == 0:
            try:
                return json.loads(said)
            except ValueError:
                pass
        return {"error": " ".join(said.split())[-400:] or "%s failed with code %d" % (argv[0], code)}

    @staticmethod
    def kubectl(kubeconfig):
        # By its full name: the program that systemd runs has another PATH.
        return [shutil.which("kubectl") or "kubectl", "--kubeconfig", kubeconfig, "--request-timeout=10s"]

    def process(self, target):
        """The one that the manifest describes, where several schedulers run; None for none."""
        running = sorted(self.scheduler.processes().items())
        told = [(who, argv) for who, argv in running if all(one in (target or "") for one in argv[1:])]
        return (told or running or [None])[-1]

    def configs(self, process, target, before):
        """Content by path of the files that --config names, as the process sees them, else as the host does: of the
        process, and of the manifest, which may be of one that does not run yet, or no more."""
        argv = " ".join([*(process[1] if process else []), target or ""])
        paths = set(re.findall(r"--config[= ]([^\s\"']+)", argv)) | {(before or {}).get("config", "")}
        root = "/proc/%d/root" % process[0][0] if process else ""
        return {path: text(root + path) or text(path) for path in paths if path}

    def of_host(self):
        folder, target = self.given["folder"], text(self.given["target"])
        before = noted(os.path.join(folder, "original", "noted.json")) or None
        process = self.process(target)
        told = ["kube-scheduler", *re.findall(r"^\s*- (--\S+)$", target or "", re.MULTILINE)]
        argv = process[1] if process else told
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
            seen["unit_text"] = self.hands.run(["systemctl", "cat", self.given["unit"]])[1]
        seen["kubectl"] = self.kubectl(self.given["kubeconfig"])
        ask = ["get", "--raw=/configz", "--server=" + url, "--insecure-skip-tls-verify"]
        seen["configz_command"] = [*seen["kubectl"], *ask]
        return seen

    def of_api(self, seen):
        if not self.given["api"]:
            return {
                "cluster": {"error": "it was not asked for"},
                "node": "",
                "configz": {"error": "it was not asked for"},
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
