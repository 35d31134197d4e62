"""Which image a host gets of the archives that it is given, and what is said of all hosts at the end."""

import tarfile
from pathlib import Path

import pytest
from ansible.errors import AnsibleFilterError

from tests.playbooks.archives import small
from tests.playbooks.rendering import filters

FILTERS = filters("readygate_node")
ARM = "aarch64"

# Archives


def test_an_archive_names_its_image_by_its_digest_and_its_layers_in_order(tmp_path):
    path = small(tmp_path / "one.tar", "amd64")
    (image,) = FILTERS["readygate_node_images"]([str(path)])
    assert ("amd64", str(path), ["PATH=/usr/local/bin", "PYTHONUNBUFFERED=1"]) == (
        image["architecture"],
        image["path"],
        image["environment"],
    )
    assert [12, [64]] == [len(image["id"]), [len(layer) for layer in image["layers"]]]


@pytest.mark.parametrize(("machine", "expected"), [("x86_64", "amd64"), (ARM, "arm64")])
def test_a_host_gets_the_image_for_its_processor(tmp_path, machine, expected):
    both = FILTERS["readygate_node_images"](str(small(tmp_path / "both.tar", "amd64", "arm64")))
    assert expected == FILTERS["readygate_node_image_for"](both, machine)["architecture"]


def test_a_processor_without_an_image_is_told_with_the_remedy(tmp_path):
    one = FILTERS["readygate_node_images"]([str(small(tmp_path / "one.tar", "amd64"))])
    with pytest.raises(AnsibleFilterError, match=r"is for arm64 .aarch64., only for amd64: add"):
        FILTERS["readygate_node_image_for"](one, ARM)


@pytest.mark.parametrize("content", [None, b"", b"no tar", "a tar of something else"], ids=str)
def test_what_is_no_archive_of_an_image_is_told_with_the_remedy(tmp_path, content):
    path = tmp_path / "x.tar"
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content:
        path.write_bytes(other_tar(tmp_path))
    with pytest.raises(AnsibleFilterError, match=r"is no archive of an image .*build one with `make image`"):
        FILTERS["readygate_node_images"]([str(path)])


def other_tar(folder: Path) -> bytes:
    with tarfile.open(folder / "other.tar", "w") as archive:
        archive.add(__file__, "a.py")
    return (folder / "other.tar").read_bytes()


# The sentence


def outcome(word: str, said: str = "") -> dict[str, str]:
    return {"word": word, "said": said}


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        pytest.param(
            [("a", outcome("done", "healthy: x"))], "readygate runs in this version on 1 of 1 nodes", id="all well"
        ),
        pytest.param(
            [("a", outcome("done", "not healthy: cni: failed since 10:00")), ("b", outcome("unreached"))],
            "readygate runs in this version on 1 of 2 nodes; node not healthy: a (cni: failed"
            " since 10:00); not reached, so run this again when they are back: b",
            id="a node that is not well, and one that is down",
        ),
        pytest.param(
            [("a", outcome("failed", "undone: x ")), ("b", outcome("left")), ("c", outcome("begun"))],
            "readygate runs in this version on 0 of 3 nodes; failed, nothing was changed or the change was undone: a"
            " (undone: x); connection lost during the change, so run this again: c; not changed because too"
            " many had failed: b",
            id="one that failed, one that went down, one that was not begun with",
        ),
        pytest.param([("a", outcome("gone"))], "readygate was removed from 1 of 1 nodes", id="taken off"),
    ],
)
def test_what_came_of_all_hosts_is_one_sentence(outcomes, expected):
    assert expected == FILTERS["readygate_node_sentence"](outcomes, False)


def test_of_many_the_first_twenty_are_named():
    many = [(f"node-{number:02}", outcome("unreached")) for number in reversed(range(30))]
    assert FILTERS["readygate_node_sentence"](many, True).endswith("node-18, node-19 and 10 more")
