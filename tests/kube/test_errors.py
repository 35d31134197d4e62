"""Errors are one line with the cause, whatever the server said."""

import pytest

from component.text import MESSAGE_LIMIT
from kube import errors


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (errors.NotFound(path="/p", status=404, reason="NotFound", message="no\nsuch"), "/p: NotFound (404): no such"),
        (errors.Unreachable(path="/p"), "/p: Unreachable"),
        (errors.Gone(path="/p", status=410), "/p: Gone (410)"),
        (errors.Invalid(path="/p", message="\x1b[31mred\x00"), "/p: Invalid: [31mred"),
    ],
)
def test_text(error, expected):
    assert expected == str(error)


def test_a_message_is_cut():
    assert len(errors.Gone(path="/p", message="x" * 9999).message) == MESSAGE_LIMIT


@pytest.mark.parametrize("kind", [errors.TooManyRequests, errors.ServerError])
def test_busy_servers_tell_when_to_come_again(kind):
    status = 429 if kind is errors.TooManyRequests else 503
    found = errors.from_status(path="/p", status=status, retry_after_s=3.0)
    assert (kind, 3.0) == (type(found), found.retry_after_s)


def test_causes_can_be_caught_by_their_family():
    assert issubclass(errors.AlreadyExists, errors.Conflict)
    assert issubclass(errors.DeadlineExceeded, errors.Unreachable)
    assert not issubclass(errors.CredentialsInvalid, errors.KubeError)
