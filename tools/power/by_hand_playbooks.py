"""Faults of the playbooks: plays, tasks, and the programs that run on hosts."""

from tools.power.by_hand import ByHand

_SCHEDULER, _OBJECTS = "playbooks/roles/readygate_scheduler_config", "playbooks/roles/readygate_objects"
_EXTENDER, _NODE = "playbooks/roles/readygate_extender", "playbooks/roles/readygate_node"
_CHANGE = f"{_SCHEDULER}/module_utils/readygate_scheduler/change.py"
_LEASE = f"{_OBJECTS}/module_utils/readygate_objects/lock.py"
_ROLLOUT = f"{_OBJECTS}/module_utils/readygate_objects/rollout.py"
_OF_SCHEDULER = (
    "tests/playbooks/host",
    "tests/playbooks/test_scheduler_config.py",
    "tests/playbooks/test_scheduler_host.py",
    "tests/playbooks/test_scheduler_leaves.py",
    "tests/playbooks/test_control_planes.py",
    "tests/playbooks/test_closures.py",
    "tests/playbooks/test_forms.py",
    "tests/hosts/deployment/test_deploy.py",
    "tests/hosts/deployment/test_undo.py",
)
_OF_ROLLOUT = (
    "tests/playbooks/test_rollout.py",
    "tests/playbooks/test_run_lock.py",
    "tests/playbooks/test_order.py",
    "tests/plane/test_playbooks_rollout.py",
    "tests/hosts/deployment/test_rollouts.py",
)
_OF_EXTENDER = (
    "tests/playbooks/test_forms.py",
    "tests/playbooks/test_forms_settle.py",
    "tests/playbooks/test_credentials_stay.py",
    "tests/playbooks/test_control_planes.py",
    "tests/playbooks/test_roles.py",
    "tests/hosts/deployment/test_static.py",
)
_OF_NODE = (
    "tests/playbooks/test_node_plugin.py",
    "tests/playbooks/test_node_plugin_hosts.py",
    "tests/playbooks/test_node_plugin_look.py",
    "tests/playbooks/test_node_unit.py",
    "tests/hosts/test_hosts_node_plugin.py",
)


def _row(file: str, old: str, new: str, what: str, tests: tuple[str, ...]) -> ByHand:
    return ByHand("playbooks", file, old, new, what, tests)


