"""One dialect of errors for every configuration file: `key: what is wrong, allowed: what`."""

import re
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta, field

from component import settings
from component.settings import Section, SettingsError

Port = Annotated[int, Meta(ge=1, le=65535, description="a port, 1 to 65535")]
Name = Annotated[str, Meta(pattern="^[a-z]+$", max_length=5, description="a to z")]


class Target(Section, frozen=True):
    port: Port
    scheme: Literal["HTTP", "HTTPS"] = "HTTP"
    host_names: Annotated[tuple[Name, ...], Meta(min_length=1)] = ("a",)


class Plain(Section, frozen=True):
    """A section without keys."""


class Check(Section, frozen=True):
    name: Name
    target: Target | None = None
    plain: Plain | None = None

    def __post_init__(self) -> None:
        if self.target and self.plain:
            raise ValueError("plain: there is a target too, allowed: one of target, plain")


class Root(Section, frozen=True):
    mode: Literal["pod", "kubelet"]
    checks: tuple[Check, ...] = ()
    labels: dict[str, Name] = field(default_factory=dict)
    limit_seconds: Annotated[float, Meta(ge=0, description="seconds")] = 1.0
    path: str | None = None
    publish: bool = False

    def __post_init__(self) -> None:
        if self.publish and not self.checks:
            raise ValueError("checks: has 0 entries, allowed: one or more to publish")


ROOT_KEYS = "mode, checks, labels, limitSeconds, path, publish"
TEXT_KEY = "a key that is not text, allowed: text, in quotes if it is a number, yes, no, on, off or null"


def parse(text: bytes | str) -> Root:
    return settings.convert(settings.document(text), Root)


