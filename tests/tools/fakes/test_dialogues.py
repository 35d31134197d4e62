"""The fake API server says, word for word, what is on record of the real one."""

import json
from collections.abc import Callable, Iterator

import pytest

from tools.fakes.api_server import FakeApiServer
from tools.fakes.api_words import Refused
from tools.fakes.dialogues import DIALOGUES, records, said_otherwise
from tools.fakes.talk import Line, Talk
from tools.testbed.shared.binaries import VERSIONS

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


@pytest.mark.parametrize("version", VERSIONS.values())
def test_what_a_version_says_otherwise_is_an_answer_of_a_dialogue_and_another_one(version: str) -> None:
    for name, others in said_otherwise(version).items():
        usual = dict(enumerate(records()[name]))
        assert [] == [number for number, entry in others.items() if usual.get(int(number), entry) == entry]
