"""The line of the configuration file that a key is on."""

from agent.wire.yaml_lines import line_of
from tools.kit.cases import cases

TEXT = b"""# agent.yaml
mode: pod
checks:
- name: a
  cni: {}
- {name: b, cni: {confDir: /x}}
"""


@cases(
    "key, line",
    ("a key", "mode", 2),
    ("of an entry", "checks[0].cni", 5),
    ("inside of a line", "checks[1].cni.confDir", 6),
    ("an entry", "checks[1]", 6),
    ("one that is missing: what it is to be in", "checks[0].cni.binDirs", 5),
    ("an entry that there is not", "checks[7]", 3),
    ("no key of the file", "profile.name", None),
    ("words", "a key that is not text, allowed", None),
)
def test_a_key_is_on_a_line(key: str, line: int | None) -> None:
    assert line == line_of(TEXT, key)


def test_an_empty_file_has_no_line() -> None:
    assert line_of(b"", "mode") is None
