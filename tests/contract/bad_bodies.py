"""Bodies that are no filter request, by the cases X of the contract: refused with 400, whoever reads them."""

import pytest

DEEP = 100_000

BAD_BODIES = [
    pytest.param(b"", id="X25 empty"),
    pytest.param(b"{", id="X25 one brace"),
    pytest.param(b'{"Pod":{},"NodeNames":["h1"', id="X25 cut short"),
    pytest.param(b"[]", id="X25 a list"),
    pytest.param(b"null", id="X25 null"),
    pytest.param(b'"x"', id="X25 a string"),
    pytest.param(b"7", id="X25 a number"),
    pytest.param(b'{"Pod":{},"NodeNames":NaN}', id="X26 NaN"),
    pytest.param(b'{"Pod":{},"NodeNames":[NaN]}', id="X26 NaN as a name"),
    pytest.param(b'{"Pod":{},"NodeNames":-Infinity}', id="X26 Infinity"),
    pytest.param(b'{"Pod":{},"NodeNames":["h1"]} x', id="X26 trailing bytes"),
    pytest.param(b'{"Pod":{},"NodeNames":["h1"]}{}', id="X26 a second object"),
    pytest.param(b'\xef\xbb\xbf{"Pod":{},"NodeNames":["h1"]}', id="X26 byte order mark"),
    pytest.param(b"[" * DEEP + b"]" * DEEP, id="X27 deep lists"),
    pytest.param(b'{"a":' * DEEP + b"1" + b"}" * DEEP, id="X27 deep objects"),
    pytest.param(b'{"Pod":{},"X":' + b"[" * DEEP + b"]" * DEEP + b"}", id="X27 deep under an unknown key"),
    pytest.param(b'{"Pod":{"spec":{"x":' + b"[" * DEEP + b"]" * DEEP + b"}}}", id="X27 deep inside the pod"),
    pytest.param(b'{"Pod":{},"NodeNames":"h1"}', id="X28 names are a string"),
    pytest.param(b'{"Pod":{},"NodeNames":[1,2]}', id="X28 names are numbers"),
    pytest.param(b'{"Pod":{},"NodeNames":["h1",null]}', id="X28 a name is null"),
    pytest.param(b'{"Pod":{},"NodeNames":["\xff"]}', id="bad UTF-8"),
    pytest.param(b'{"Pod":{},"NodeNames":["\xc3\x28"]}', id="UTF-8 that breaks off"),
    pytest.param(b'{"Pod":{},"NodeNames":{}}', id="X28 names are an object"),
    pytest.param(b'{"Pod":{},"NodeNames":["h1"],"X":[' + b"0," * 200_000 + b"0]}", id="more values than are counted"),
    pytest.param(b'{"Pod":7,"NodeNames":["h1"]}', id="the pod is a number"),
    pytest.param(b'{"Pod":{"metadata":{"labels":{"100%d":5}}},"NodeNames":["h1"]}', id="a label is a number"),
]
