"""Reads YAML with nothing but Python's standard library, as a host may have no PyYAML.

As the kubelet reads it (sigs.k8s.io/yaml), of several documents the first: all of YAML but keys of more than one line
(`? `) and what tags make of a text. A scalar without quotes stays a text. Needs Python 3.6.

look.sh has a copy of this file, made by `make manifests`.
"""

import json
import re

_LETTERS, _CHARACTERS = '0abtnvfre "/\\N_LP\t', '\0\a\b\t\n\v\f\r\x1b "/\\\x85\xa0\u2028\u2029\t'
ESCAPED = {letter: _CHARACTERS[place] for place, letter in enumerate(_LETTERS)}
LENGTHS = {"x": 2, "u": 4, "U": 8}
DEEPEST = 100
PROPERTY = re.compile(r"([&!])(\S*)[ \t]*")
END = re.compile(r"^(---|\.\.\.)(?=\s|$)", re.M)
KEY = re.compile(r"(?![\[\]{},#&*!|>'\"%@`]|[-?](\s|$))(?:[^\s:#]|:(?=\S)|(?<=\S)#|[ \t]+(?=[^\s:#])|[ \t]+(?=:\S))+")
BLOCK_SCALAR = re.compile(r"([|>])([-+0-9]{0,2})[ \t]*(#.*)?$", re.M)


class NotUnderstoodError(ValueError):
    """The text is no YAML, or YAML that this does not read."""


class Plain(str):
    """A scalar without quotes: only such a one may be null."""

    __slots__ = ()


