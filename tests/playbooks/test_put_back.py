"""A static pod that was put back is the earlier one: the play that wants that one finds nothing to change."""

import subprocess
from pathlib import Path

import pytest
import yaml

STATIC = Path(__file__).parents[2] / "playbooks/roles/readygate_extender/tasks/static.yml"
WANTED = "metadata:\n  annotations:\n    kubectl.kubernetes.io/default-container: extender\nspec: {}\n"
MARK = '    readygate.dev/put-back: "1764253371000"\n'


@pytest.mark.parametrize(
    ("in_place", "expected"),
    [
        pytest.param(WANTED, 0, id="as it is wanted"),
        pytest.param(WANTED.replace("    kubectl", MARK + "    kubectl"), 0, id="put back"),
        pytest.param(
            WANTED.replace("    kubectl", MARK + "    kubectl").replace("{}", "{a: 1}"), 1, id="put back, of old"
        ),
        pytest.param(WANTED.replace("{}", "{a: 1}"), 1, id="of old"),
        pytest.param(None, 1, id="none"),
    ],
)
def test_what_was_put_back_is_no_change(tmp_path, in_place, expected):
    tasks = {task["name"]: task for task in yaml.safe_load(STATIC.read_text())}
    argv = tasks["Static | Compare the manifest with the one in place"]["ansible.builtin.command"]["argv"]
    (wanted := tmp_path / "wanted.yaml").write_text(WANTED)
    manifest = tmp_path / "readygate-extender.yaml"
    if in_place is not None:
        manifest.write_text(in_place)
    ran = subprocess.run([*argv[:-2], manifest, wanted], stdout=subprocess.DEVNULL, check=False)
    assert expected == ran.returncode
