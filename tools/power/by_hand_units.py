"""Faults of what systemd runs: the agent's unit, the units that renew the token, the programs that change a host."""

from tools.power.by_hand import ByHand

_NODE, _EXTENDER = "playbooks/roles/readygate_node", "playbooks/roles/readygate_extender"
_UNIT, _SWITCH = f"{_NODE}/templates/readygate-node.service.j2", f"{_NODE}/files/switch.sh"
_SERVICE = (
    "tests/playbooks/test_node_unit.py",
    "tests/playbooks/test_node_plugin.py",
    "tests/playbooks/test_node_plugin_switch.py",
    "tests/hosts/test_hosts_node_plugin.py",
    "tests/hosts/service",
)
_STATIC = (
    "tests/playbooks/test_token_units.py",
    "tests/playbooks/test_forms.py",
    "tests/playbooks/host/test_static_patience.py",
    "tests/scripted/test_static_pod.py",
    "tests/scripted/test_static_credentials.py",
    "tests/scripted/test_static_token.py",
    "tests/hosts/deployment/test_static.py",
)


def _unit(old: str, new: str, what: str) -> ByHand:
    return ByHand("units", _UNIT, old, new, what, _SERVICE)


def _switch(old: str, new: str, what: str) -> ByHand:
    return ByHand("units", _SWITCH, old, new, what, _SERVICE)


def _token(file: str, old: str, new: str, what: str) -> ByHand:
    return ByHand("units", f"{_EXTENDER}/{file}", old, new, what, _STATIC)


UNITS: tuple[ByHand, ...] = (
    _unit("Restart=always", "Restart=on-failure", "an agent that ends with code 0 stays away"),
    _unit("WatchdogSec=30", "WatchdogSec=0", "an agent that hangs is not restarted"),
    _unit("Type=notify", "Type=simple", "a version that never runs counts as started"),
    _unit("StartLimitIntervalSec=0", "StartLimitIntervalSec=60", "systemd gives up an agent that ends often"),
    _unit("RuntimeDirectoryPreserve=restart", "RuntimeDirectoryPreserve=no", "the state is lost with each restart"),
    _unit("OOMPolicy=continue", "OOMPolicy=stop", "a check that eats memory ends the agent"),
    _unit(
        "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK",
        "RestrictAddressFamilies=AF_INET AF_INET6",
        "the agent can use neither Unix sockets nor netlink",
    ),
    _unit("WantedBy=multi-user.target", "WantedBy=graphical.target", "no agent after a boot"),
    _unit("BindReadOnlyPaths=-/etc/hosts", "BindReadOnlyPaths=-/etc/hostname", "names of /etc/hosts are unknown"),
    _switch("        healthy*) return 0 ;;", "        *) return 0 ;;", "each version counts as healthy at once"),
    _switch('        rm -f "$unit"\n', "", "a first version that fails stays in place"),
    _switch("flock 9 #", ": #", "two plays may change one host at the same time"),
    _switch("-e 's/^Type=.*/Type=oneshot/' ", "", "the trial never ends"),
    _switch("&& well_in_time && stays_calm", "&& well_in_time", "a version that dies after a second is proven"),
    _token("templates/token.timer.j2", "OnUnitInactiveSec=60", "OnUnitInactiveSec=60min", "a renewal is an hour late"),
    _token("templates/token.timer.j2", "OnBootSec=30", "OnCalendar=monthly", "no renewal after a boot"),
    _token(
        "templates/token.service.j2",
        "ReadWritePaths={{ __readygate_extender_folder }}/credentials\n",
        "",
        "the token cannot be written",
    ),
    _token("templates/token.service.j2", "CapabilityBoundingSet=CAP_CHOWN ", "CapabilityBoundingSet=", "no chown"),
    _token("templates/static-pod.yaml.j2", "priority: 2000001000", "priority: 0", "the kubelet may preempt it"),
    _token(
        "templates/static-pod.yaml.j2",
        "      mountPath: {{ __readygate_extender_shared_folder }}\n      readOnly: true",
        "      mountPath: {{ __readygate_extender_shared_folder }}-other\n      readOnly: true",
        "the status API has no feed",
    ),
)
