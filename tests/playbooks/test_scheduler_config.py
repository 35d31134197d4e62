"""The KubeSchedulerConfiguration that the scheduler role makes: what was there is kept, ours is in it once."""

import json
from typing import Any

import pytest
import yaml
from readygate_scheduler.documents import PORTS

from kube import contract
from tests.playbooks.seeing import (
    BEFORE_URL,
    CLIENT,
    EXTENDER,
    FILE,
    FIRST,
    FOLDER,
    KIND,
    LAST,
    PROFILES,
    THEIRS,
    URL,
    cluster,
    differing,
    given,
    job,
    manifest,
    plan,
    seen,
)


def configuration(text: str = "", inventory: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    made = plan(seen(text or manifest(), **more), given(**(inventory or {})))
    assert made["problems"] == []
    assert yaml.safe_load(made["content"]) == made["configuration"]
    return made["configuration"]


@pytest.mark.parametrize(
    ("mode", "ignorable", "port"),
    [
        pytest.param("protect", True, contract.PORT_DAEMON_SET, id="protect: a dead extender is passed over"),
        pytest.param(
            "enforce", False, contract.PORT_STATIC, id="enforce: pods wait for a dead extender, which is a static pod"
        ),
    ],
)
def test_the_schedulers_configuration(mode, ignorable, port):
    extender = {**EXTENDER, "ignorable": ignorable, "urlPrefix": f"http://127.0.0.1:{port}"}
    assert {**KIND, **CLIENT, "extenders": [extender]} == configuration(inventory={"mode": mode})


@pytest.mark.parametrize(
    ("inventory", "expected"),
    [
        pytest.param({"weight": 5}, {"prioritizeVerb": "prioritize", "weight": 5}, id="scores, with a weight"),
        pytest.param({"weight": "5"}, {"prioritizeVerb": "prioritize", "weight": 5}, id="a weight of the command line"),
        pytest.param(
            {"managed_resources": ["nvidia.com/gpu", "example.com/fpga"]},
            {"managedResources": [{"name": "nvidia.com/gpu"}, {"name": "example.com/fpga"}]},
            id="only pods that ask for these",
        ),
    ],
)
def test_what_is_registered_only_where_a_variable_says_so(inventory, expected):
    assert [{**EXTENDER, **expected}] == configuration(inventory=inventory)["extenders"]


def test_over_tls_the_scheduler_shows_a_certificate_and_checks_the_extenders():
    tls = {"caFile": "/etc/kubernetes/readygate/ca.crt", "certFile": "/c", "keyFile": "/k"}
    (extender,) = configuration(inventory={"tls": tls})["extenders"]
    url = {"urlPrefix": URL.replace("http:", "https:")}
    assert {**EXTENDER, **url, "enableHTTPS": True, "tlsConfig": tls} == extender


@pytest.mark.parametrize(
    ("extenders", "expected"),
    [
        pytest.param([], [EXTENDER], id="none"),
        pytest.param([FIRST, LAST], [FIRST, LAST, EXTENDER], id="others stay, ours comes last"),
        pytest.param(
            [FIRST, EXTENDER, LAST], [FIRST, EXTENDER, LAST], id="ours is there already, and is not added again"
        ),
        pytest.param(
            [FIRST, {"urlPrefix": f"{URL}/", "filterVerb": "old"}, LAST, EXTENDER],
            [FIRST, EXTENDER, LAST],
            id="ours is there twice and outdated: once, in its first place, as it is to be",
        ),
        pytest.param(
            [FIRST, {**EXTENDER, "urlPrefix": BEFORE_URL}, LAST],
            [FIRST, EXTENDER, LAST],
            id="ours is there at the port of an earlier release: it moves",
        ),
        pytest.param(
            [{**EXTENDER, "urlPrefix": f"https://localhost:{contract.PORT_STATIC}/"}, EXTENDER],
            [EXTENDER],
            id="and where another form of ours is: once, at the port of this one",
        ),
        pytest.param(
            [{"urlPrefix": BEFORE_URL, "filterVerb": "nodes"}, {**LAST, "urlPrefix": f"{BEFORE_URL}/ours"}],
            [{"urlPrefix": BEFORE_URL, "filterVerb": "nodes"}, {**LAST, "urlPrefix": f"{BEFORE_URL}/ours"}, EXTENDER],
            id="somebody else's at such a port, who is not asked as we are, stays",
        ),
    ],
)
@pytest.mark.parametrize("way", ["the file that --config names", "a variable"])
def test_an_existing_configuration_is_merged(extenders, expected, way):
    base = {**KIND, "extenders": extenders, "profiles": PROFILES, "percentageOfNodesToScore": 100}
    by_file = {"text": manifest(f"--config={THEIRS}"), "configs": {THEIRS: yaml.safe_dump(base)}}
    made = configuration(**by_file) if way.startswith("the file") else configuration(inventory={"base": base})
    assert made == {**base, **CLIENT, "extenders": expected}


def test_ours_in_place_is_not_the_base_but_what_was_there_before_it():
    base = {**KIND, "parallelism": 3}
    text = manifest(f"--config={FILE}")
    made = configuration(text, noted={"config": THEIRS}, configs={FILE: "parallelism: 9", THEIRS: yaml.safe_dump(base)})
    assert made["parallelism"] == 3
    assert "parallelism" not in configuration(text, noted={"config": ""}, configs={FILE: "parallelism: 9"})


JOINED = {**KIND, **CLIENT, "extenders": [FIRST, {**EXTENDER, "httpTimeout": "9s"}, LAST], "profiles": PROFILES}
OURS_ASKED = cluster({"extraArgs": [{"name": "config", "value": FILE}]})
THEIRS_ASKED = cluster({"extraArgs": [{"name": "config", "value": THEIRS}]})


def test_a_host_that_joined_with_our_file_keeps_what_is_not_ours_in_it():
    """It was brought there before the join, so nothing was noted on this host of the time before us."""
    made = configuration(manifest(f"--config={FILE}"), configs={FILE: yaml.safe_dump(JOINED)}, cluster=OURS_ASKED)
    assert {**JOINED, "extenders": [FIRST, EXTENDER, LAST]} == made


@pytest.mark.parametrize(
    ("more", "elsewhere", "expected"),
    [
        pytest.param({"noted": {"config": THEIRS}}, {}, (THEIRS, {"config": THEIRS}, False), id="noted here"),
        pytest.param({}, {"config": THEIRS}, (THEIRS, {"config": THEIRS}, False), id="noted on another host"),
        pytest.param({"noted": {}}, {"config": ""}, ("", {"config": ""}, False), id="none, as another host knows"),
        pytest.param({"cluster": THEIRS_ASKED}, {}, (THEIRS, {"config": THEIRS}, False), id="in kubeadm's ConfigMap"),
        pytest.param({}, {}, ("", {}, True), id="nowhere: it is not noted as none, and it would be lost"),
        pytest.param(
            {"configs": {FILE: yaml.safe_dump({**KIND, "extenders": [EXTENDER]})}},
            {},
            ("", {}, False),
            id="nowhere, and there is nothing to be lost",
        ),
    ],
)
def test_what_a_scheduler_ran_with_before_us(more, elsewhere, expected):
    looked = {"configs": {FILE: yaml.safe_dump(JOINED)}, "cluster": OURS_ASKED, **more}
    settings = {**given(), "elsewhere": elsewhere}
    found = seen(manifest(f"--config={FILE}"), **looked)
    made = plan(found, settings)
    note = job(found, settings, made, {"wanted": manifest(), "without": manifest()})["note"]
    assert expected == (made["theirs"], note, made["forgotten"])


def test_a_scheduler_without_a_configuration_gets_none_from_another_host():
    """As one whose manifest kubeadm has written anew from a file that knows nothing of us."""
    made = plan(seen(manifest(), cluster=cluster({})), {**given(), "elsewhere": {"config": THEIRS}})
    assert ("", {"config": ""}, []) == (made["theirs"], made["note"], made["problems"])


def test_a_file_of_ours_that_is_gone_where_nothing_was_noted_stops_the_play():
    made = plan(seen(manifest(f"--config={FILE}"), cluster=OURS_ASKED), given())
    (problem,) = made["problems"]
    assert [] == [word for word in (FILE, "original/noted.json", "scheduler_config_base") if word not in problem]
    assert [] == plan(seen(manifest(f"--config={FILE}"), cluster=OURS_ASKED), given(base=KIND))["problems"]


@pytest.mark.parametrize(
    "base",
    [
        pytest.param({"clientConnection": None}, id="clientConnection"),
        pytest.param({"clientConnection": {"qps": None}}, id="a key of clientConnection"),
        pytest.param({"extenders": None, "profiles": None, "parallelism": None}, id="others"),
    ],
)
def test_what_a_file_leaves_null_is_as_if_it_were_not_there(base):
    made = plan(seen(manifest("--kube-api-qps=7")), given(base={**KIND, **base}))
    assert {**KIND, "clientConnection": {**CLIENT["clientConnection"], "qps": 7}, "extenders": [EXTENDER]} == made[
        "configuration"
    ]
    assert {"clientConnection", "extenders"} == made["expect"].keys()


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(yaml.safe_dump(KIND) + "parallelism: 3\n---\n", id="with an end that begins another document"),
        pytest.param(
            yaml.safe_dump(KIND) + "parallelism: 3\n---\na: [\n", id="with another document, of which it reads none"
        ),
        pytest.param(json.dumps({**KIND, "parallelism": 3}, indent="\t"), id="JSON with tabs"),
        pytest.param(f"{yaml.safe_dump(KIND)}parallelism: 3\n".replace("\n", "\r\n"), id="lines of another system"),
    ],
)
def test_a_file_is_read_as_kube_scheduler_reads_it(content):
    """Seen with kube-scheduler of 1.36.3."""
    assert 3 == configuration(manifest(f"--config={THEIRS}"), configs={THEIRS: content})["parallelism"]


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(None, id="missing"),
        pytest.param("kind: Pod", id="of another kind"),
        pytest.param("a: [", id="no YAML"),
    ],
)
def test_a_configuration_that_cannot_be_read_stops_the_play(content):
    made = plan(seen(manifest(f"--config={THEIRS}"), configs={THEIRS: content}), given())
    (problem,) = made["problems"]
    assert THEIRS in problem
    assert "cannot be read as a KubeSchedulerConfiguration" in problem