def test_a_file_as_frozen_sections() -> None:
    found = parse("{mode: pod, checks: [{name: a, target: {port: 1}}, {name: b, plain: {}}], labels: {x: y}}")
    assert (Target(port=1), Plain(), {"x": "y"}) == (found.checks[0].target, found.checks[1].plain, found.labels)
    with pytest.raises(AttributeError):
        found.mode = "kubelet"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", "mode: missing, allowed: pod, kubelet", id="an empty file"),
        pytest.param("[]", f"is an empty list, allowed: a mapping with the keys {ROOT_KEYS}", id="a list"),
        pytest.param("text", f'is the text "text", allowed: a mapping with the keys {ROOT_KEYS}', id="a text"),
        pytest.param("mode: pods", 'mode: is the text "pods", allowed: pod, kubelet', id="none of the values"),
        pytest.param("mode:", "mode: is empty, allowed: pod, kubelet", id="no value"),
        pytest.param("mode: off", "mode: is false, allowed: pod, kubelet", id="a text that YAML reads as a flag"),
        pytest.param("mode: 2026-11-21", "mode: is 2026-11-21, allowed: pod, kubelet", id="a date"),
        pytest.param("{mode: pod, modes: 1}", f"modes: unknown key, allowed: {ROOT_KEYS}", id="an unknown key"),
        pytest.param("{mode: pod, checks: {}}", "checks: is an empty mapping, allowed: a list, each a mapping "
                     "with the keys name, target, plain", id="a mapping for a list"),
        pytest.param("{mode: pod, checks: [{}]}", "checks[0].name: missing, allowed: a to z",
                     id="a missing key in a list"),
        pytest.param("{mode: pod, checks: [{name: a}, {name: b, target: {prot: 1}}]}",
                     "checks[1].target.prot: unknown key, allowed: port, scheme, hostNames", id="an unknown key deep"),
        pytest.param("{mode: pod, checks: [{name: a, target: 5}]}", "checks[0].target: is 5, allowed: a mapping with "
                     "the keys port, scheme, hostNames or null", id="no mapping"),
        pytest.param("{mode: pod, checks: [{name: a, target: {port: '80'}}]}",
                     'checks[0].target.port: is the text "80", allowed: a port, 1 to 65535', id="a text for a number"),
        pytest.param("{mode: pod, checks: [{name: a, target: {port: 70000}}]}",
                     "checks[0].target.port: is 70000, allowed: a port, 1 to 65535", id="out of range"),
        pytest.param("{mode: pod, checks: [{name: a, target: {port: 80.0}}]}",
                     "checks[0].target.port: is 80.0, allowed: a port, 1 to 65535", id="no whole number"),
        pytest.param("{mode: pod, checks: [{name: a, target: {port: 1, hostNames: []}}]}",
                     "checks[0].target.hostNames: is an empty list, allowed: a list, each a to z", id="an empty list"),
        pytest.param("{mode: pod, checks: [{name: a, target: {port: 1, hostNames: [a, B]}}]}",
                     'checks[0].target.hostNames[1]: is the text "B", allowed: a to z',
                     id="a text in a list"),
        pytest.param("{mode: pod, checks: [{name: a, plain: {x: 1}}]}", "checks[0].plain.x: unknown key, allowed: ",
                     id="a key where there are none"),
        pytest.param("{mode: pod, checks: [{name: a, plain: {}, target: {port: 1}}]}",
                     "checks[0].plain: there is a target too, allowed: one of target, plain", id="a rule across keys"),
        pytest.param("{mode: pod, publish: true}", "checks: has 0 entries, allowed: one or more to publish",
                     id="a rule across keys of the document"),
        pytest.param("{mode: pod, labels: {a.b/c: X}}", 'labels.a.b/c: is the text "X", allowed: a to z',
                     id="a value of a free mapping"),
        pytest.param("{mode: pod, limitSeconds: .nan}", "limitSeconds: is nan, allowed: seconds", id="not a number"),
        pytest.param("{mode: pod, path: 5}", "path: is 5, allowed: text or null", id="a number for a text"),
        pytest.param("{mode: pod, path: [x]}", "path: is a list, allowed: text or null", id="a list for a text"),
        pytest.param("{mode: pod, publish: 'yes'}", 'publish: is the text "yes", allowed: true or false', id="no flag"),
        pytest.param("mode: " + "p" * 99, f'mode: is the text "{"p" * 64}", allowed: pod, kubelet', id="a long value"),
        pytest.param(r'mode: "p\n\e[31m"', 'mode: is the text "p [31m", allowed: pod, kubelet', id="unprintable text"),
        pytest.param(f"mode: 0x{'f' * 9999}", "mode: is a huge number, allowed: pod, kubelet", id="a huge number"),
    ],
)  # fmt: skip
def test_what_is_wrong_and_what_is_allowed(text: str, expected: str) -> None:
    with pytest.raises(SettingsError) as caught:
        parse(text)
    assert expected.rstrip() == str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("a: [", "line 1, column 5: expected the node content, but found '<stream end>'", id="cut"),
        pytest.param("a: b\n c: d", "line 2, column 3: mapping values are not allowed here", id="wrongly indented"),
        pytest.param("a:\n\t- b", "line 2, column 1: found character '\\t' that cannot start any token", id="a tab"),
        pytest.param("a: 1\n---\nb: 1", "line 2, column 1: but found another document", id="two documents"),
        pytest.param("checks: []\nmode: pod\nchecks: []",
                     "line 3, column 1: the key checks is given twice, allowed: once", id="a key twice"),
        pytest.param("a:\n- b:\n    c: 1\n    'c': 2", "line 4, column 5: the key c is given twice, allowed: once",
                     id="a key twice deep down, in other quotes"),
        pytest.param("1: 2", f"line 1, column 1: {TEXT_KEY}", id="a number as a key"),
        pytest.param("a: {on: 1}", f"line 1, column 5: {TEXT_KEY}", id="a flag as a key"),
        pytest.param("? [a]\n: b", f"line 1, column 3: {TEXT_KEY}", id="a list as a key"),
        pytest.param("a: {<<: {b: 1}}", f"line 1, column 5: {TEXT_KEY}", id="a merge"),
        pytest.param("a: &x 1\nb: *x", "line 2, column 4: an alias, allowed: the value itself", id="an alias"),
        pytest.param("a: &x [*x]", "line 1, column 8: an alias, allowed: the value itself", id="a loop"),
        pytest.param("a: !!python/object:os.system {}",
                     "line 1, column 4: could not determine a constructor for the tag", id="a tag of Python"),
        pytest.param("a: !!timestamp x", "not YAML: ", id="a tag that its value does not fit"),
        pytest.param(r'mode: "\ud800"', "line 1, column 7: mode: half a character, allowed: whole ones",
                     id="half a character where one of some words is allowed"),
        pytest.param('a:\n- "x"\n- "\\uDFFFx"', "line 3, column 3: half a character, allowed: whole ones",
                     id="half a character in a list"),
        pytest.param(r'"a\U0000D800": 1', "line 1, column 1: half a character, allowed: whole ones",
                     id="half a character in a key"),
        pytest.param(r'a: "\ude00\ud83d"', "line 1, column 4: a: half a character, allowed: whole ones",
                     id="two halves the wrong way round"),
        pytest.param("a: 2026-13-45", "not YAML: month must be in 1..12", id="a date that is none"),
        pytest.param("a: " + "9" * 5000, "not YAML: Exceeds the limit", id="a number of 5,000 digits"),
        pytest.param("\x00", "not YAML: unacceptable character #x0000", id="a NUL"),
        pytest.param(b"a: \xff", "not YAML: 'utf-8' codec can't decode byte 0xff in position 3", id="no UTF-8"),
        pytest.param("a: ".encode("utf-16"), "not YAML: 'utf-8' codec", id="UTF-16"),
        pytest.param("a: " + "[" * 100_000, "not YAML: nested too deeply", id="100,000 lists in lists"),
        pytest.param("{a: " * 100_000, "not YAML: nested too deeply", id="100,000 mappings in mappings"),
    ],
)  # fmt: skip
def test_what_is_no_yaml_or_more_than_is_taken_of_it(text: bytes | str, expected: str) -> None:
    with pytest.raises(SettingsError) as caught:
        settings.document(text)
    assert str(caught.value).startswith(expected)
    assert str(caught.value).isprintable()


