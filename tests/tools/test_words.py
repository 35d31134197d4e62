"""The lint step of retired words: which texts it reads, which words it finds, and its list of exceptions."""

import subprocess
from pathlib import Path

import pytest

from tools import lint, words
from tools.words import Allowed, allowed_in, check, retired

PYTHON = '''"""What was told. Somebody may read on."""

# Nobody sees a comment.
log.info("The agent has heard it", extra={"nobody": 1})
parser.add_argument("--people", help="what it tells")


def run(told):
    """Sends it anew.

    Nobody reads this line.
    """
    raise ValueError(f"{told} is kept: %s")
'''


@pytest.mark.parametrize(
    ("path", "source", "found"),
    [
        pytest.param(
            "kube/a.py", PYTHON, [(1, "told"), (4, "heard"), (5, "tells"), (9, "anew"), (13, "kept")], id="Python"
        ),
        pytest.param("tools/a.py", PYTHON, [], id="no instrument"),
        pytest.param("playbooks/roles/a/library/a.py", '"""Told."""', [(1, "told")], id="a module of Ansible"),
        pytest.param(
            "playbooks/a.yml",
            "# told\n- name: What it says\n  ansible.builtin.fail:\n    msg: >-\n      Kept\n  when: told\n",
            [(2, "says"), (4, "kept")],
            id="a task",
        ),
        pytest.param("playbooks/a.yml", "a: &a {description: told}\nb: *a\n", [(1, "told")], id="an anchor, once"),
        pytest.param("playbooks/a.yml", "description: [it is, told]\n", [(1, "told")], id="a list of texts"),
        pytest.param("charts/readygate/files/alerts.yaml", "summary: told\nexpr: told\n", [(1, "told")], id="an alert"),
        pytest.param("charts/readygate/values.yaml", "# told\nkey: told\n", [(1, "told")], id="a value's description"),
        pytest.param("charts/readygate/templates/NOTES.txt", "{{ told }}\n", [(1, "told")], id="notes"),
        pytest.param("docs/a.md", "# It says\nsays\n", [(1, "says")], id="a heading"),
        pytest.param("a.py.txt", "told\n", [], id="a file of another kind"),
    ],
)
def test_texts_that_operators_read_are_searched(path: str, source: str, found: list[tuple[int, str]]) -> None:
    assert found == [(line, word) for line, word, _ in retired(path, source)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Said and SAYS", ["said", "says"]),
        ("take a look; it looks at the node", ["a look"]),
        ("as good as new, of late", ["as good as", "of late"]),
        ("the last word; keeps; a stand-in; useful, hours, besides", []),
    ],
)
def test_whole_words_are_found_in_either_case(text: str, found: list[str]) -> None:
    assert found == [word for _, word, _ in retired("a.md", f"# {text}")]


def test_each_group_of_words_has_its_own_advice() -> None:
    assert words.RETIRED.groups == len(words.INSTEAD)
    assert [(1, "kept", "saved, cached, retained")] == list(retired("a.md", "# Kept"))


def test_an_exception_needs_a_reason() -> None:
    assert [Allowed("agent/", None, "x"), Allowed("a/b.py", "of late", "y")] == allowed_in(
        "# head\n\nagent/  # x\na/b.py: of late  # y\n"
    )
    with pytest.raises(ValueError, match="'agent/' has no reason"):
        allowed_in("agent/\n")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "a.md").write_text("# Told\n")
    (tmp_path / "untracked.md").write_text("# Told\n")
    for command in (["init", "-q"], ["add", "a.md"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    return tmp_path


def test_tracked_files_are_checked(checkout: Path) -> None:
    assert ["a.md:1: 'told'; write instead: report, send, return, log, record, show"] == check(checkout, [])


@pytest.mark.parametrize("one", [Allowed("a.md", "told", "x"), Allowed("a", None, "x")])
def test_a_listed_word_passes(checkout: Path, one: Allowed) -> None:
    assert [] == check(checkout, [one])


def test_an_exception_without_a_use_is_an_error(checkout: Path) -> None:
    found = check(checkout, [Allowed("a.md", "told", "x"), Allowed("a.md", "kept", "x")])
    assert ["words.txt: no use of a.md kept"] == found


def test_the_step_fails_for_a_word_and_for_a_line_without_a_reason(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = tmp_path / "words.txt"
    monkeypatch.setattr(words, "ALLOWED", listed)
    codes = []
    for text in ("", "a.md: told\n", "a.md: told  # x\n"):
        listed.write_text(text)
        codes.append(lint.retired_words(checkout))
    assert [lint.HAS_ERRORS, lint.HAS_ERRORS, lint.SUCCESS] == codes