PLAYBOOKS: tuple[ByHand, ...] = (
    _row(
        "playbooks/site.yml",
        "# Not if this host has taken the lock within the last minute: the lock holds for ten minutes.\n"
        "      when: &not_begun __readygate_objects_begun.at is not defined or",
        "# Of this host.\n      when: &not_begun __readygate_objects_begun.at is not defined and",
        "the second play of a run does not keep other runs out",
        (*_OF_ROLLOUT, "tests/playbooks/test_order.py", "tests/playbooks/test_control_planes.py"),
    ),
    _row(
        "playbooks/site.yml",
        'hosts: "~^kube_scheduler_(follows|leads)$"',
        'hosts: "~^kube_scheduler_(follows)$"',
        "the scheduler that leads is never registered",
        _OF_SCHEDULER,
    ),
    _row(
        "playbooks/detach.yml",
        "        tasks_from: detach",
        "        tasks_from: check",
        "the emergency exit takes nothing out",
        ("tests/playbooks", "tests/hosts/deployment/test_undo_operator.py"),
    ),
    _row(
        f"{_SCHEDULER}/tasks/main.yml",
        "      when: not __readygate_scheduler_config_registered\n",
        "      when: __readygate_scheduler_config_registered\n",
        "an extender that would close too many nodes is registered",
        _OF_SCHEDULER,
    ),
    _row(
        f"{_SCHEDULER}/tasks/register.yml",
        "{'resourceVersion': __readygate_scheduler_config_look.seen.cluster.metadata.resourceVersion}",
        "{}",
        "a concurrent write to kubeadm's ConfigMap is lost",
        _OF_SCHEDULER,
    ),
    _row(
        f"{_SCHEDULER}/tasks/detach.yml",
        "    readygate_scheduler_config_keep: true\n",
        "    readygate_scheduler_config_keep: false\n",
        "without an API server the emergency exit is put back",
        _OF_SCHEDULER,
    ),
    _row(
        f"{_SCHEDULER}/defaults/main.yml",
        "readygate_scheduler_config_mode: protect",
        "readygate_scheduler_config_mode: enforce",
        "a dead extender stops scheduling",
        _OF_SCHEDULER,
    ),
    _row(
        f"{_SCHEDULER}/defaults/main.yml",
        "readygate_scheduler_config_http_timeout: 1s",
        "readygate_scheduler_config_http_timeout: 30s",
        "a hung extender costs 30 s for every pod",
        _OF_SCHEDULER,
    ),
    _row(
        _CHANGE,
        "            return self._back(job, str(e))\n        return self._settle",
        "            return self._confirm(job, str(e))\n        return self._settle",
        "a change that failed in the middle is confirmed",
        _OF_SCHEDULER,
    ),
    _row(_CHANGE, "            self.dead_man.arm()\n", "", "no timer ends an interrupted change", _OF_SCHEDULER),
    _row(
        _CHANGE,
        '        if digest(read(job["target"])) != job["expected"]:\n            raise',
        '        if digest(read(job["target"])) == b"":\n            raise',
        "a manifest that was changed in the meantime is overwritten",
        _OF_SCHEDULER,
    ),
    _row(
        _CHANGE,
        "            if all(self.scheduler.ended(who) for who in old):\n",
        "            if any(self.scheduler.ended(who) for who in old):\n",
        "the Lease of a scheduler that still runs is given up",
        _OF_SCHEDULER,
    ),
    _row(
        _CHANGE,
        "return self._settle(job, max(GRACE_S,",
        "return self._settle(job, min(GRACE_S,",
        "an interrupted change has 5 s to prove itself",
        _OF_SCHEDULER,
    ),
    _row(
        _LEASE,
        "wall - renewed(lease) > silent_s(lease)",
        "wall - renewed(lease) < silent_s(lease)",
        "a run takes over a lock that is still renewed",
        _OF_ROLLOUT,
    ),
    _row(
        _LEASE,
        'spec.get("acquireTime", "") if is_own else stamp(wall)',
        "stamp(wall)",
        "each renewal looks like a new run",
        _OF_ROLLOUT,
    ),
    _row(
        _ROLLOUT,
        "if (behind and len(failing) >= batch) or",
        "if (behind and len(failing) > batch) or",
        "a broken version stops after two batches",
        _OF_ROLLOUT,
    ),
    _row(
        _ROLLOUT,
        "excused = nodes & (seen.dead | set(",
        "excused = nodes & (seen.dead & set(",
        "a dead node holds a roll-out up",
        _OF_ROLLOUT,
    ),
    _row(
        _ROLLOUT,
        '    older = sorted(revisions, key=lambda each: each["revision"])[:-1]',
        '    older = sorted(revisions, key=lambda each: each["revision"])',
        "a roll-out is put back to the broken version",
        _OF_ROLLOUT,
    ),
    _row(
        f"{_EXTENDER}/tasks/static.yml",
        '    mode: "0640"\n',
        '    mode: "0644"\n',
        "every user of the host reads the configuration",
        _OF_EXTENDER,
    ),
    _row(
        f"{_EXTENDER}/tasks/static.yml",
        "    enabled: true\n    state: started",
        "    enabled: false\n    state: started",
        "the token is not renewed after a boot",
        (*_OF_EXTENDER, "tests/playbooks/test_token_units.py"),
    ),
    _row(
        f"{_EXTENDER}/tasks/static.yml",
        "  when: __readygate_extender_compared.rc != 0 or __readygate_extender_pending.stat.exists",
        "  when: __readygate_extender_compared.rc != 0",
        "an interrupted change is never ended",
        _OF_EXTENDER,
    ),
    _row(
        f"{_EXTENDER}/tasks/preflight.yml",
        "    that: __readygate_extender_nodes.stdout | length > 0\n",
        "    that: __readygate_extender_nodes.stdout | length >= 0\n",
        "an extender that no node takes is deployed and registered",
        _OF_EXTENDER,
    ),
    _row(
        f"{_NODE}/tasks/install.yml",
        '        content: "{{ __readygate_node_configuration }}"\n        mode: "0600"',
        '        content: "{{ __readygate_node_configuration }}"\n        mode: "0644"',
        "every user of the host reads the agent's configuration",
        _OF_NODE,
    ),
    _row(
        f"{_NODE}/vars/main.yml",
        "  fast: {period: 2, threshold: 2}",
        "  fast: {period: 20, threshold: 2}",
        "the fast profile is slow",
        _OF_NODE,
    ),
    _row(
        f"{_NODE}/vars/main.yml",
        "> readygate_node_max_failed_percent | int * __readygate_node_tried | int }}",
        ">= readygate_node_max_failed_percent | int * __readygate_node_tried | int }}",
        "one host fewer may fail than the setting allows",
        _OF_NODE,
    ),
)
