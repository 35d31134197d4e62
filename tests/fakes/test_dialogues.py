"""The fake API server says, word for word, what is on record of the real one."""

import json
from collections.abc import Callable, Iterator

import pytest

from tests.fakes.api_server import FakeApiServer
from tests.fakes.api_words import Refused
from tests.fakes.dialogues import DIALOGUES, records
from tests.fakes.talk import Line, Talk

TOKEN = "a-token"


@pytest.fixture
def line() -> Iterator[Line]:
    forbidden = Refused(403, "Forbidden", "", {"group": "coordination.k8s.io", "kind": "leases"})
    with FakeApiServer() as api:
        api.tokens = {TOKEN}
        known = {"Authorization": f"Bearer {TOKEN}"}
        yield Line(
            api.url,
            known,
            stranger=known,
            restart=api.compact,
            bookmark=api.bookmark,
            forbid_next=lambda: api.answer_next(403, body=json.dumps(forbidden.status).encode()),
        )


@pytest.mark.parametrize("hold", DIALOGUES, ids=lambda hold: hold.__name__)
def test_the_fake_says_what_the_real_one_said(line: Line, hold: Callable[[Talk], None]) -> None:
    with Talk(line, hold.__name__) as talk:
        hold(talk)
    assert records()[hold.__name__] == talk.record


def test_each_record_is_of_a_dialogue() -> None:
    assert sorted(records()) == sorted(hold.__name__ for hold in DIALOGUES)
