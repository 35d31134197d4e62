"""Faults of Python made from the syntax tree: for each piece of code that an operator fits, one changed piece.

Pure: text in, faults out. What changes no behaviour that a test could see is left out: log lines, docstrings,
annotations, texts of errors, `__repr__`. Python 3.11 has no true positions inside f-strings, so these are left out too.
"""

import ast
import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

from tools.power.fault import Fault

COMPARISONS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
}
TWINS = {"min": "max", "max": "min", "any": "all", "all": "any"}
UNITS = ("_s", "_ms", "_ns", "_bytes", "_seconds", "_mib", "_S", "_MS", "_NS", "_BYTES", "_SECONDS")
NOT_SWAPPED = {
    "min",
    "max",
    "isinstance",
    "issubclass",
    "getattr",
    "setattr",
    "hasattr",
    "cast",
    "print",
    "range",
    "zip",
}
INVISIBLE = {"__repr__", "__str__"}


@dataclass(frozen=True, slots=True)
class _Edit:
    """start, end: offsets in bytes."""

    operator: str
    start: int
    end: int
    new: str


@dataclass(frozen=True, slots=True)
class _Place:
    """Where in the tree a node is.

    constant: the name that its statement assigns at import; "" for another statement at import, None in a function.
    """

    function: str
    statement: ast.stmt
    constant: str | None


@dataclass(frozen=True, slots=True)
class Mutation:
    """id: stays the same while its statement does. function: the qualified name of the function around it."""

    id: str
    part: str
    file: str
    function: str
    edit: _Edit
    place: _Place


