#!/usr/bin/python
"""Lets kubeadm render the scheduler's manifest for several configurations. Changes nothing."""

import os
import shutil
import tempfile

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
module: readygate_scheduler_render
short_description: Lets kubeadm render kube-scheduler's manifest
options:
  renderings: {type: dict, required: true, description: configuration files of kubeadm, by name}
  patches: {type: str, default: "", description: folder of kubeadm's patches}
  environment: {type: dict, default: {}, description: of kubeadm; it copies proxy variables into the manifest}
author: The readygate authors
"""


def render(module, configuration, folder):
    given = module.params
    command = ["kubeadm", "init", "phase", "control-plane", "scheduler", "--dry-run", "--config=/dev/stdin"]
    command += ["--patches=" + given["patches"]] if given["patches"] else []
    environ = {key: str(value) for key, value in given["environment"].items()}
    environ["KUBEADM_INIT_DRYRUN_DIR"] = folder
    code, out, err = module.run_command(command, data=configuration, environ_update=environ, handle_exceptions=False)
    if code != 0:
        output = " / ".join((err or out).strip().splitlines()[-3:])[-900:]
        module.fail_json(msg="kubeadm cannot render the scheduler's manifest: " + output)
    with open(os.path.join(folder, "kube-scheduler.yaml"), encoding="utf-8") as file:
        return file.read()


def main():
    module = AnsibleModule(
        argument_spec={
            "renderings": {"type": "dict", "required": True},
            "patches": {"type": "str", "default": ""},
            "environment": {"type": "dict", "default": {}},
        },
        supports_check_mode=True,
    )
    # kubeadm copies these into the manifest. Variables that the host got after kubeadm init would be new there.
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        del os.environ[name]
    rendered = {}
    for name, configuration in sorted(module.params["renderings"].items()):
        folder = tempfile.mkdtemp(prefix="readygate-")
        try:
            rendered[name] = render(module, configuration, folder)
        except OSError as e:
            module.fail_json(msg="kubeadm cannot be run; set its folder as readygate_bin_dir: %s" % e)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    module.exit_json(changed=False, manifests=rendered)


if __name__ == "__main__":
    main()