def test_a_billion_laughs_are_refused_at_the_first_alias() -> None:
    lines = ["a0: &a0 {k: v}", *(f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 10)}]}}" for n in range(1, 30))]
    with pytest.raises(SettingsError, match="line 2, column 15: an alias, allowed: the value itself"):
        settings.document("\n".join(lines))


def test_marks_of_other_systems_are_taken() -> None:
    assert {"a": "\u00f6"} == settings.document(b"\xef\xbb\xbfa: \xc3\xb6\r\n")


def test_the_two_halves_by_which_json_escapes_a_character_are_one() -> None:
    assert {"\U0001f600": "\U0001f680\ufeff"} == settings.document(r'{"\ud83d\ude00": "\ud83d\ude80\ufeff"}')


def test_the_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("x: 1")
    for name, expected in {
        "none.yaml": "cannot be read: No such file or directory, allowed: a file that this user may read",
        ".": "cannot be read: Is a directory, allowed: a file that this user may read",
        "bad.yaml": f"x: unknown key, allowed: {ROOT_KEYS}",
    }.items():
        with pytest.raises(SettingsError) as caught:
            settings.read(tmp_path / name, parse)
        assert f"{tmp_path / name}: {expected}" == str(caught.value)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.dates()
    | st.sampled_from(["pod", "a", "HTTP", 80]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.text(max_size=3) | st.sampled_from(["name", "target", "plain", "port", "hostNames"]), inner),
    max_leaves=8,
)  # fmt: skip
DOCUMENTS = st.fixed_dictionaries(
    {"mode": st.just("pod") | VALUES},
    optional={
        "checks": st.lists(
            st.fixed_dictionaries(
                {"name": st.just("a") | VALUES},
                optional={"target": st.fixed_dictionaries({"port": st.just(1) | VALUES}) | VALUES, "plain": VALUES},
            )
        )
        | VALUES,
        "labels": st.dictionaries(st.text(max_size=3), st.just("a") | VALUES) | VALUES,
        "limitSeconds": VALUES,
        "path": VALUES,
        "publish": VALUES,
    },
)
FORM = re.compile(
    r"(?P<key>[^\n]*?: )?(is [^\n]*|missing|unknown key|there is a target too|has 0 entries), allowed: ?[^\n]*"
)
FOREIGN = re.compile(r"array|object|`|\$|Expected|\bint\b|\bstr\b")


@given(DOCUMENTS | VALUES)
def test_any_document_is_taken_or_refused_with_one_line_of_that_form(document: Any) -> None:
    try:
        settings.convert(document, Root)
        return
    except SettingsError as e:
        line = str(e)
    assert (True, True) == (bool(FORM.fullmatch(line)), line.isprintable())
    assert FOREIGN.search(line.partition(", allowed: ")[2]) is None


@given(st.text(max_size=40) | st.text(st.sampled_from("a:b -[]{},&*!?|>'\"\n\t#%<1.~"), max_size=60))
def test_any_text_is_read_as_yaml_reads_it_or_refused_with_one_line(text: str) -> None:
    line, found = "", None
    try:
        found = settings.document(text)
    except SettingsError as e:
        line = str(e)
    expected = yaml.safe_load(text) if not line else None
    assert repr({} if expected is None and not line else expected) == repr(found)
    assert (True, True) == (line.isprintable(), len(line) <= 1000)
