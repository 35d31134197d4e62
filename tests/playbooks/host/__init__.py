"""The program that changes kube-scheduler on its host, against folders and a scheduler of the tests' own."""

import sys
from pathlib import Path

ROLE = Path(__file__).parents[3] / "playbooks" / "roles" / "readygate_scheduler_config"
PROGRAM = ROLE / "module_utils" / "readygate_scheduler"
sys.path.insert(0, str(PROGRAM.parent))  # as on the host: a package that stands alone
