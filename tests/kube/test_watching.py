"""What follows from a line, an error, an end: the pure table behind rules LW4 to LW9 and LW12."""

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from kube import errors, watching
from kube.watching import Change, Next, Operation, Skip

PATH = "/api/v1/nodes"


def read(line: bytes, last: str = "5"):
    return watching.read_event(line, kind="Node", last=last, path=PATH)


def line(event_type: str, version: str) -> bytes:
    return f'{{"type":"{event_type}","object":{{"kind":"Node","metadata":{{"resourceVersion":"{version}"}}}}}}'.encode()


@pytest.mark.parametrize(
    ("given_line", "expected"),
    [
        pytest.param(line("ADDED", "6"), Change(Operation.UPSERT, "6"), id="added"),
        pytest.param(line("MODIFIED", "6"), Change(Operation.UPSERT, "6"), id="modified"),
        pytest.param(line("DELETED", "6"), Change(Operation.REMOVE, "6"), id="deleted"),
        pytest.param(line("BOOKMARK", "6"), Change(Operation.NONE, "6"), id="bookmark"),
        pytest.param(line("RENAMED", "6"), Change(Operation.NONE, "6", "unknown_type"), id="unknown type"),
        pytest.param(line("MODIFIED", "5"), Change(Operation.UPSERT, "5"), id="the same version again"),
        pytest.param(line("MODIFIED", "4"), Skip("older"), id="a version from the past"),
        pytest.param(line("MODIFIED", "opaque"), Change(Operation.UPSERT, "opaque"), id="a version that is no number"),
        pytest.param(line("MODIFIED", ""), Skip("metadata"), id="no version"),
        pytest.param(b'{"type":"ADDED","object":{"kind":"Pod","metadata":{}}}', Skip("kind"), id="another kind"),
        pytest.param(b'{"type":"ADDED","object":{"kind":"Table"}}', Skip("table"), id="a table"),
        pytest.param(b'{"type":"ADDED","object":{"kind":"Node"}}', Skip("metadata"), id="no metadata"),
        pytest.param(b'{"type":"ADDED","object":7}', Skip("malformed"), id="no object"),
        pytest.param(b"[]", Skip("malformed"), id="no event"),
    ],
)
def test_a_line_of_a_watch_means(given_line, expected):
    assert expected == read(given_line)


def error_line(code: int, reason: str) -> bytes:
    return f'{{"type":"ERROR","object":{{"kind":"Status","metadata":{{}},"code":{code},"reason":"{reason}"}}}}'.encode()


@pytest.mark.parametrize(
    ("given_line", "error", "step"),
    [
        pytest.param(error_line(410, "Expired"), errors.Gone, Next.LIST_LATER, id="expired"),
        pytest.param(error_line(500, "Gone"), errors.Gone, Next.LIST_LATER, id="gone by its reason"),
        pytest.param(error_line(429, "TooManyRequests"), errors.TooManyRequests, Next.WATCH_LATER, id="429"),
        pytest.param(error_line(500, "InternalError"), errors.ServerError, Next.LIST_LATER, id="500"),
        pytest.param(error_line(403, "Forbidden"), errors.Forbidden, Next.LIST_LATER, id="403"),
        pytest.param(error_line(0, ""), errors.ServerError, Next.LIST_LATER, id="no code"),
        pytest.param(b'{"type":"ERROR","object":null}', errors.ServerError, Next.LIST_LATER, id="no status"),
        pytest.param(b'{"type":"ADDED",', errors.MalformedReply, Next.LIST_LATER, id="half a line"),
        pytest.param(b'{"type":"\xff"}', errors.MalformedReply, Next.LIST_LATER, id="not UTF-8"),
    ],
)
def test_a_line_that_ends_a_watch_leads_to(given_line, error, step):
    failure = read(given_line)
    assert (error, step) == (type(failure.error), failure.next_step)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (errors.ConnectionRefused(path=PATH), Next.WATCH_LATER),
        (errors.TooManyRequests(path=PATH), Next.WATCH_LATER),
        (errors.Gone(path=PATH), Next.LIST_LATER),
        (errors.Unreachable(path=PATH, sent=False), Next.WATCH_LATER),
        (errors.Forbidden(path=PATH), Next.LIST_LATER),
        (errors.ServerError(path=PATH), Next.LIST_LATER),
        (errors.DeadlineExceeded(path=PATH), Next.LIST_LATER),
        (errors.CredentialsInvalid("gone"), Next.LIST_LATER),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else value.name,
)
def test_a_watch_that_does_not_open_leads_to(error, expected):
    assert expected is watching.after_open_error(error)


@pytest.mark.parametrize(
    ("empty_in_a_row", "bookmarks", "expected"),
    [
        pytest.param(0, 0, Next.WATCH, id="not at once, or with an event"),
        pytest.param(1, 0, Next.LIST_LATER, id="at once and empty"),
        pytest.param(1, 1, Next.WATCH, id="at once with a bookmark"),
        pytest.param(2, 1, Next.WATCH, id="twice"),
        pytest.param(3, 1, Next.WATCH_LATER, id="three times in a row"),
    ],
)
def test_a_watch_that_ends_leads_to(empty_in_a_row, bookmarks, expected):
    assert expected is watching.after_end(empty_in_a_row=empty_in_a_row, bookmarks=bookmarks)


@pytest.mark.parametrize(
    ("version", "last", "expected"),
    [
        ("9", "10", True),
        ("10", "9", False),
        ("10", "10", False),
        ("99999999999999999999999", "100000000000000000000000", True),
        ("", "10", False),
        ("0", "10", False),
        ("09", "10", False),
        ("9a", "10", False),
        ("٩", "10", False),  # a digit, but not of ASCII
        ("9", "", False),
    ],
)
def test_which_version_is_older(version, last, expected):
    assert expected is watching.is_older(version, last)


@settings(deadline=None)
@given(st.integers(1), st.integers(1))
def test_versions_compare_as_integers(a, b):
    assert (a < b) is watching.is_older(str(a), str(b))


@pytest.mark.parametrize(
    ("version", "refused_since", "expected"),
    [
        pytest.param("10", None, True, id="as new as ours"),
        pytest.param("9", None, False, id="older"),
        pytest.param("9", 0.5, False, id="older, for less than two minutes"),
        pytest.param("9", 0.0, True, id="older, for two minutes"),
    ],
)
def test_a_list_is_believed_when(version, refused_since, expected):
    assert expected is watching.believe_list(version=version, last="10", refused_since=refused_since, monotonic=120.0)
