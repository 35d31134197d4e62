"""The reader: a privileged container beside the agent, for the facts that an ordinary pod does not get."""

from typing import Any

import pytest

from agent import settings
from kube import contract
from tests.charts.rendering import SUPPORTED, Objects, Refused, objects, rendered

IMAGE = 'image={"repository":"localhost/readygate","tag":"dev"}'
PLAIN = {"agent.yaml"}


@pytest.fixture(scope="module")
def sent() -> Objects:
    return objects(SUPPORTED["reader"])


def pod_of(sent: Objects) -> Any:
    return sent["DaemonSet", contract.NAMESPACE, contract.NAME_AGENT]["spec"]["template"]["spec"]


def container(sent: Objects, name: str) -> Any:
    (found,) = [one for one in pod_of(sent)["containers"] if one["name"] == name]
    return found


def files(sent: Objects) -> dict[str, str]:
    (data,) = [o["data"] for (kind, _, _), o in sent.items() if kind == "ConfigMap" and "agent.yaml" in o["data"]]
    return dict(data)


def configuration(sent: Objects, name: str) -> settings.Settings:
    environ = {"POD_NAME": "p", "POD_NAMESPACE": contract.NAMESPACE, "POD_UID": "u"}
    return settings.parse(files(sent)[name].encode(), environ)


@pytest.mark.parametrize(
    ("profile", "expected"),
    [
        pytest.param("minimal", ["pod-threads"], id="minimal"),
        pytest.param("default", ["certificates", "kernel-log", "pod-threads"], id="default"),
        pytest.param("gpu", ["certificates", "kernel-log", "pod-threads"], id="gpu"),
        pytest.param("storage", ["certificates", "kernel-log", "pod-threads"], id="storage"),
    ],
)
def test_it_runs_what_of_a_list_a_pod_leaves_out(profile: str, expected: list[str]) -> None:
    made = objects(given=[IMAGE, f'agent={{"checkProfile":"{profile}","reader":{{"enabled":true}}}}'])
    assert expected == [check.name for check in configuration(made, "reader.yaml").checks]
    in_the_pod = {check.name for check in configuration(made, "agent.yaml").checks}
    assert "reader" in in_the_pod
    assert not in_the_pod & set(expected), "nobody looks twice"


def test_it_publishes_nothing_and_the_agent_asks_it_where_it_listens(sent: Objects) -> None:
    reader, agent = configuration(sent, "reader.yaml"), configuration(sent, "agent.yaml")
    (asks,) = [check.reader for check in agent.checks if check.reader is not None]
    assert (reader.listen.port, False) == (asks.port, reader.condition.publish)
    assert [reader.listen.port] == [port["containerPort"] for port in container(sent, "reader")["ports"]]


def test_it_is_privileged_without_the_token_and_the_agent_beside_it_is_as_ever(sent: Objects) -> None:
    reader, agent = container(sent, "reader"), container(sent, "agent")
    assert True is reader["securityContext"]["privileged"]
    assert {"capabilities": {"drop": ["ALL"]}, "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True} == (
        agent["securityContext"]
    )
    empty = {volume["name"] for volume in pod_of(sent)["volumes"] if "emptyDir" in volume}
    token = [
        m["name"] for m in reader["volumeMounts"] if m["mountPath"] == "/var/run/secrets/kubernetes.io/serviceaccount"
    ]
    assert token
    assert set(token) <= empty
    assert not [m for m in agent["volumeMounts"] if m["mountPath"] == "/host"]


def test_it_writes_only_where_it_is_let(sent: Objects) -> None:
    of_host = {v["name"]: v["hostPath"]["path"] for v in pod_of(sent)["volumes"] if "hostPath" in v}
    mounts = [mount for mount in container(sent, "reader")["volumeMounts"] if mount["name"] in of_host]
    assert ["/var/lib/data"] == [of_host[mount["name"]] for mount in mounts if not mount.get("readOnly", False)]


def test_its_port_is_closed_but_for_who_collects_metrics_and_those_are_collected(sent: Objects) -> None:
    policy = sent["NetworkPolicy", contract.NAMESPACE, contract.NAME_AGENT]["spec"]["ingress"]
    agents = {"podSelector": {"matchLabels": {"app.kubernetes.io/name": contract.NAME_AGENT}}}
    assert [[9375, 9378], [9375]] == [[port["port"] for port in rule["ports"]] for rule in policy]
    assert [agents] == policy[1]["from"], "other agents ask the agent, and never the reader"
    monitor = sent["PodMonitor", contract.NAMESPACE, contract.NAME_AGENT]["spec"]
    assert ["health", "reader"] == [one["port"] for one in monitor["podMetricsEndpoints"]]


def test_another_configuration_of_it_is_another_roll_out() -> None:
    def told(level: str) -> set[str]:
        given = f'agent={{"logLevel":"info","reader":{{"enabled":true,"checks":[{{"name":"a","timeSync":{level}}}]}}}}'
        made = objects(given=[IMAGE, given])
        template = made["DaemonSet", contract.NAMESPACE, contract.NAME_AGENT]["spec"]["template"]
        (volume,) = [v["configMap"]["name"] for v in template["spec"]["volumes"] if "configMap" in v]
        return {template["metadata"]["annotations"]["readygate.dev/configuration"], volume}

    assert told("{}") & told('{"warnMilliseconds":50}') == set()


def test_without_it_there_is_none_of_it() -> None:
    made = objects(SUPPORTED["profile-default"])
    assert PLAIN == set(files(made))
    assert ["agent"] == [one["name"] for one in pod_of(made)["containers"]]
    assert "hostPID" not in pod_of(made)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        pytest.param(
            'agent={"checkProfile":"","reader":{"enabled":true}}', "agent.reader needs checks", id="nothing to do"
        ),
        pytest.param('agent={"reader":{"enabeld":true}}', "enabeld", id="a key misspelt"),
        pytest.param('agent={"reader":{"writes":["/"]}}', "/agent/reader/writes/0", id="the whole host to write to"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_changed(given: str, said: str) -> None:
    with pytest.raises(Refused) as refused:
        rendered(given=[IMAGE, given])
    assert said in str(refused.value)
