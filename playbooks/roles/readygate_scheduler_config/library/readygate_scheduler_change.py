#!/usr/bin/python
"""Puts readygate's program on the host, and lets systemd run a change of kube-scheduler by it, if there is any.

The change continues even if Ansible, SSH or this module ends.
"""

import os
import pkgutil

from ansible.module_utils import readygate_scheduler
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.readygate_scheduler import __main__ as entry  # noqa: F401 - so that Ansible brings it along
from ansible.module_utils.readygate_scheduler.command import change_of, start
from ansible.module_utils.readygate_scheduler.host_io import HostIO, read

DOCUMENTATION = r"""
module: readygate_scheduler_change
short_description: Changes kube-scheduler of this host; a change that fails is undone
options:
  folder: {type: path, required: true, description: readygate's folder}
  job: {type: dict, required: true, description: the program's job}
author: The readygate authors
"""
NAMES = [
    "__init__",
    "__main__",
    "change",
    "command",
    "dead_man",
    "errors",
    "host_io",
    "jobs",
    "kubelet",
    "lease",
    "proof",
    "scheduler",
]


def install(io, folder, change):
    """Whether a file of the program is missing; with `change` it is written."""
    where = os.path.join(folder, "bin", "readygate_scheduler")
    content = {name + ".py": pkgutil.get_data(readygate_scheduler.__name__, name + ".py") for name in NAMES}
    missing = [name for name in sorted(content) if read(os.path.join(where, name)) != content[name]]
    for name in missing if change else []:
        io.make(where)
        io.write(os.path.join(where, name), content[name], 0o644)
    return bool(missing)


def main():
    module = AnsibleModule(
        argument_spec={
            "folder": {"type": "path", "required": True},
            "job": {"type": "dict", "required": True},
        },
        supports_check_mode=True,
    )
    folder, job = module.params["folder"], module.params["job"]
    io = HostIO()
    before = (read(job["target"]) or b"").decode("utf-8", "replace")
    result = {
        "diff": {
            "before": before,
            "after": job["wanted"] or "",
            "before_header": job["target"],
            "after_header": "wanted",
        },
        "verdict": {"outcome": "unchanged", "changed": False, "absent_s": 0.0},
    }
    in_place = change_of(folder, io).is_in_place(job)
    if in_place or module.check_mode:
        missing = install(io, folder, change=not module.check_mode)
        module.exit_json(changed=missing or not in_place, **result)
    if not os.path.isdir(folder):
        io.make(folder)
    os.chmod(folder, 0o755)  # noqa: S103 - the scheduler may run as a user of its own
    install(io, folder, change=True)
    result["verdict"] = verdict = start(folder, job)
    if verdict["outcome"] == "confirmed":
        module.exit_json(changed=True, **result)
    module.fail_json(msg=verdict["cause"], changed=verdict["changed"], **result)


if __name__ == "__main__":
    main()
