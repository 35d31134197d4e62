"""What the playbooks make of a cluster that kubespray has set up: they say what its inventory needs, and verify."""

import json
import re
from typing import Any

import pytest
import yaml
from readygate_scheduler.scheduler import address_of

from tests.playbooks import kubespray
from tests.playbooks.rendering import plain, render
from tests.playbooks.seeing import FIRST, URL, cluster, findings, given, job, kubeadm, plan, seen

PREFIX = "readygate_scheduler_config"


def looked(extenders: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """A host whose scheduler has loaded what kubespray's file says with these extenders."""
    text = kubespray.configuration(extenders)
    loaded = yaml.safe_load(text).get("extenders", [])
    found = {"configs": {kubespray.FILE: text}, "configz": {"extenders": loaded}, "files": [], **more}
    return seen(kubespray.manifest(), cluster=cluster(kubespray.SECTION), **found)


def printed(inventory: dict[str, Any]) -> list[dict[str, Any]]:
    """What the play tells the operator to put into group_vars/k8s_cluster."""
    told = str(render(PREFIX, inventory)(f"__{PREFIX}_remedy.kubespray"))
    (text,) = re.findall(r"k8s_cluster: (\{.*\}) and run", told)
    (name, extenders) = json.loads(text).popitem()
    assert name == "kube_scheduler_extenders"
    return list(extenders)


@pytest.mark.parametrize(
    ("inventory", "others"),
    [
        pytest.param({}, [], id="the defaults"),
        pytest.param({"mode": "enforce"}, [], id="enforce"),
        pytest.param({"weight": 5, "managed_resources": ["nvidia.com/gpu"]}, [FIRST], id="more, beside another"),
    ],
)
def test_with_what_is_printed_in_its_inventory_the_scheduler_is_found_to_ask_us(inventory, others):
    settings = {"method": "kubespray", **inventory}
    named = {f"{PREFIX}_{key}": value for key, value in settings.items()}
    before, after = looked(others), looked([*others, *printed(named)])
    (missing,) = findings(before, given(**settings), plan(before, given(**settings)))
    assert "does not ask" in missing
    assert [] == findings(after, given(**settings), plan(after, given(**settings)))
    assert [] == plan(after, given(**settings))["problems"]


def test_under_the_method_kubeadm_it_is_refused_with_the_name_of_its_own():
    (problem,) = plan(looked([]), given())["problems"]
    assert "kubespray runs this scheduler" in problem
    assert "readygate_scheduler_config_method: kubespray" in problem


def test_its_scheduler_answers_at_every_address_and_is_asked_where_there_is_no_ipv6():
    assert "https://127.0.0.1:10259" == address_of(kubespray.COMMAND)


@pytest.mark.parametrize(("word", "expected"), [("False", False), ("True", True), ("true", True), ("0", False)])
def test_a_word_of_pythons_is_carried_as_kube_scheduler_reads_it(word, expected):
    text = kubespray.manifest().replace("--profiling=False", f"--profiling={word}")
    text = text.replace(f"        - --config={kubespray.FILE}\n", "").replace(f"    - --config={kubespray.FILE}\n", "")
    made = plan(seen(text), given())
    assert (expected, []) == (made["configuration"]["enableProfiling"], made["problems"])


def test_after_kubespray_is_given_up_its_file_is_merged_by_its_content():
    """Whoever moves the content into a variable: nothing of kubespray's is lost, and its file stays where it is."""
    base = yaml.safe_load(kubespray.configuration([FIRST]))
    settings = given(base=base)
    made = plan(looked([FIRST]), settings)
    kept = {key: value for key, value in base.items() if key != "extenders"}
    assert kept == {key: made["configuration"][key] for key in kept}
    assert [FIRST["urlPrefix"], URL] == [e["urlPrefix"] for e in made["configuration"]["extenders"]]
    clusters = kubeadm(looked([FIRST]), settings, made)["clusters"]
    assert kubespray.SECTION["extraVolumes"][0] in clusters["wanted"]["scheduler"]["extraVolumes"]
    assert kubespray.SECTION == plain(clusters["today"]["scheduler"])
    renderings = dict.fromkeys(("today", "wanted", "without"), kubespray.manifest())
    assert kubespray.FILE not in job(looked([FIRST]), settings, made, renderings)["files"]