class Mutator:
    """Finds the places of one file that can be changed, and makes faults of them."""

    def __init__(self, part: str, file: str, text: str) -> None:
        self._part = part
        self._file = file
        self._text = text
        self._bytes = text.encode()
        self._tree = ast.parse(text)
        starts = [0]
        for line in self._bytes.splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        self._line_starts = starts

    @cached_property
    def _dump(self) -> str:
        return ast.dump(self._tree)

    def _at(self, line: int, column: int) -> int:
        return self._line_starts[line - 1] + column

    def _span(self, node: ast.AST) -> tuple[int, int]:
        return self._at(node.lineno, node.col_offset), self._at(node.end_lineno, node.end_col_offset)

    def _source(self, node: ast.AST) -> str:
        start, end = self._span(node)
        return self._bytes[start:end].decode()

    def places(self) -> list[Mutation]:
        """Returns all possible changes, in the file's order. `fault` detects those that mean the same."""
        found: list[Mutation] = []
        seen: Counter[str] = Counter()
        for place, edit in self._edits(self._tree.body, "", None):
            old = self._bytes[edit.start : edit.end]
            key = hashlib.sha256(b"\0".join((self._statement(place), old, edit.new.encode()))).hexdigest()[:8]
            function = place.function or place.constant or "module"
            name = f"{self._file}:{function}:{edit.operator}:{key}"
            seen[name] += 1
            found.append(Mutation(f"{name}:{seen[name]}", self._part, self._file, function, edit, place))
        return found

    def _statement(self, place: _Place) -> bytes:
        start, end = self._span(place.statement)
        return b" ".join(self._bytes[start:end].split())[:120]

    def fault(self, mutation: Mutation) -> Fault | None:
        """Returns None where the changed text is not Python, or means the same."""
        edit = mutation.edit
        changed = (self._bytes[: edit.start] + edit.new.encode() + self._bytes[edit.end :]).decode()
        if not self._means_another(changed):
            return None
        old = self._bytes[edit.start : edit.end].decode()
        start = len(self._bytes[: edit.start].decode())
        line = self._bytes.count(b"\n", 0, edit.start) + 1
        what = f"line {line}, {edit.operator}: {_short(old)} -> {_short(edit.new)}"
        place = mutation.place
        fault = Fault(mutation.id, self._part, self._file, start, old, edit.new, what, self._lines(place))
        return replace(fault, constant=place.constant or "")

    def _means_another(self, changed: str) -> bool:
        try:
            tree = ast.parse(changed)
            compile(tree, self._file, "exec")
        except (SyntaxError, ValueError):
            return False
        return ast.dump(tree) != self._dump

    def _lines(self, place: _Place) -> tuple[int, ...]:
        if place.constant is None:
            return _header(place.statement)
        using = [
            node
            for function in ast.walk(self._tree)
            if isinstance(function, ast.FunctionDef)
            for node in ast.walk(function)
            if (isinstance(node, ast.Name) and node.id == place.constant)
            or (isinstance(node, ast.Attribute) and node.attr == place.constant)
        ]
        if using:
            return tuple(sorted({node.lineno for node in using}))
        if isinstance(place.statement, ast.FunctionDef):
            return tuple(line for inner in place.statement.body for line in _header(inner))
        functions = [node for node in ast.walk(self._tree) if isinstance(node, ast.FunctionDef)]
        return tuple(sorted({line for f in functions for inner in f.body for line in _header(inner)}))

    def _edits(self, body: list[ast.stmt], function: str, constant: str | None) -> Iterator[tuple[_Place, _Edit]]:
        for number, statement in enumerate(body):
            if _skipped(statement, first=number == 0):
                continue
            if isinstance(statement, ast.FunctionDef | ast.ClassDef):
                yield from self._definition(statement, function)
                continue
            place = _Place(function, statement, constant if function else _assigned(statement))
            yield from ((place, edit) for edit in self._of_statement(statement, inside=bool(function)))
            for expression in _expressions(statement):
                yield from ((place, edit) for edit in self._of_expression(expression, statement))
            for inner in _bodies(statement):
                yield from self._edits(inner, function, constant)

    def _definition(self, node: ast.FunctionDef | ast.ClassDef, function: str) -> Iterator[tuple[_Place, _Edit]]:
        name = f"{function}.{node.name}" if function else node.name
        if isinstance(node, ast.ClassDef):
            for number, statement in enumerate(node.body):
                if isinstance(statement, ast.FunctionDef | ast.ClassDef):
                    yield from self._definition(statement, name)
                elif not _skipped(statement, first=number == 0) and isinstance(statement, ast.AnnAssign | ast.Assign):
                    place = _Place(name, statement, _assigned(statement))
                    for expression in _expressions(statement):
                        yield from ((place, edit) for edit in self._of_expression(expression, statement))
            return
        if node.name in INVISIBLE:
            return
        for default in (*node.args.defaults, *filter(None, node.args.kw_defaults)):
            place = _Place(name, node, node.name)
            yield from ((place, edit) for edit in self._of_expression(default, node))
        yield from ((_Place(name, node.body[-1], None), edit) for edit in self._early_return(node))
        yield from self._edits(node.body, name, None)

    def _early_return(self, node: ast.FunctionDef) -> Iterator[_Edit]:
        nothing = isinstance(node.returns, ast.Constant) and node.returns.value is None
        real = [s for s in node.body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
        generator = any(isinstance(inner, ast.Yield | ast.YieldFrom) for inner in ast.walk(node))
        if nothing and len(real) > 1 and not generator and node.name != "__init__":
            start = self._span(real[-1])[0]
            yield _Edit("early return", start, start, f"return\n{' ' * real[-1].col_offset}")

    def _of_statement(self, node: ast.stmt, *, inside: bool) -> Iterator[_Edit]:
        start, end = self._span(node)
        if inside and _can_be_dropped(node):
            yield _Edit("dropped statement", start, end, "pass")
        if isinstance(node, ast.Continue):
            yield _Edit("continue", start, end, "break")
        if isinstance(node, ast.Break):
            yield _Edit("break", start, end, "continue")
        if isinstance(node, ast.Raise) and inside:
            yield _Edit("swallowed exception", start, end, "pass")
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, bool):
            yield _Edit("returned value", *self._span(node.value), str(not node.value.value))
        if isinstance(node, ast.If | ast.While) and not _is_constant(node.test):
            yield _Edit("negated condition", *self._span(node.test), f"not ({self._source(node.test)})")
        if isinstance(node, ast.Try) and len(node.handlers) > 0:
            for handler in node.handlers:
                if isinstance(handler.type, ast.Tuple) and len(handler.type.elts) > 1:
                    yield _Edit("narrowed handler", *self._span(handler.type), self._source(handler.type.elts[0]))

    def _of_expression(self, root: ast.expr, statement: ast.stmt) -> Iterator[_Edit]:
        waiting: list[ast.AST] = [root]
        while waiting:
            node = waiting.pop()
            if isinstance(node, ast.JoinedStr) or _is_log(node):
                continue
            if isinstance(node, ast.Lambda):
                waiting.append(node.body)
                continue
            yield from self._of_node(node, statement)
            waiting += reversed(list(ast.iter_child_nodes(node)))

    def _of_node(self, node: ast.AST, statement: ast.stmt) -> Iterator[_Edit]:
        match node:
            case ast.Compare(left=left, ops=ops, comparators=comparators):
                for operator, (before, after) in zip(ops, pairwise([left, *comparators]), strict=True):
                    yield from self._token("comparison", before, after, *COMPARISONS[type(operator)])
            case ast.BoolOp(op=op, values=[before, after, *_]):
                was = "and" if isinstance(op, ast.And) else "or"
                yield from self._token("and/or", before, after, was, "or" if was == "and" else "and")
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                yield _Edit("deleted not", *self._span(node), f"({self._source(operand)})")
            case ast.BinOp(op=ast.Sub(), left=before, right=after):
                yield from self._token("arithmetic", before, after, "-", "+")
            case ast.IfExp(test=test):
                yield _Edit("negated condition", *self._span(test), f"not ({self._source(test)})")
            case ast.Call(func=ast.Name(id=name)) if name in TWINS:
                yield _Edit("twin function", *self._span(node.func), TWINS[name])
            case ast.Constant(value=bool()):
                if not isinstance(statement, ast.Return):
                    yield _Edit("boolean", *self._span(node), str(not node.value))
            case ast.Constant(value=int() | float()):
                yield from self._number(node, statement)
        if isinstance(node, ast.Call):
            yield from self._swapped(node)

    def _token(self, operator: str, before: ast.AST, after: ast.AST, was: str, becomes: str) -> Iterator[_Edit]:
        start, end = self._span(before)[1], self._span(after)[0]
        between = self._bytes[start:end].decode()
        pattern = r"\b" + r"\s+".join(was.split()) + r"\b" if was[0].isalpha() else re.escape(was)
        if "#" not in between and (found := re.search(pattern, between)):
            yield _Edit(operator, start + found.start(), start + found.end(), becomes)

    def _number(self, node: ast.Constant, statement: ast.stmt) -> Iterator[_Edit]:
        start, end = self._span(node)
        value = node.value
        if isinstance(value, int):
            yield _Edit("off by one", start, end, str(value + 1))
        if value in (1000, 1000.0, 1_000_000, 1024, 2**20) or (value > 1 and _of_unit(node, statement)):
            yield _Edit("unit", start, end, repr(value / 1000))

    def _swapped(self, node: ast.Call) -> Iterator[_Edit]:
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        if len(node.args) < 2 or name in NOT_SWAPPED or any(isinstance(a, ast.Starred) for a in node.args[:2]):
            return
        first, second = node.args[:2]
        (start, middle), (after, end) = self._span(first), self._span(second)
        between = self._bytes[middle:after].decode()
        if "#" not in between:
            yield _Edit("swapped arguments", start, end, f"{self._source(second)}{between}{self._source(first)}")