@pytest.mark.parametrize(
    ("flag", "expected"),
    [
        pytest.param("--profiling=false", {"enableProfiling": False}, id="profiling, of CIS 1.4.1"),
        pytest.param("--profiling", {"enableProfiling": True}, id="profiling without a value"),
        pytest.param("--contention-profiling=false", {"enableContentionProfiling": False}, id="contention profiling"),
        pytest.param("--kube-api-qps=500", {"clientConnection": {"qps": 500}}, id="requests a second"),
        pytest.param("--kube_api_qps=500", {"clientConnection": {"qps": 500}}, id="with underscores, as dashes"),
        pytest.param("--kube-api-burst=900", {"clientConnection": {"burst": 900}}, id="bursts"),
        pytest.param(
            "--kube-api-content-type=application/json",
            {"clientConnection": {"contentType": "application/json"}},
            id="content type",
        ),
        pytest.param("--kubeconfig=/k", {"clientConnection": {"kubeconfig": "/k"}}, id="credentials"),
        pytest.param("--leader-elect=false", {}, id="but none that counts beside a file"),
    ],
)
def test_flags_that_a_file_switches_off_are_carried_into_it_and_expected_of_the_running_scheduler(flag, expected):
    made = plan(seen(manifest(flag)), given())
    wanted = {**KIND, **expected, "extenders": [EXTENDER]}
    wanted["clientConnection"] = {**CLIENT["clientConnection"], **expected.get("clientConnection", {})}
    assert made["configuration"] == wanted
    assert {**made["expect"], **KIND} == wanted


