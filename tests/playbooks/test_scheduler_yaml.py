"""The scheduler's files are read as Kubernetes reads them, and written so that it reads them as they were."""

import pytest
import yaml
from readygate_scheduler.dialect import document, written

from tests.playbooks.rendering import filters
from tests.playbooks.seeing import FILE, FOLDER, KIND, THEIRS, given, job, manifest, plan, seen

# As go.yaml.in/yaml/v2 reads them, which sigs.k8s.io/yaml is made of.
WORDS = {
    "y": True,
    "N": False,
    "on": True,
    "2026-11-27": "2026-11-27",
    "2026-11-27T10:00:00Z": "2026-11-27T10:00:00Z",
    "22:22": "22:22",
    "190:20:30.15": "190:20:30.15",
    "1e3": 1000.0,
    "12E+5": 1200000.0,
    ".5": 0.5,
    "5.": 5.0,
    "-.inf": float("-inf"),
    "0o17": 15,
    "010": 8,
    "08": 8.0,
    "-0b11": -3,
    "0x1F": 31,
    "1_000": 1000,
    "+1": 1,
    "0": 0,
    "1.30": 1.3,
    "1.2.3": "1.2.3",
    "1m0s": "1m0s",
    "~": None,
    "=": "=",
    "a=b": "a=b",
    "'y'": "y",
    '"1e3"': "1e3",
}


@pytest.mark.parametrize("word", WORDS)
def test_a_word_is_what_kubernetes_reads(word):
    expected = WORDS[word]
    found = document(f"key: {word}\n")["key"]
    assert (type(expected), expected) == (type(found), found)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("key:\tword\nmore: 1\n", {"key": "word", "more": 1}, id="after a key"),
        pytest.param("key: word\t# said by hand\n", {"key": "word"}, id="before a comment"),
        pytest.param("key: word \t\nmore: 1\n", {"key": "word", "more": 1}, id="at the end of a line"),
        pytest.param("key: a \tb\nmore: c\t\td\n", {"key": "a \tb", "more": "c\t\td"}, id="within a text"),
        pytest.param("key: a\t\n  b\n", {"key": "a b"}, id="before a text goes on"),
        pytest.param("key:\t# said by hand\n- word\t\n", {"key": ["word"]}, id="at the end of an entry"),
        pytest.param("key: {a:\t1,\n\tb: 2}\n", {"key": {"a": 1, "b": 2}}, id="in braces, at the begin of a line too"),
        pytest.param("key:\n\tmore: 1\n", {}, id="at the begin of a line nobody takes one"),
        pytest.param("key:\n-\tword\n", {}, id="nor after a dash"),
    ],
)
def test_tabs_are_taken_where_kubernetes_takes_them(text, expected):
    assert expected == document(text)


def test_a_manifest_with_a_tab_is_one_and_ours_is_taken_out_of_it():
    text = manifest(f"--config={FILE}", volumes=True)
    known = seen(text, noted={"config": THEIRS}, configs={THEIRS: "kind: KubeSchedulerConfiguration\t# by hand\n"})
    looked = {**known, "target": text.replace("kind: Pod", "kind: Pod\t# by hand")}
    settings = given()
    assert [] == plan(looked, settings)["problems"]
    assert FOLDER not in job(looked, settings, plan(looked, settings), {}, remove=True)["wanted"]


@pytest.mark.parametrize("text", [*WORDS, "plain", "--config=/x", "a: b", "", "null", "<<", "="])
def test_a_text_that_is_written_is_a_text_to_kubernetes_and_to_python(text):
    made = written({"key": text})
    assert ({"key": text}, {"key": text}) == (document(made), yaml.safe_load(made))


def test_not_a_number_is_one_to_neither():
    assert "nan" == str(document("key: .NaN\n")["key"])


@pytest.mark.parametrize("text", ["", "- a\n", "key: [\n", "key: 0o9x\n---\nother: 1\n", "a: !!python/object:x {}\n"])
def test_what_is_no_mapping_is_none(text):
    assert document(text) in ({}, {"key": "0o9x"})


def edited(**environment: str) -> str:
    """By hand: words without quotes, which the kubelet takes for texts."""
    made = yaml.safe_load(manifest(f"--config={FILE}", volumes=True))
    text = yaml.safe_dump(made)
    lines = "".join(f"    - name: {name}\n      value: {value}\n" for name, value in environment.items())
    return text.replace("    image: x\n", f"    env:\n{lines}    image: x\n")


def test_a_manifest_with_dates_and_times_is_taken_back_to_what_it_was():
    """The kubelet starts no scheduler where a variable's value is a number, or a day."""
    values = {"SINCE": "2026-11-27", "AT": "22:22", "WHO": "'y'", "SIZE": "'1e3'"}
    looked = seen(edited(**values), noted={"config": THEIRS}, configs={THEIRS: yaml.safe_dump(KIND)})
    settings = given()
    made = job(looked, settings, plan(looked, settings), {}, remove=True)
    (container,) = document(made["wanted"])["spec"]["containers"]
    assert {"SINCE": "2026-11-27", "AT": "22:22", "WHO": "y", "SIZE": "1e3"} == {
        one["name"]: one["value"] for one in container["env"]
    }
    assert FOLDER not in made["wanted"]


def test_a_configuration_of_theirs_keeps_its_names():
    theirs = yaml.safe_dump(KIND) + "profiles:\n- schedulerName: 'n'\n- schedulerName: '1e3'\n- schedulerName: 10:30\n"
    looked = seen(manifest(f"--config={THEIRS}"), configs={THEIRS: theirs})
    made = document(plan(looked, given())["content"])
    assert ["n", "1e3", "10:30"] == [one["schedulerName"] for one in made["profiles"]]


def test_kubeadms_configuration_keeps_its_words():
    """kubeadm reads `n` without quotes as false, where a text has to be, and upgrades no more."""
    said = {"apiVersion": "kubeadm.k8s.io/v1beta4", "clusterName": "n", "certSANs": ["é.example", "1e3"]}
    made = filters("readygate_scheduler_config")["readygate_scheduler_for_kubeadm"](said)
    assert (said, True) == (document(made), "é.example" in made)
