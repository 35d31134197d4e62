"""Ansible deploys readygate to the hosts over SSH; faults are made on a worker; all of it is taken off again.

Read in this order: readme.py (runs the README's commands), playbook.py (runs Ansible with other settings), api.py (the
admin's API client), probing.py (pods that try to get onto a node, and what became of them), recorder.py (runs on a
host: notes the scheduler's requests), conftest.py, test_*.py.
"""
