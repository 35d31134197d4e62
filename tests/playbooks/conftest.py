"""What the modules of the roles are made of is imported as on a host: Ansible puts it below its own utilities."""

from tests.playbooks.modules import know_what_they_share

know_what_they_share()
