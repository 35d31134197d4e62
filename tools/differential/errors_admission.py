"""Errors for the admission of pods."""

from tools.differential.planted_error import Planted

_ADMISSION, _FITTING, _REQUESTS = "kubelet/pods/admission.py", "kubelet/pods/node_fit.py", "kubelet/pods/requests.py"
ADMISSION = (
    Planted("admission", _ADMISSION, "pod.host_network and not pod.host_users", "pod.host_network"),
    Planted("admission", _ADMISSION, "if all_containers_could_restart(pod) else []", "if False else []"),
    Planted("admission", _ADMISSION, "if len(others) + 1 > left", "if len(others) > left"),
    Planted("admission", _ADMISSION, "if name not in left and is_extended_resource(name):", "if name not in left:"),
    Planted("admission", _ADMISSION, "asked.get(name, 0) > 0 and asked[name]", "asked.get(name, 0)"),
    Planted("admission", _ADMISSION, "_IN_ORDER = (CPU, MEMORY, STORAGE)", "_IN_ORDER = (MEMORY, CPU, STORAGE)"),
    Planted("admission", _ADMISSION, "pod.static or taints_fit(pod, node)", "taints_fit(pod, node)"),
    Planted("admission", _ADMISSION, 'pod.node_name in ("", node.name)', "True"),
    Planted("admission", _ADMISSION, "if pod.placement.os not in (None, LINUX):", "if False:"),
    Planted("admission", _REQUESTS, "_raise(init, _sum((sidecars, asked)))", "_raise(init, asked)"),
    Planted("admission", _REQUESTS, "found, sidecars = _sum((found, asked)), _sum", "found, sidecars = found, _sum"),
    Planted("admission", _REQUESTS, "if name in (CPU, MEMORY) or name.startswith(HUGE_PAGES)}", "}"),
    Planted("admission", _REQUESTS, "name: math.ceil(", "name: int("),
    Planted("admission", _REQUESTS, "_amounts(pod.placement.overhead.items())", "{}"),
    Planted("admission", _REQUESTS, "if name in (CPU, MEMORY, STORAGE, PODS) or is_scalar(name)", ""),
    Planted("admission", _REQUESTS, 'if kind == "requests"', "if True"),
    Planted("admission", _FITTING, "node.labels.get(key) != value", 'node.labels.get(key, "") != value'),
    Planted("admission", _FITTING, "if not term.labels and not term.fields:", "if False:"),
    Planted("admission", _FITTING, "or len(one.values) != 1:", "or not one.values:"),
    Planted("admission", _FITTING, "if taint.effect == NO_EXECUTE", "if taint.effect"),
    Planted("admission", _FITTING, 'toleration.key not in ("", taint.key)', "toleration.key != taint.key"),
    Planted("admission", _FITTING, 'toleration.operator in ("", "Equal")', 'toleration.operator == "Equal"'),
    Planted(
        "admission", _FITTING, "(*(c for c in pod.init_containers if is_sidecar(c)), *pod.containers)", "pod.containers"
    ),
    Planted("admission", _FITTING, "or ANY_ADDRESS in (one[0], other[0])", ""),
    Planted("admission", _FITTING, "one[1:] == other[1:]", "one[2] == other[2]"),
)
