"""Method `none`: readygate registers nothing and says what to write; who has written it finds that all is well."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.agent.probe.http_target import Target, self_signed
from tests.playbooks.here import Here
from tests.playbooks.seeing import EXTENDER, FIRST, manifest

NAME = "control-1"
TOLD = (
    "Add to the `extenders` of this scheduler's KubeSchedulerConfiguration, in place of readygate's earlier entry, "
    "and restart it: "
)
# A process of this name is the scheduler; of several that run here the one with the manifest's arguments. Python takes
# any after `-c` and a program, which ends by itself.
SLEEP = "__import__('time').sleep(300)"
pytestmark = pytest.mark.timeout(950)


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Here]:
    """One host, of which readygate has nothing, with a scheduler that is well."""
    with Target(lambda call: call.reply(200, b"ok"), self_signed(tmp_path)) as healthz:
        here = Here(
            tmp_path, (NAME,), readygate_scheduler_config_method="none", readygate_scheduler_config_canary=False
        )
        arguments = ["-c", SLEEP, "--config=/etc/own.yaml", f"--secure-port={healthz.port}"]
        (tmp_path / NAME / "manifests" / "kube-scheduler.yaml").write_text(manifest(*arguments))
        (tmp_path / NAME / "readygate").rmdir()
        here.asks(NAME, FIRST)
        with subprocess.Popen(["kube-scheduler", *arguments], executable=sys.executable) as process:
            try:
                yield here
            finally:
                process.kill()


def snippet(output: str) -> Any:
    """What the message of the host that failed says is to be written."""
    told = output.partition(f"fatal: [{NAME}]: FAILED! => ")[2]
    message = json.JSONDecoder().raw_decode(told)[0]["msg"]
    return json.loads(message.partition(TOLD)[2])


@pytest.mark.parametrize("playbook", ["check.yml", "site.yml"])
def test_it_fails_with_what_is_to_be_written_and_passes_when_just_that_is_loaded(here, playbook):
    options = ["--tags=readygate_scheduler_config"] if playbook == "site.yml" else []
    before = here.play(playbook, *options)
    assert (True, EXTENDER) == (before.code != 0, snippet(before.output)), before.told
    here.asks(NAME, FIRST, snippet(before.output))
    after = here.play(playbook, *options)
    assert (0, "") == (after.code, here.lease()), after.told
    assert ([], False) == (here.calls(" patch "), (here.folder / NAME / "readygate").exists())