class Reader:
    """Of one document. `at`: the place in the text."""

    def __init__(self, text):
        self.text, self.at, self.anchors, self.depth = text, 0, {}, 0

    def error(self, why):
        return NotUnderstoodError("line %d: %s" % (self.text.count("\n", 0, self.at) + 1, why))

    def column(self):
        return self.at - (self.text.rfind("\n", 0, self.at) + 1)

    def peek(self, count=1):
        return self.text[self.at : self.at + count]

    def take(self, pattern):
        found = re.compile(pattern).match(self.text, self.at)
        self.at = found.end() if found else self.at
        return found

    def blanks(self, lines=True):
        """Past blanks and comments, and also past ends of lines."""
        while True:
            begin = self.at
            self.take(r"[ \t]+")
            if self.peek() == "#" and (self.at == 0 or self.text[self.at - 1] in " \t\n]}'\""):
                self.take(r"[^\n]*")
            if lines:
                self.take(r"\n+")
            if self.at == begin or not lines:
                return

    def document(self):
        self.blanks()
        value = self.node(-1)
        self.blanks()
        if self.at < len(self.text):
            raise self.error("more than one value")
        return value

    def node(self, parent, is_value=False):
        """A node that is indented more than `parent`; as the value of a key also a list that is indented as much."""
        self.depth += 1
        if self.depth > DEEPEST:
            raise self.error("too deep")
        try:
            return self._node(parent, is_value)
        finally:
            self.depth -= 1

    def _node(self, parent, is_value):
        line, anchor = self.text.count("\n", 0, self.at), None
        self.blanks()
        begin = self.at
        if not self._is_within(parent, is_value):
            return Plain("")
        if self.peek() == "*":
            alias = self.take(r"\*([^\s,\[\]{}]+)")
            if not self._colon():
                return self._known(alias)
            self.at = begin
        while PROPERTY.match(self.text, self.at) and not self._starts_key():
            kind, name = self.take(PROPERTY.pattern).groups()
            anchor = name if kind == "&" else anchor
            self.blanks()
            if not self._is_within(parent, is_value):
                return self._keep(anchor, Plain(""))
        column, new_line = self.column(), self.text.count("\n", 0, self.at) > line
        if self.take(r"-(?=\s|$)"):
            if is_value and not new_line:
                raise self.error("a list on the line of its key")
            self.at -= 1
            return self._keep(anchor, self._list(column))
        if (not is_value or new_line) and self._starts_key():
            return self._keep(anchor, self._mapping(column))
        scalar = BLOCK_SCALAR.match(self.text, self.at)
        if scalar:
            return self._keep(anchor, self._block_scalar(scalar, parent))
        if self.peek() in "[{\"'":
            return self._keep(anchor, self._flow())
        return self._keep(anchor, self._plain(parent))

    def _is_within(self, parent, is_value):
        if self.at >= len(self.text):
            return False
        column = self.column()
        return column > parent or (is_value and column == parent and self.take(r"(?=-(\s|$))") is not None)

    def _known(self, alias):
        if not alias or alias.group(1) not in self.anchors:
            raise self.error("an alias of nothing")
        return self.anchors[alias.group(1)]

    def _keep(self, anchor, value):
        if anchor:
            self.anchors[anchor] = value
        return value

    def _colon(self):
        return re.compile(r"[ \t]*:(?=\s|$)").match(self.text, self.at)

    def _starts_key(self):
        """Is here a key of a mapping, on one line?"""
        begin = self.at
        try:
            self._key()
            return self._colon() is not None
        except NotUnderstoodError:
            return False
        finally:
            self.at = begin

    def _key(self):
        while self.take(r"[&!]\S*[ \t]+"):
            pass
        alias = self.take(r"\*([^\s,\[\]{}]+)")
        if alias:
            return self._known(alias)
        if self.take(r"\?(?=\s)"):
            raise self.error("a key of its own line")
        if self.peek() in "\"'":
            begin = self.at
            key = self._quoted()
            if "\n" in self.text[begin : self.at]:
                raise self.error("a key of several lines")
            return key
        key = self.take(KEY.pattern)
        if not key:
            raise self.error("no key")
        return Plain(key.group())

    def _mapping(self, column):
        found, merged = {}, []
        while True:
            key = self._key()
            self.at = self._colon().end()
            value = self.node(column, True)
            if isinstance(key, Plain) and key == "<<":
                merged += value if isinstance(value, list) else [value]
            else:
                found[str(key)] = value
            self.blanks()
            if self.at >= len(self.text) or self.column() < column:
                break
            if self.column() > column or not self._starts_key():
                raise self.error("no key")
        for one in merged:
            found = {**one, **found} if isinstance(one, dict) else found
        return found

    def _list(self, column):
        found = []
        while True:
            self.at += 1
            found.append(self.node(column))
            self.blanks()
            if self.at >= len(self.text) or self.column() < column or not self.take(r"(?=-(\s|$))"):
                if self.at < len(self.text) and self.column() > column:
                    raise self.error("no entry of the list")
                return found

    def _block_scalar(self, header, parent):
        """`|` keeps the ends of lines, `>` folds them; a number is the indentation, `-` and `+` are about the last."""
        style, how = header.group(1), header.group(2)
        self.at = min(header.end() + 1, len(self.text))
        number = re.sub(r"[-+]", "", how)
        indent, lines = (max(parent, 0) + int(number) if number else None), []
        while self.at < len(self.text):
            line = self.take(r"[^\n]*").group()
            own = len(line) - len(line.lstrip(" "))
            if line.strip(" "):
                indent = own if indent is None else indent
                if own < indent or own <= parent:
                    self.at -= len(line)
                    break
            lines.append(line[indent if indent is not None else own :])
            self.at += 1
        self.at = min(self.at, len(self.text))
        text = "\n".join(lines)
        if style == ">":
            text = re.sub(r"(?<=\S)\n(\n*)(?=\S)", lambda ends: ends.group(1) or " ", text)
        stripped = text.rstrip("\n")
        return text + "\n" if "+" in how else stripped if "-" in how or not stripped else stripped + "\n"

    def _plain(self, parent, flow=False):
        """Also of several lines, each indented more than `parent`."""
        stop = r",\[\]{}" if flow else ""
        word = r"(?:[^\s:#%s]|:(?=[^\s%s])|(?<=[^\s])#)+" % (stop, stop)
        if re.compile(r"[\[\]{},#&*!|>'\"%%@`]|[-?:](\s|$|[%s])" % (stop or " ")).match(self.text, self.at):
            raise self.error("no value")
        text = ""
        while True:
            line = self.take(word + r"(?:[ \t]+" + word + ")*")
            if not line:
                break
            text += line.group()
            begin = self.at
            lines = self.take(r"[ \t]*\n\s*")
            if not lines or self.peek() in ("", "#") or (not flow and self.column() <= parent):
                self.at = begin
                break
            if not re.compile(word).match(self.text, self.at):
                self.at = begin
                break
            text += "\n" * (lines.group().count("\n") - 1) or " "
        if not flow and self._colon():
            raise self.error("a key within a value")
        return Plain(text.strip())

    def _quoted(self):
        quote, text = self.peek(), ""
        self.at += 1
        while True:
            text += self.take(r"[^'\n]*" if quote == "'" else r"[^\"\\\n]*").group()
            one = self.peek()
            if not one:
                raise self.error("no end of a quote")
            if one == "\n":
                ends = self.take(r"\s*").group().count("\n")
                text = text.rstrip(" \t") + ("\n" * (ends - 1) or " ")
            elif one == "\\":
                text += self._escape()
            elif quote == "'" and self.peek(2) == "''":
                text, self.at = text + "'", self.at + 2
            else:
                self.at += 1
                return text

    def _escape(self):
        if self.take(r"\\\n[ \t]*"):
            return ""
        one = self.peek(2)[1:]
        self.at += 2
        if one in LENGTHS:
            digits = self.peek(LENGTHS[one])
            self.at += LENGTHS[one]
            try:
                return chr(int(digits, 16))
            except (ValueError, OverflowError):
                raise self.error("no character") from None
        if one not in ESCAPED:
            raise self.error("no such escape")
        return ESCAPED[one]

    def _flow(self):
        """A value within brackets, or a quoted one."""
        self.depth += 1
        if self.depth > DEEPEST:
            raise self.error("too deep")
        anchor = None
        while self.peek() in ("&", "!"):
            kind, name = self.take(r"([&!])([^\s,\[\]{}]*)").groups()
            anchor = name if kind == "&" else anchor
            self.blanks()
        alias = self.take(r"\*([^\s,\[\]{}]+)")
        if alias:
            value = self._known(alias)
        elif self.peek() in ("[", "{"):
            value = self._items(self.peek())
        elif self.peek() in ("'", '"'):
            value = self._quoted()
        elif self.peek() in (",", "]", "}", ":"):
            value = Plain("") if self.peek() != ":" or self._ends_key(Plain("")) else self._plain(0, flow=True)
        else:
            value = self._plain(0, flow=True)
        self.depth -= 1
        return self._keep(anchor, value)

    def _items(self, bracket):
        found, end = ({}, "}") if bracket == "{" else ([], "]")
        self.at += 1
        while True:
            self.blanks()
            if not self.peek():
                raise self.error("no end of " + bracket)
            if self.peek() == end:
                self.at += 1
                return found
            key = self._flow()
            self.blanks()
            is_pair = self._ends_key(key)
            if is_pair:
                self.at += 1
                self.blanks()
            value = self._flow() if is_pair else Plain("")
            self._add(found, key, value, is_pair)
            self.blanks()
            if not self.take(",") and self.peek() != end:
                raise self.error("no comma")

    def _ends_key(self, key):
        """Behind a quoted key the colon may stand without a blank, as in JSON."""
        if self.peek() != ":":
            return False
        return not isinstance(key, Plain) or self.take(r"(?=:([\s,\[\]{}]|$))") is not None

    def _add(self, found, key, value, is_pair):
        if isinstance(found, list):
            found.append({str(key): value} if is_pair else key)
        elif not isinstance(key, str):
            raise self.error("no key")
        elif isinstance(key, Plain) and key == "<<" and isinstance(value, (dict, list)):
            for one in value if isinstance(value, list) else [value]:
                for name in one if isinstance(one, dict) else ():
                    found.setdefault(name, one[name])
        else:
            found[str(key)] = value


def text_of(content):
    """Of a file, as YAML may be encoded."""
    text = content.decode("utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
    return re.sub(r"\r\n?", "\n", text)


def first_document(text):
    """Without the lines that begin or end it."""
    head = re.match(r"(?:[ \t]*(?:#[^\n]*)?\n|%[^\n]*\n)*---(?=\s|$)", text)
    if head:
        # What follows on the line is at the column that it has.
        text = "\n" * (text.count("\n", 0, head.end())) + "   " + text[head.end() :]
    end = END.search(text)
    return text[: end.start()] if end else text


def read(content):
    """The first document of a file. Raises ValueError."""
    text = text_of(content)
    try:
        return json.loads(text)
    except ValueError:
        return Reader(first_document(text)).document()