def test_what_the_file_says_itself_comes_before_a_flag_that_was_ignored():
    base = {**KIND, "enableProfiling": True}
    assert configuration(manifest("--profiling=false"), {"base": base})["enableProfiling"] is True


def test_the_file_is_named_after_its_content_so_that_a_change_restarts_the_scheduler():
    def name(**inventory: Any) -> str:
        return plan(seen(manifest()), given(**inventory))["file"]

    assert name() == name(mode="protect")
    assert name() != name(http_timeout="2s")
    assert name().startswith(f"{FOLDER}/kube-scheduler-")


@pytest.mark.parametrize(
    ("text", "inventory", "named"),
    [
        pytest.param(None, {}, "kubeadm does not run kube-scheduler on this host", id="no manifest"),
        pytest.param("# empty", {}, "does not exist or is no manifest", id="a manifest of nothing"),
    ],
)
def test_a_host_that_kubeadm_does_not_run_is_refused_with_the_ways_there_are(text, inventory, named):
    made = plan({**seen(None), "target": text}, given(**inventory))
    assert named in made["problems"][0]
    assert "readygate_scheduler_config_method" in made["problems"][0]


# Several hosts


def test_the_ports_of_ours_are_those_of_the_contract():
    assert contract.PORTS == PORTS


@pytest.mark.parametrize(
    ("configurations", "expected"),
    [
        pytest.param({"a": {"parallelism": 1}}, [], id="one host"),
        pytest.param({"a": {"parallelism": 1}, "b": {"parallelism": 1}}, [], id="the same on all"),
        pytest.param(
            {"a": {"parallelism": 1, "x": 1}, "b": {"parallelism": 2, "x": 1}, "c": {"x": 1}},
            ["parallelism: 1 on a; 2 on b; none on c"],
            id="what differs, and where",
        ),
        pytest.param(
            {"a": {"k": {"y": 1}}, "b": {"k": {"y": 2}}, "c": {"k": {"y": 1}}},
            ['k: {"y": 1} on a, c; {"y": 2} on b'],
            id="the hosts that agree together",
        ),
    ],
)
def test_hosts_whose_schedulers_would_get_different_configurations_are_named(configurations, expected):
    assert expected == differing({host: {"configuration": each} for host, each in configurations.items()})
