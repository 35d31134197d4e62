"""What is seen of a scheduler before the extender goes: does it still ask, does kubeadm's ConfigMap name us?"""

import pytest
import yaml

from tests.playbooks.seeing import (
    BEFORE_URL,
    EXTENDER,
    FIRST,
    KIND,
    THEIRS,
    URL,
    asks,
    cluster,
    given,
    manifest,
    seen,
    stays,
    unread,
)
from tests.playbooks.test_scheduler_host import OURS

NOT_SEEN = {"configz": {"error": "connection refused"}}
NEVER = "it is unknown whether kube-scheduler asks: connection refused"


@pytest.mark.parametrize(
    ("text", "more", "expected"),
    [
        pytest.param(OURS, {}, [f"kube-scheduler asks {URL}"], id="where the inventory says"),
        pytest.param(
            OURS,
            {"configz": {"extenders": [FIRST, {"urlPrefix": "https://127.0.0.1:337/"}]}},
            ["kube-scheduler asks https://127.0.0.1:337/"],
            id="the other form, for an inventory may have changed",
        ),
        pytest.param(
            OURS,
            {"configz": {"extenders": [{"urlPrefix": BEFORE_URL}]}},
            [f"kube-scheduler asks {BEFORE_URL}"],
            id="the port of an earlier release",
        ),
        pytest.param(OURS, {"configz": {"extenders": [FIRST]}}, [], id="somebody else"),
        pytest.param(OURS, {"configz": {}}, [], id="nobody"),
        pytest.param(manifest(), NOT_SEEN, [], id="a scheduler that does not answer, without a configuration"),
        pytest.param(
            manifest(f"--config={THEIRS}"),
            {**NOT_SEEN, "configs": {THEIRS: yaml.safe_dump({**KIND, "extenders": [EXTENDER]})}},
            [f"kube-scheduler asks {URL}"],
            id="one that does not, whose file has us",
        ),
        pytest.param(
            manifest(f"--config={THEIRS}"),
            {**NOT_SEEN, "configs": {THEIRS: yaml.safe_dump({**KIND, "extenders": None})}},
            [],
            id="one that does not, whose file has nobody",
        ),
        pytest.param(manifest(f"--config={THEIRS}"), NOT_SEEN, [NEVER], id="nor can its file be read"),
    ],
)
@pytest.mark.parametrize("method", ["kubeadm", "kubespray", "none", "systemd"])
def test_whether_a_scheduler_still_asks(text, more, expected, method):
    assert expected == asks(seen(text, **more), given(method=method))


@pytest.mark.parametrize(
    ("cluster", "expected"),
    [
        pytest.param(cluster({}), "", id="read"),
        pytest.param({"data": {}}, "", id="without a ClusterConfiguration"),
        pytest.param(
            {"error": 'Error from server (NotFound): configmaps "kubeadm-config" not found'}, "", id="there is none"
        ),
        pytest.param({"error": "dial tcp: refused"}, "dial tcp: refused", id="an API server that is down"),
        pytest.param(
            {"error": "kubectl failed with code 1"}, "kubectl failed with code 1", id="anything else that went wrong"
        ),
    ],
)
def test_only_an_api_server_that_says_so_has_no_configmap_of_kubeadms(cluster, expected):
    assert expected == unread(seen(OURS, cluster=cluster), given())
    assert "" == unread(seen(OURS, cluster=cluster), given(method="systemd"))


@pytest.mark.parametrize(
    ("text", "more", "method", "expected"),
    [
        pytest.param(manifest(), {}, "kubeadm", [], id="out of it"),
        pytest.param(None, {}, "kubeadm", [], id="no scheduler at all"),
        pytest.param(None, {"target": "a: ["}, "kubeadm", ["is no manifest"], id="a manifest that is none"),
        pytest.param(
            manifest(f"--config={THEIRS}"),
            {"configs": {THEIRS: yaml.safe_dump({**KIND, "extenders": [EXTENDER]})}},
            "kubespray",
            [f"asks {URL}"],
            id="in a file of somebody else's",
        ),
        pytest.param(manifest(f"--config={THEIRS}"), {}, "none", ["it is unknown"], id="in a file that cannot be read"),
    ],
)
def test_what_the_emergency_exit_could_not_end_is_told(text, more, method, expected):
    """It asks no API server, so it goes by the files."""
    found = stays(seen(text, **{"configz": {"error": "it was not requested"}, **more}), given(method=method))
    assert (len(expected), True) == (
        len(found),
        all(words in line for words, line in zip(expected, found, strict=True)),
    )
