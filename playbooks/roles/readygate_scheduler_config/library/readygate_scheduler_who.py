#!/usr/bin/python
"""Reads the name of this host's Node from the API server, as its kubelet, and the host's own name. Changes nothing.

The two may differ (--hostname-override, clouds).
"""

import json
import os
import shutil

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.readygate_scheduler.host_io import HostIO

DOCUMENTATION = r"""
module: readygate_scheduler_who
short_description: Returns the name of this host's Node, and the host's own name
options:
  kubelet_kubeconfig: {type: path, required: true, description: the kubelet's kubeconfig}
  called: {type: str, required: true, description: the host's name in the inventory}
author: The readygate authors
"""
NODE = "system:node:"
LIMIT_S = 35.0


def name_of(io, kubeconfig):
    """(the Node's name, "") or ("", what was returned instead)."""
    kubectl = shutil.which("kubectl") or "kubectl"
    code, output = io.run([kubectl, "--kubeconfig", kubeconfig, "auth", "whoami", "--output=json"], LIMIT_S)
    try:
        user = json.loads(output)["status"]["userInfo"]["username"]
    except (ValueError, LookupError, TypeError):
        user = ""
    if code == 0 and user.startswith(NODE):
        return user[len(NODE) :], ""
    return "", " ".join((user or output).split())[-500:]


def main():
    module = AnsibleModule(
        argument_spec={
            "kubelet_kubeconfig": {"type": "path", "required": True},
            "called": {"type": "str", "required": True},
        },
        supports_check_mode=True,
    )
    called, kubeconfig = module.params["called"], module.params["kubelet_kubeconfig"]
    node, instead = name_of(HostIO(), kubeconfig)
    if not node and not os.path.exists(kubeconfig) and "no such file" in instead.lower():
        module.fail_json(
            msg="%s has no %s, which gives the name of the host's Node: set the kubelet's kubeconfig as"
            " readygate_scheduler_config_kubelet_kubeconfig if it is elsewhere. K3s, RKE2, Talos and clouds run"
            " kube-scheduler in ways that these playbooks do not change; docs/registration.md lists what to add by hand"
            % (called, kubeconfig)
        )
    if not node:
        module.fail_json(
            msg="%s is not a node of the cluster: the API server answers for %s: %s. Run prepare-control-plane.yml for"
            " a host that will join; remove any other from the group control_plane" % (called, kubeconfig, instead)
        )
    # As kube-scheduler names itself in its Lease (options.go).
    module.exit_json(changed=False, node=node, host=HostIO().run(["uname", "-n"])[1].strip())


if __name__ == "__main__":
    main()
