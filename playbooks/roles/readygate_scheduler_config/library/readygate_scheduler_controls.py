#!/usr/bin/python
"""Asks the API server which nodes are control planes, and on which host the scheduler that leads is. Changes nothing.

The plugin of the same name asks again while there are fewer than are wanted.
"""

import re
import shutil

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.readygate_scheduler.hands import Hands

DOCUMENTATION = r"""
module: readygate_scheduler_controls
short_description: Tells the control plane nodes, and who leads
options:
  kubeconfig: {type: path, required: true, description: how the API server is asked}
author: The readygate authors
"""
LIMIT_S = 35.0


def main():
    module = AnsibleModule(
        argument_spec={"kubeconfig": {"type": "path", "required": True}},
        supports_check_mode=True,
    )
    kubectl = [shutil.which("kubectl") or "kubectl", "--kubeconfig", module.params["kubeconfig"]]
    kubectl += ["--namespace=kube-system", "get"]
    hands = Hands()
    ask = [*kubectl, "nodes", "--selector=node-role.kubernetes.io/control-plane", "--output=name"]
    code, said = hands.run(ask, LIMIT_S)
    if code != 0:
        module.fail_json(msg="the control plane nodes cannot be asked for: " + " ".join(said.split())[-500:])
    nodes = [line[len("node/") :] for line in said.split()]
    # No scheduler has ever led, or locks are kept elsewhere: then any order will do.
    code, said = hands.run([*kubectl, "lease", "kube-scheduler", "--output=jsonpath={.spec.holderIdentity}"], LIMIT_S)
    module.exit_json(changed=False, nodes=nodes, leader=re.sub("_[^_]*$", "", said.strip()) if code == 0 else "")


if __name__ == "__main__":
    main()
