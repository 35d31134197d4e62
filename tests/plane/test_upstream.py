"""What kube-scheduler asks of an extender, and where it asks, is the same in every minor version that is supported.

The functions are read from the sources of each version and compared with the table below by the hash of their text. A
version that changes one of them is shown by name: look at the change, see that docs/versions.md still holds, and write
the new hash down.
"""

import hashlib
import json
import re
import subprocess
from pathlib import Path

import pytest

from tools.testbed.hosts.images import ETCD
from tools.testbed.shared import binaries

MINORS = tuple(binaries.VERSIONS)
TYPES = "extender/v1/types.go"
EXTENDER = "extender.go"
CALLERS = {
    "schedule_one.go": "findNodesThatPassExtenders prioritizeNodes Scheduler.hasExtenderFilters Scheduler.hasScoring "
    "Scheduler.bind Scheduler.extendersBinding Scheduler.findNodesThatFitPod Scheduler.findNodesThatPassFilters "
    "Scheduler.schedulePod Scheduler.evaluateNominatedNode",
    "framework/preemption/preemption.go": "Evaluator.callExtenders Evaluator.Preempt Evaluator.evaluate",
    "framework/runtime/framework.go": "frameworkImpl.Extenders frameworkImpl.computeBatchablePlugins",
    "scheduler.go": "buildExtenders",
}
# The same in all of them; of extender.go and of the JSON types the whole file.
SAME = {
    "extender.go": "12091018fd",
    "extender/v1/types.go": "52f1be9074",
    "findNodesThatPassExtenders": "c8f0ec7b96",
    "prioritizeNodes": "dbddddc9c5",
    "Scheduler.hasExtenderFilters": "0d72344b10",
    "Scheduler.hasScoring": "78b762497c",
    "Scheduler.bind": "832220273e",
    "Scheduler.extendersBinding": "63ea9c32d2",
    "frameworkImpl.Extenders": "4623741cfd",
    "frameworkImpl.computeBatchablePlugins": "06c1c2a9ed",
    "buildExtenders": "76638fb9e5",
}
# What differs, by minor version; "" where there is no such function.
CHANGED = {
    "Scheduler.findNodesThatFitPod": ("7bad66064d", "9e6d5bd57c", "9e6d5bd57c"),
    "Scheduler.findNodesThatPassFilters": ("4e2a30ef1e", "6b3e3b7dd9", "6b3e3b7dd9"),
    "Scheduler.schedulePod": ("a1ec4e15a2", "b7ddfba039", "62abc5f16e"),
    "Scheduler.evaluateNominatedNode": ("b416c0578e", "5fea26290b", "5fea26290b"),
    "Evaluator.callExtenders": ("c1f9c0f57e", "c1f9c0f57e", "323c3952ee"),
    "Evaluator.Preempt": ("e97e57895d", "b27052d46d", "d3ea73991d"),
    "Evaluator.evaluate": ("", "", "2f4d2ff363"),
}


