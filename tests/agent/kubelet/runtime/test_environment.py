"""What a container is started with, as pkg/kubelet/kubelet_pods.go and third_party/forked/golang/expansion have it."""

from dataclasses import replace

import pytest

from agent.kubelet.runtime.base import StartError
from agent.kubelet.runtime.environment import Place, command_line, environment
from agent.wire.model import Container, EnvVar, Pod

POD = Pod(
    uid="uid-1",
    name="pod-1",
    namespace="ns-1",
    node_name="node-1",
    service_account="sa-1",
    labels={"b": "2", "a": "1"},
    annotations={"note": "x"},
)
PLACE = Place("127.0.1.2", "127.0.1.1", {"PATH": "/bin"})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("$(A)", "1", id="a reference"),
        pytest.param("$(A)-$(B)", "1-2", id="two references"),
        pytest.param("$(C)", "$(C)", id="an unknown one stays"),
        pytest.param("$$(A)", "$(A)", id="escaped"),
        pytest.param("$$$(A)", "$1", id="escaped dollar before a reference"),
        pytest.param("$A ${A} $", "$A ${A} $", id="shell syntax is not ours"),
        pytest.param("$(A", "$(A", id="not closed"),
        pytest.param("", "", id="empty"),
    ],
)
def test_expansion(text, expected):
    own = (EnvVar("A", "1"), EnvVar("B", "2"))
    made = command_line(Container("c", command=("echo",), args=(text,), env=own), {"A": "1", "B": "2"}, ["pause"])
    assert ["echo", expected] == made


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("metadata.name", "pod-1"),
        ("metadata.namespace", "ns-1"),
        ("metadata.uid", "uid-1"),
        ("metadata.labels['a']", "1"),
        ("metadata.labels['none']", ""),
        ("metadata.annotations['note']", "x"),
        ("metadata.labels", 'a="1"\nb="2"'),
        ("spec.nodeName", "node-1"),
        ("spec.serviceAccountName", "sa-1"),
        ("status.podIP", "127.0.1.2"),
        ("status.hostIP", "127.0.1.1"),
    ],
)
def test_downward_api(path, expected):
    made = environment(POD, Container("c", env=(EnvVar("X", field_path=path),)), PLACE)
    assert expected == made["X"]


def test_values_are_expanded_with_those_before_them():
    env = (EnvVar("A", "1"), EnvVar("B", "$(A)2 $(C)"), EnvVar("C", "3"))
    made = environment(POD, Container("c", env=env), PLACE)
    assert ("1", "12 $(C)", "3") == (made["A"], made["B"], made["C"])


def test_every_container_is_told_its_address_and_name():
    made = environment(POD, Container("c"), PLACE)
    assert {"PATH": "/bin", "HOSTNAME": "pod-1", "READYGATE_POD_IP": "127.0.1.2"} == made


@pytest.mark.parametrize(
    ("variable", "expected"),
    [
        pytest.param(
            EnvVar("X", unsupported="secretKeyRef"),
            "env X: secretKeyRef is not supported here; only values and fieldRef are",
            id="a secret",
        ),
        pytest.param(
            EnvVar("X", field_path="spec.host"), "env X: fieldPath spec.host is not supported", id="an unknown field"
        ),
    ],
)
def test_a_source_that_cannot_be_read(variable, expected):
    with pytest.raises(StartError) as caught:
        environment(POD, Container("c", env=(variable,)), PLACE)
    assert ("CreateContainerConfigError", expected) == (caught.value.reason, str(caught.value))


@pytest.mark.parametrize(
    ("container", "expected"),
    [
        pytest.param(Container("c", command=("a", "$(X)"), args=("b$(X)",)), ["a", "1", "b1"], id="command and args"),
        pytest.param(Container("c"), ["pause"], id="neither: a pause"),
    ],
)
def test_command_line(container, expected):
    assert expected == command_line(replace(container, env=(EnvVar("X", "1"),)), {"X": "1"}, ["pause"])


def test_a_command_sees_the_variables_of_its_own_container_only():
    """The kubelet puts in what the spec names; what every process inherits is for the shell."""
    container = Container("c", command=("$(HOSTNAME) $(PATH) $(MINE) $(READYGATE_POD_IP)",), env=(EnvVar("MINE", "1"),))
    made = command_line(container, environment(POD, container, PLACE), ["pause"])
    assert made == ["$(HOSTNAME) $(PATH) 1 127.0.1.2"]


def test_a_variable_that_is_absent_is_none_of_its_own_though_every_process_has_one_of_that_name():
    container = Container("c", command=("$(HOSTNAME)",), env=(EnvVar("HOSTNAME", absent=True),))
    assert ["$(HOSTNAME)"] == command_line(container, environment(POD, container, PLACE), ["pause"])


def test_what_an_optional_reference_would_give_is_not_there():
    env = (EnvVar("X", absent=True), EnvVar("Y", "a$(X)"))
    made = environment(POD, Container("c", env=env), PLACE)
    assert ("a$(X)", False) == (made["Y"], "X" in made)


def test_annotations_are_quoted_as_go_quotes_them():
    pod = replace(POD, annotations={"B": 'a\\b "c"\n\t\x01\u2028é', "A": ""})
    made = environment(pod, Container("c", env=(EnvVar("X", field_path="metadata.annotations"),)), PLACE)
    assert made["X"] == 'A=""\nB="a\\\\b \\"c\\"\\n\\t\\x01\\u2028é"'


def test_args_alone_are_refused():
    with pytest.raises(StartError) as caught:
        command_line(Container("c", args=("x",)), {}, ["pause"])
    assert caught.value.reason == "CreateContainerError"
