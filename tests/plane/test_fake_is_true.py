"""The fake API server says what the real one says: each dialogue is held with the real one, and its record is the one
that the fake is held against in every run (`tests/fakes/test_dialogues.py`), but for what other versions say otherwise.
"""

import os
import ssl
from collections.abc import Callable

import pytest

from tests.fakes.dialogues import DIALOGUES, keep, records
from tests.fakes.talk import Line, Talk
from tests.testbed.plane import identities
from tests.testbed.plane.plane import Plane
from tests.testbed.shared.binaries import kubernetes_version

MAY_DO_NOTHING_THERE = "system:node:node-16"


@pytest.fixture(scope="module")
def line(plane: Plane) -> Line:
    def bearer(user: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {plane.token_of(user)}"}

    def restart() -> None:
        plane.compact_etcd()
        plane.stop_api_server()
        plane.start_api_server()

    return Line(
        plane.server,
        bearer(identities.ADMIN),
        ssl.create_default_context(cafile=str(plane.folder / "pki" / "ca.crt")),
        stranger=bearer(MAY_DO_NOTHING_THERE),
        restart=restart,
    )


@pytest.mark.parametrize("hold", DIALOGUES, ids=lambda hold: hold.__name__)
def test_the_real_one_says_what_is_on_record(plane: Plane, line: Line, hold: Callable[[Talk], None]):
    with Talk(line, hold.__name__) as talk:
        plane.api.create_unless_there("/api/v1/namespaces", {"metadata": {"name": talk.namespace}})
        plane.wait_namespace(talk.namespace)
        hold(talk)
    if os.environ.get("READYGATE_RENEW_GOLDEN") == "1":
        keep(hold.__name__, talk.record, kubernetes_version())
    assert records(kubernetes_version())[hold.__name__] == talk.record
