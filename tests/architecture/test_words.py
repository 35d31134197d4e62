"""One word for one thing: the clocks, and the facts of a log line."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("component", "kube", "agent", "extender", "cli")
PRODUCT = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
# `wall` is seconds since the epoch, `monotonic` seconds of the monotonic clock, `random` a number from 0 to 1.
OTHER_WORDS = {"now", "now_s", "clock", "chance"}
LEVELS = {"debug", "info", "warning", "error", "exception", "critical"}


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def nodes(path: Path) -> Iterator[ast.AST]:
    return ast.walk(ast.parse(path.read_text()))


def log_calls(path: Path) -> list[ast.Call]:
    return [
        node
        for node in nodes(path)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in LEVELS
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "log"
    ]


def facts_of(call: ast.Call) -> dict[str, ast.expr]:
    """The keys of `extra=` that are spelled in the call."""
    extra = next((keyword.value for keyword in call.keywords if keyword.arg == "extra"), None)
    if not isinstance(extra, ast.Dict):
        return {}
    return {
        key.value: value
        for key, value in zip(extra.keys, extra.values, strict=True)
        if isinstance(key, ast.Constant) and isinstance(key.value, str)
    }


def test_each_clock_has_one_name() -> None:
    found = {name_of(p): {node.arg for node in nodes(p) if isinstance(node, ast.arg)} & OTHER_WORDS for p in PRODUCT}
    assert {name: words for name, words in found.items() if words} == {}


def test_log_lines_have_constant_words() -> None:
    """No text is put together for a log line: what changes is a fact of `extra`."""
    made = {
        f"{name_of(path)}:{call.lineno}": ast.unparse(call.args[0])
        for path in PRODUCT
        for call in log_calls(path)
        if call.args and isinstance(call.args[0], ast.JoinedStr | ast.BinOp | ast.Call)
    }
    assert made == {}


def test_in_a_log_line_error_is_the_text_and_cause_is_the_class() -> None:
    facts = {f"{name_of(path)}:{call.lineno}": facts_of(call) for path in PRODUCT for call in log_calls(path)}
    wrong = {
        where: key
        for where, found in facts.items()
        for key, value in found.items()
        if key == "why" or (key == "cause" and ast.unparse(value).startswith("str("))
    }
    assert wrong == {}


def test_there_are_log_lines_to_look_at() -> None:
    assert sum(len(log_calls(path)) for path in PRODUCT) > 50
