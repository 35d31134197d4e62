"""What the modules of the roles are made of is imported as on a host: Ansible puts it below its own utilities."""

import sys
from importlib import import_module

from tests.playbooks.rendering import ROLES

for role in ("readygate_objects", "readygate_scheduler_config"):
    sys.path.append(str(ROLES / role / "module_utils"))
sys.modules.setdefault("ansible.module_utils.readygate_objects", import_module("readygate_objects"))
