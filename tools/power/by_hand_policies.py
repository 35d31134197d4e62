"""Faults of the admission policies: each lets a program or a tenant write what it must not, or refuses what it must."""

from tools.power.by_hand import ByHand

_TESTS = (
    "tests/charts/test_chart.py",
    "tests/charts/test_roles.py",
    "tests/playbooks/test_rights.py",
    "tests/plane/test_policies.py",
    "tests/plane/test_outlets_policy.py",
    "tests/plane/test_policy_changes.py",
    "tests/plane/test_tenant_edit.py",
)
_FOLDER = "charts/readygate/templates"
_AGENT, _EXTENDER = f"{_FOLDER}/agent/admission.yaml", f"{_FOLDER}/extender/admission.yaml"
_SHARED = f"{_FOLDER}/_policies.tpl"


def _row(file: str, old: str, new: str, what: str) -> ByHand:
    return ByHand("policies", file, old, new, what, _TESTS, regenerate=True)


POLICIES: tuple[ByHand, ...] = (
    _row(
        _AGENT,
        "      && request.userInfo.extra['authentication.kubernetes.io/pod-name'] == [object.metadata.name]\n",
        "",
        "an agent may write to a pod of another name",
    ),
    _row(
        _AGENT,
        "request.userInfo.extra['authentication.kubernetes.io/pod-uid'] == [object.metadata.uid]",
        "request.userInfo.extra['authentication.kubernetes.io/pod-uid'] != [object.metadata.uid]",
        "an agent may write to every pod but its own",
    ),
    _row(
        _AGENT,
        "expression: \"object.spec.?holderIdentity.orValue('') == object.metadata.name\"",
        "expression: \"object.spec.?holderIdentity.orValue('') != ''\"",
        "an agent may beat in the name of another node",
    ),
    _row(_AGENT, "operations: [CREATE, UPDATE]", "operations: [CREATE]", "an agent may take over any Lease"),
    _row(
        _AGENT,
        "expression: variables.foreign == variables.oldForeign",
        'expression: "true"',
        "an agent may forge the pod's other conditions",
    ),
    _row(
        _SHARED,
        "variables.own.size() <= 1\n",
        "variables.own.size() <= 10\n",
        "a condition may be written ten times",
    ),
    _row(
        _SHARED,
        "&& variables.oldStatus.all(key, key == 'conditions' || key in variables.status)",
        "",
        "fields may be removed",
    ),
    _row(
        _SHARED,
        "['system:nodes', 'system:serviceaccounts:kube-system'])",
        "['system:nodes', 'system:serviceaccounts'])",
        "every service account may do what controllers may",
    ),
    _row(
        _EXTENDER,
        "      && variables.oldAnnotations.all(key, key == '{{ include \"readygate.kick\" . }}'"
        " || key in variables.annotations)\n",
        "",
        "the extender may remove annotations of a node",
    ),
    _row(
        _EXTENDER,
        "expression: \"object.metadata.name == '{{ $name }}'\"",
        "expression: \"object.metadata.name != ''\"",
        "the extender may create any Lease of its namespace",
    ),
    _row(
        _EXTENDER,
        "      variables.event.?message.orValue('').size() <= 1000 &&",
        "      variables.event.?message.orValue('').size() <= 100000 &&",
        "the extender may write Events of any length",
    ),
    _row(
        _EXTENDER,
        "      operations: [CREATE, UPDATE, DELETE]\n      resources: [configmaps]",
        "      operations: [CREATE, UPDATE]\n      resources: [configmaps]",
        "a tenant may delete orders",
    ),
    _row(
        _EXTENDER,
        "      !variables.decides\n      ||",
        "      variables.decides\n      ||",
        "orders are open to tenants, and other ConfigMaps closed",
    ),
    _row(
        _EXTENDER,
        "      resources: [pods/exec, pods/attach]",
        "      resources: [pods/exec]",
        "a tenant may attach to an agent",
    ),
    _row(
        _EXTENDER,
        "object.?type.orValue('') == 'kubernetes.io/service-account-token'",
        "object.?type.orValue('') == 'kubernetes.io/dockerconfigjson'",
        "a tenant may take a token of the extender's account",
    ),
)
