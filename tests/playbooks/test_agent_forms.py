"""Where the agent runs, by one word: in pods, as a service of the nodes, or both, and what waits for which."""

import re

import pytest
import yaml

from agent.wire.condition import ANNOTATION_SPEAKER, SPEAKER_NODE
from kube import contract
from tests.playbooks.rendering import PLAYBOOKS, ROLES, objects, plain, render

DAEMON_SET = ("DaemonSet", contract.NAMESPACE, contract.NAME_AGENT)
OWN_PODS = {"readygate_extender_configuration": {"gates": [{"healthPods": {"namespace": "a", "labelSelector": "b=c"}}]}}


@pytest.mark.parametrize(
    ("form", "has_pods", "speaker"),
    [("daemonset", True, None), ("both", True, SPEAKER_NODE), ("node", False, None)],
)
def test_by_one_word_the_agent_is_in_pods_a_service_or_both(form, has_pods, speaker):
    sent = objects("readygate_agent", {"readygate_agent_form": form} | OWN_PODS)
    kinds = {kind for kind, _, _ in sent}
    assert {"Namespace", "ServiceAccount"} <= kinds
    assert has_pods == (DAEMON_SET in sent)
    assert has_pods == bool({"DaemonSet", "ConfigMap", "NetworkPolicy"} & kinds)
    if has_pods:
        annotations = sent[DAEMON_SET]["spec"]["template"]["metadata"]["annotations"]
        assert speaker == annotations.get(ANNOTATION_SPEAKER)


def test_with_the_pods_go_all_their_configurations_and_no_other_config_map():
    tasks = {task["name"]: task for task in yaml.safe_load((ROLES / "readygate_agent/tasks/main.yml").read_text())}
    task, value = tasks["Delete the configurations of deleted pods"], render("readygate_agent", {})
    words = [re.split(r"{{ | }}", word) for word in task["ansible.builtin.command"]["argv"]]
    argv = ["".join(str(value(part)) if at % 2 else part for at, part in enumerate(word)) for word in words]
    (own,) = [one for (kind, *_), one in objects("readygate_agent", {}).items() if kind == "ConfigMap"]
    labels = ",".join(f"{key}={value}" for key, value in sorted(own["metadata"]["labels"].items()))
    assert ["delete", "configmaps", f"--selector={labels}"] == argv[5:8]
    assert (own["metadata"]["namespace"], "readygate_agent_form == 'node'") == (argv[4], task["when"])


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(OWN_PODS, [], id="every gate has health pods of its own"),
        pytest.param({}, ["name the health pods of each gate"], id="the gate of the defaults waits for ours"),
        pytest.param(
            {
                "readygate_extender_configuration": {
                    "gates": [*OWN_PODS["readygate_extender_configuration"]["gates"], {}]
                }
            },
            ["name the health pods of each gate"],
            id="so does one of several",
        ),
    ],
)
def test_as_a_service_alone_no_gate_may_wait_for_pods_that_there_are_not(given, expected):
    told = plain(render("readygate_agent", {"readygate_agent_form": "node"} | given)("__readygate_agent_mistakes"))
    assert len(expected) == len(told)
    assert all(words in line for words, line in zip(expected, told, strict=True))


def test_what_waits_for_pods_comes_after_the_service_that_speaks_for_them():
    plays = [play["name"] for play in yaml.safe_load((PLAYBOOKS / "site.yml").read_text())]
    assert plays[plays.index("Agent on every node") :][:4] == [
        "Agent on every node",
        "Agent as a service on every node",
        "Pods whose condition the service writes",
        "Extender next to every scheduler, one control plane host at a time",
    ]
    last = yaml.safe_load((PLAYBOOKS / "roles/readygate_agent/tasks/main.yml").read_text())[-1]
    waits = (last["ansible.builtin.include_tasks"], last["when"])
    assert waits == ("rollout.yml", "readygate_agent_form == 'daemonset'")
