"""What people are shown of the checks."""

import json

import msgspec
import pytest

from agent import settings
from agent.checks.catalogue import KINDS, check_spec, rights_of
from agent.checks.health import node_health
from agent.checks.pages import check_text, checks_json, checks_table, kind_text
from agent.checks.rights import Rights
from agent.checks.state import Shown
from tests.agent.checks.builders import check

SHOWN = [
    Shown("cni", check("p", output="10-a.conf: bridge"), 0.0014),
    Shown("exec", check("f", "disk", warn=True, output="exit code 1")),
    Shown("exec", check("w", "addresses", warn=True, output="few are free"), 1.5),
    Shown("gpu", check("n", "gpu", warn=True, output="there is none"), 0.25),
]


def test_the_table_ends_with_what_follows() -> None:
    health = node_health([one.status for one in SHOWN])
    assert checks_table(health, SHOWN).splitlines() == [
        "CHECK      KIND  STATE           SECONDS  SAYS",
        "cni        cni   passed          0.001    10-a.conf: bridge",
        "disk       exec  failed (warn)   -        exit code 1",
        "addresses  exec  warned          1.500    few are free",
        "gpu        gpu   not applicable  0.250    there is none",
        "node: healthy (ChecksPassed)",
    ]


def test_the_json_has_a_member_for_each_fact() -> None:
    document = json.loads(checks_json(node_health([check("f")]), [Shown("cni", check("f", output="gone"), 0.25)]))
    assert document == {
        "healthy": False,
        "reason": "CheckFailed",
        "checks": [
            {
                "name": "cni",
                "kind": "cni",
                "severity": "gate",
                "state": "failed",
                "kept": False,
                "since": "1970-01-12T13:46:40Z",
                "seconds": 0.25,
                "output": "gone",
            }
        ],
    }


def configured(**given: object) -> settings.Check:
    return msgspec.convert({"name": "network", **given}, settings.Check)


def test_a_check_is_told_about_with_its_own_values() -> None:
    given = configured(cni={"confDir": "/host/net.d"}, periodSeconds=2, failureThreshold=2, timeoutSeconds=3)
    text = check_text(given, check_spec(given), KINDS["cni"])
    assert text.startswith(f"network, of kind cni: {KINDS['cni'].doc}\n\nTakes the configuration as")
    assert '  confDir: "/host/net.d"\n  binDirs: ["/opt/cni/bin"]\n' in text
    found = "2 failing runs in a row, 10 s after the fault at the latest (7 s where a run makes one call)."
    assert f"What has passed closes the node after {found} It takes" in text
    assert text.endswith("Needs reads of the host: /host/net.d, /opt/cni/bin; root.\n")


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_has_something_to_say(kind: str) -> None:
    text = kind_text(kind, KINDS[kind])
    assert text.startswith(f"{kind}: {KINDS[kind].doc}\n\n")
    assert '"""' not in text
    assert len(text.splitlines()) > 4


def test_rights_name_the_paths_of_the_settings() -> None:
    assert Rights(reads=("/a", "/b"), root=True) == rights_of(
        configured(cni={"confDir": "/a", "binDirs": ["/b", "/a"]})
    )
    assert Rights(reads=("/x", "/p")) == Rights(reads=("/x", "one", "none")).resolved({"one": "/p", "none": None}.get)


def test_rights_in_words() -> None:
    rights = Rights(("/a",), ("/b",), True, True, True, ("/dev/kmsg",), ("CAP_SYSLOG",), True)
    assert rights.lines == [
        "reads of the host: /a",
        "writes on the host: /b",
        "devices: /dev/kmsg",
        "the host's network",
        "the host's processes",
        "the call adjtimex, without CAP_SYS_TIME",
        "capabilities: CAP_SYSLOG",
        "root",
    ]
    assert Rights().lines == []
