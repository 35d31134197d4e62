#!/usr/bin/python
"""Reads which nodes are control planes, and on which host the leading scheduler is. Changes nothing.

The plugin of the same name repeats it while there are fewer nodes than wanted.
"""

import re
import shutil

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.readygate_scheduler.host_io import HostIO

DOCUMENTATION = r"""
module: readygate_scheduler_controls
short_description: Returns the control plane nodes, and the host of the leading scheduler
options:
  kubeconfig: {type: path, required: true, description: kubeconfig for the API server}
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
    io = HostIO()
    ask = [*kubectl, "nodes", "--selector=node-role.kubernetes.io/control-plane", "--output=name"]
    code, output = io.run(ask, LIMIT_S)
    if code != 0:
        module.fail_json(msg="the control plane nodes cannot be listed: " + " ".join(output.split())[-500:])
    nodes = [line[len("node/") :] for line in output.split()]
    # No scheduler has ever led, or the lock is no Lease: then any order is good.
    code, output = io.run([*kubectl, "lease", "kube-scheduler", "--output=jsonpath={.spec.holderIdentity}"], LIMIT_S)
    module.exit_json(changed=False, nodes=nodes, leader=re.sub("_[^_]*$", "", output.strip()) if code == 0 else "")


if __name__ == "__main__":
    main()