@pytest.fixture(scope="module", params=MINORS)
def minor(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def read(minor: str) -> dict[str, str]:
    """Function, or file, -> hash of its text."""
    scheduler = _source(minor, "k8s.io/kubernetes") / "pkg" / "scheduler"
    read = {
        EXTENDER: _hash((scheduler / EXTENDER).read_text()),
        TYPES: _hash((_source(minor, "k8s.io/kube-scheduler") / TYPES).read_text()),
    }
    for file, names in CALLERS.items():
        found = functions((scheduler / file).read_text())
        read |= {name: _hash(found[name]) if name in found else "" for name in names.split()}
    return read


def test_what_is_asked_and_where_is_what_was_looked_at(read, minor):
    expected = SAME | {name: hashes[MINORS.index(minor)] for name, hashes in CHANGED.items()}
    assert expected == read


def test_no_other_function_calls_an_extender(minor):
    """Such a caller would ask in a way that nobody has looked at."""
    scheduler = _source(minor, "k8s.io/kubernetes") / "pkg" / "scheduler"
    calls = re.compile(r"\.(Filter|Prioritize|ProcessPreemption|Bind)\(.*\)|Extenders\(\)|range .*[eE]xtenders")
    known = {name for names in CALLERS.values() for name in names.split()}
    seen = set()
    for path in scheduler.rglob("*.go"):
        text = path.read_text()
        if path.name.endswith("_test.go") or {"testing", "apis"} & set(path.parts) or "xtender" not in text:
            continue
        for name, body in functions(text).items():
            if path != scheduler / EXTENDER and re.search(r"[eE]xtender", body) and calls.search(body):
                seen.add(name)
    assert seen - known == set()


def test_pods_come_without_managed_fields_where_their_informer_keeps_its_transform(minor):
    """docs/versions.md; what a request really holds is seen in test_filter.py."""
    scheduler = functions((_source(minor, "k8s.io/kubernetes") / "pkg" / "scheduler" / "scheduler.go").read_text())
    assert "SetManagedFields(nil)" in scheduler["newPodInformer"]
    assert re.search(r"InformerFor\(&v1\.Pod\{\}, .*newPodInformer", scheduler["NewInformerFactory"], re.DOTALL)
    factory = functions((_source(minor, "k8s.io/client-go") / "informers" / "factory.go").read_text())
    kept = re.search(
        r"\tif f\.transform != nil \{\n\s*informer\.SetTransform\(", factory["sharedInformerFactory.InformerFor"]
    )
    assert (minor != "1.35") == (kept is not None)


def test_the_hosts_have_the_etcd_that_kubeadm_asks_for(minor):
    constants = _source(minor, "k8s.io/kubernetes") / "cmd" / "kubeadm" / "app" / "constants" / "constants.go"
    asked = re.search(r'^\tDefaultEtcdVersion = "(\S+)"$', constants.read_text(), re.MULTILINE)
    assert asked is not None
    assert asked[1] == ETCD[binaries.VERSIONS[minor]]


def test_the_kubelets_pods_have_the_numbers_that_we_read_them_by():
    """agent/podsapi/api.proto has messages of four of upstream's files, with fewer fields."""
    files = [
        ("kubelet", "pkg/apis/pods/v1alpha1/api.proto"),
        ("api", "core/v1/generated.proto"),
        ("apimachinery", "pkg/apis/meta/v1/generated.proto"),
        ("apimachinery", "pkg/util/intstr/generated.proto"),
    ]
    theirs: dict[str, str] = {}
    for module, file in files:
        theirs = fields_in((_source("1.37", f"k8s.io/{module}") / file).read_text()) | theirs
    ours = fields_in((binaries.SOURCE.parents[3] / "agent/podsapi/api.proto").read_text())
    assert {name: theirs.get(name) for name in ours} == ours


def fields_in(proto: str) -> dict[str, str]:
    """Message and field -> what it is, without the package of its type, and its number."""
    text = re.sub(r"//[^\n]*|\.k8s\.[a-z0-9.]+\.(?=[A-Z])", "", proto)
    return {
        f"{message}.{name}": f"{kind} = {number}"
        for message, body in re.findall(r"^message (\w+) \{\n(.*?)^\}", text, re.DOTALL | re.MULTILINE)
        for kind, name, number in re.findall(r"^\s*(\w[\w<>, ]*) (\w+) = (\d+);", body, re.MULTILINE)
    }


def functions(text: str) -> dict[str, str]:
    """Of a file that gofmt has written: a function's name, with its type before it, -> its text."""
    start = r"^func (?:\((?:\w+ )?\*?(\w+)(?:\[[^\]]*\])?\) )?(\w+)\b.*?^}\n"
    found = re.finditer(start, text, re.MULTILINE | re.DOTALL)
    return {".".join(filter(None, match.groups())): match[0] for match in found}


def _source(minor: str, module: str) -> Path:
    """In Go's module cache; fetched where it is not there yet."""
    version = binaries.VERSIONS[minor]
    if module != "k8s.io/kubernetes":
        version = f"v0.{version.removeprefix('v1.')}"
    argv = [str(binaries.go(print)), "mod", "download", "-json", f"{module}@{version}"]
    environ = binaries.go_environ()
    done = subprocess.run(argv, cwd=binaries.SOURCE, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    return Path(json.loads(done.stdout)["Dir"])


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:10]