def _short(text: str) -> str:
    text = " ".join(text.split())
    return repr(text if len(text) <= 60 else f"{text[:57]}...")


def _header(node: ast.stmt) -> tuple[int, ...]:
    """Lines of a statement without those of the statements in it."""
    inner = [s.lineno for body in _bodies(node) for s in body]
    last = max(node.lineno, min(inner) - 1) if inner else node.end_lineno or node.lineno
    return tuple(range(node.lineno, last + 1))


def _bodies(node: ast.stmt) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        if found := getattr(node, name, None):
            yield found
    for handler in getattr(node, "handlers", ()):
        yield handler.body
    for case in getattr(node, "cases", ()):
        yield case.body


def _expressions(node: ast.stmt) -> Iterator[ast.expr]:
    """Yields the expressions that a statement evaluates itself, without annotations and texts of errors."""
    match node:
        case ast.Assign(value=value) | ast.AugAssign(value=value):
            yield value
        case ast.AnnAssign(value=value) | ast.Return(value=value) | ast.Expr(value=value):
            yield from filter(None, [value])
        case ast.If(test=test) | ast.While(test=test):
            yield test
        case ast.For(iter=iterated):
            yield iterated
        case ast.With(items=items):
            yield from (item.context_expr for item in items)
        case ast.Match(subject=subject):
            yield subject


def _skipped(node: ast.stmt, *, first: bool) -> bool:
    if isinstance(node, ast.Expr) and (_is_log(node.value) or isinstance(node.value, ast.Constant)):
        return True
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
        return True
    return first and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_log(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="log" | "logging" | "warnings"), attr=_)):
            return True
        case ast.Call(func=ast.Attribute(attr="getLogger")):
            return True
    return False


def _is_constant(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant)


def _can_be_dropped(node: ast.stmt) -> bool:
    match node:
        case ast.Expr(value=ast.Call()):
            return True
        case ast.AugAssign() | ast.Delete():
            return True
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            return True
    return False


def _assigned(node: ast.stmt) -> str:
    """Returns the name that the statement gives a value; "" if it gives none."""
    match node:
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return name
    return ""


def _of_unit(node: ast.Constant, statement: ast.stmt) -> bool:
    """Whether the statement gives just this number to a name with a unit."""
    match statement:
        case (
            ast.Assign(targets=[ast.Name(id=name)], value=value) | ast.AnnAssign(target=ast.Name(id=name), value=value)
        ):
            return value is node and name.endswith(UNITS)
    return False
