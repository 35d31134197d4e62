"""The checks that need addresses of the cluster, as docs/checks.md gives them to the service by the inventory."""

from typing import Any

import yaml

from agent import settings as agent_settings
from agent.checks.catalogue import given_kinds
from tests.playbooks.rendering import plain, render, trust
from tests.playbooks.test_node_plugin import HOST, ROLE
from tests.test_docs import YAML_FILES

INVENTORY = {
    "groups": {"control_plane": ["a"], "workers": ["b", "c"]},
    "hostvars": {name: {"ansible_host": f"192.0.2.{place}"} for place, name in enumerate("abc", start=1)},
}


def trusted(value: Any) -> Any:
    """As what comes out of a file of variables: its texts are templates."""
    if isinstance(value, dict):
        return {key: trusted(one) for key, one in value.items()}
    if isinstance(value, list):
        return [trusted(one) for one in value]
    return trust(value) if isinstance(value, str) else value


def test_the_documented_checks_have_the_addresses_of_the_inventory() -> None:
    given = trusted(yaml.safe_load(YAML_FILES["addresses.yml"]))
    value = render(ROLE, HOST | INVENTORY | given)
    assert [] == plain(value("__readygate_node_mistakes"))
    checks = agent_settings.parse(value("__readygate_node_configuration").encode()).checks
    found = {kind: getattr(check, kind) for check in checks for kind in given_kinds(check)}
    assert {"cni", "dns", "servicePath"} == found.keys()
    assert ("10.96.0.10", "") == (found["dns"].service, found["dns"].node_local), "that not all clusters have"
    path = found["servicePath"]
    assert ("10.96.0.1", "") == (path.service, path.proxy), "that not all clusters have"
    assert ("192.0.2.1",) == path.api_servers
    assert ("192.0.2.1", "192.0.2.2", "192.0.2.3") == path.peers
    assert {"gate"} == {check.severity for check in checks}
