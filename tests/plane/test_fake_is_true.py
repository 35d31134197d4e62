"""The fake API server says what the real one says: each dialogue is held with the real one, and its record is the one
that `tests/tools/fakes/test_dialogues.py` holds the fake against in every run, but for what other versions answer.
"""

import os
import ssl
from collections.abc import Callable

import pytest

from tools.fakes.dialogues import DIALOGUES, keep, records
from tools.fakes.talk import Line, Talk
from tools.testbed.plane import identities
from tools.testbed.plane.plane import Plane
from tools.testbed.shared.binaries import kubernetes_version

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
