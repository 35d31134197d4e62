#!/usr/bin/python
"""Who this host is: to the API server, asked as its kubelet, and by its own name. Changes nothing.

Its own host name need not be the Node's (--hostname-override, clouds).
"""

import json
import os
import shutil

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.readygate_scheduler.hands import Hands

DOCUMENTATION = r"""
module: readygate_scheduler_who
short_description: Tells the name of this host's Node, and the host's own
options:
  kubelet_kubeconfig: {type: path, required: true, description: with which the kubelet speaks to the API server}
  called: {type: str, required: true, description: what the inventory calls the host}
author: The readygate authors
"""
NODE = "system:node:"
LIMIT_S = 35.0


def name_of(hands, kubeconfig):
    """(the Node's name, "") or ("", what was said instead)."""
    kubectl = shutil.which("kubectl") or "kubectl"
    code, said = hands.run([kubectl, "--kubeconfig", kubeconfig, "auth", "whoami", "--output=json"], LIMIT_S)
    try:
        user = json.loads(said)["status"]["userInfo"]["username"]
    except (ValueError, LookupError, TypeError):
        user = ""
    if code == 0 and user.startswith(NODE):
        return user[len(NODE) :], ""
    return "", " ".join((user or said).split())[-500:]


def main():
    module = AnsibleModule(
        argument_spec={
            "kubelet_kubeconfig": {"type": "path", "required": True},
            "called": {"type": "str", "required": True},
        },
        supports_check_mode=True,
    )
    called, kubeconfig = module.params["called"], module.params["kubelet_kubeconfig"]
    node, instead = name_of(Hands(), kubeconfig)
    if not node and not os.path.exists(kubeconfig) and "no such file" in instead.lower():
        module.fail_json(
            msg="%s has no %s, by which the API server says which node a host is: name the kubelet's kubeconfig in"
            " readygate_scheduler_config_kubelet_kubeconfig where it lies elsewhere. K3s, RKE2, Talos and clouds run"
            " kube-scheduler in ways that these playbooks do not change; docs/registration.md says what to add by hand"
            % (called, kubeconfig)
        )
    if not node:
        module.fail_json(
            msg="%s is not a node of the cluster, as the API server sees %s: %s. A host that is to join is prepared by"
            " prepare-control-plane.yml; take any other out of the group control_plane" % (called, kubeconfig, instead)
        )
    # As kube-scheduler names itself in its Lease (options.go).
    module.exit_json(changed=False, node=node, host=Hands().run(["uname", "-n"])[1].strip())


if __name__ == "__main__":
    main()
