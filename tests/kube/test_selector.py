"""Label selectors, against what apimachinery pkg/labels (selector_test.go) says of the same texts."""

import random

import pytest

from kube.selector import Operator, SelectorError, parse, requirement

LABELS = {"tier": "web", "app.kubernetes.io/name": "shop", "empty": "", "cores": "16", "in": "notin"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", True, id="nothing asked selects everything"),
        pytest.param(" \t\n", True, id="blanks are nothing"),
        pytest.param("tier=web", True, id="equal"),
        pytest.param("tier==web", True, id="equal, written twice"),
        pytest.param("tier=db", False, id="another value"),
        pytest.param("gone=web", False, id="equal, and the label is not there"),
        pytest.param("tier!=db", True, id="not equal"),
        pytest.param("tier!=web", False, id="not equal, and it is"),
        pytest.param("gone!=web", True, id="not equal, and the label is not there"),
        pytest.param("empty=", True, id="the empty value"),
        pytest.param("tier=", False, id="the empty value, where there is another"),
        pytest.param("gone=", False, id="the empty value is not the absence"),
        pytest.param("tier in (db, web)", True, id="one of"),
        pytest.param("gone in (db, web)", False, id="one of, and the label is not there"),
        pytest.param("tier notin (db, web)", False, id="none of"),
        pytest.param("gone notin (db, web)", True, id="none of, and the label is not there"),
        pytest.param("empty in ()", True, id="empty brackets hold the empty value"),
        pytest.param("empty in (a,,b)", True, id="two commas hold the empty value"),
        pytest.param("empty in (,a)", True, id="so does a comma in front"),
        pytest.param("empty in (a,)", True, id="and one at the end"),
        pytest.param("tier", True, id="there is one"),
        pytest.param("gone", False, id="there is none"),
        pytest.param("!gone", True, id="there shall be none"),
        pytest.param("! tier", False, id="there shall be none, and there is"),
        pytest.param("cores>8", True, id="more than"),
        pytest.param("cores>16", False, id="more than, not as many"),
        pytest.param("cores < 17", True, id="less than"),
        pytest.param("tier>1", False, id="a word is more than no number"),
        pytest.param("gone<5", False, id="nothing is less than no number"),
        pytest.param("app.kubernetes.io/name=shop,tier in (web),!gone,cores", True, id="all of them"),
        pytest.param("tier=web,gone", False, id="all but one"),
        pytest.param("in in (in,notin)", True, id="words of the language as key and values"),
        pytest.param("tier   in(web)", True, id="no blank before the bracket"),
    ],
)
def test_what_a_selector_selects(text: str, expected: bool) -> None:
    selector = parse(text)
    assert expected == selector.matches(LABELS)
    assert parse(str(selector)) == selector, "what is shown means the same"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tier=web,", "the end, expected: a key or '!'"),
        (",tier", "',', expected: a key or '!'"),
        ("a,,b", "',', expected: a key or '!'"),
        ("!", "the end, expected: a key or '!'"),
        ("!!a", "'!', expected: a key or '!'"),
        ("!a=b", "'=', expected: ','"),
        ("a b", "'b', expected: '=' or '==' or '!=' or 'in' or 'notin' or '<' or '>'"),
        ("a === b", "'=', expected: ','"),
        ("a in b", "'b', expected: '('"),
        ("a in (b", "the end, expected: ',' or ')'"),
        ("a in (b c)", "'c', expected: ',' or ')'"),
        ("a in (b))", "')', expected: ','"),
        ("a=(b)", "'(', expected: ','"),
        ("a>b", "'b' is not a whole number"),
        ("a>9223372036854775808", "'9223372036854775808' is not a whole number"),
        ("a>", "'' is not a whole number"),
        ("-a=b", "'-a' is not a valid label key"),
        ("a/b/c", "'a/b/c' is not a valid label key"),
        ("/a", "'/a' is not a valid label key"),
        ("EXAMPLE.com/a", "'EXAMPLE.com/a' is not a valid label key"),
        ("a=b!c", "'!', expected: ','"),
        ("a=-b", "'-b' is not a valid label value"),
        ("a=" + "b" * 64, f"'{'b' * 64}' is not a valid label value"),
        ("a=ü", "'ü' is not a valid label value"),
        ("a" * 64, f"'{'a' * 64}' is not a valid label key"),
        ("a," * 3000 + "a", "more than 4096 characters"),
    ],
)
def test_what_is_wrong_is_said_in_a_few_words(text: str, expected: str) -> None:
    with pytest.raises(SelectorError) as caught:
        parse(text)
    assert expected == str(caught.value)


@pytest.mark.parametrize(
    ("operator", "values", "expected"),
    [
        ("In", [], "0 values for In"),
        ("Exists", ["a"], "1 values for Exists"),
        ("Gt", ["1", "2"], "2 values for Gt"),
        ("Near", ["1"], "'Near' is no operator"),
        ("=", ["1"], "'=' is no operator"),
    ],
)
def test_a_requirement_of_the_api_is_checked_alike(operator: str, values: list[str], expected: str) -> None:
    with pytest.raises(SelectorError) as caught:
        requirement("a", operator, values)
    assert expected == str(caught.value)


def test_any_text_is_a_selector_or_one_short_line(seed: int) -> None:
    chance = random.Random(f"{seed} selectors")
    parts = [
        "a",
        "b",
        "in",
        "notin",
        "(",
        ")",
        ",",
        "=",
        "==",
        "!",
        "!=",
        "<",
        ">",
        " ",
        "7",
        "x.y/z",
        "\x00",
        "ü",
        "-",
    ]
    taken, said = 0, set()
    for _ in range(20_000):
        text = "".join(chance.choices(parts, k=chance.randint(0, 8)))
        try:
            selector = parse(text)
        except SelectorError as e:
            said.add(str(e))
            continue
        taken += 1
        assert parse(str(selector)) == selector
        assert all(one.operator in Operator for one in selector.requirements)
    assert taken > 500
    assert [line for line in said if not 0 < len(line) < 200 or not line.isprintable()] == []
