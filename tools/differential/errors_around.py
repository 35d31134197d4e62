"""Errors for the loops of workers, for lifecycle hooks, for admission, and for what a container runtime must make."""

from tools.differential.planted_error import Planted

_WORKER, _MANAGER, _TICKER = "prober/worker.py", "prober/manager.py", "probe/ticker.py"
_CONFIGS, _HOOKS = "cri/configs.py", "pods/hooks.py"
_ADMISSION, _FITTING, _REQUESTS = "pods/admission.py", "pods/fitting.py", "pods/requests.py"
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
AROUND = (
    Planted("loops", _WORKER, "                    ticker.reset(monotonic())\n", ""),
    Planted("loops", _TICKER, "self._due += (missed + 1) * self._period_s", "self._due = monotonic + self._period_s"),
    Planted("loops", _TICKER, "(missed + 1) * self._period_s", "self._period_s"),
    Planted(
        "loops",
        _WORKER,
        "while self.do_probe() and self._wait(ticker):",
        "while self._wait(ticker) and self.do_probe():",
    ),
    Planted(
        "loops",
        _WORKER,
        "        if self.state.container_id:\n            self._results.remove",
        "        if False:\n            self._results.remove",
    ),
    Planted("loops", _WORKER, "if period_s > manager_age_s else", "if period_s >= manager_age_s else"),
    Planted("loops", _WORKER, "return random * period_s if", "return random if"),
    Planted(
        "loops",
        _WORKER,
        "and context.shutdown.wait(jitter_s):",
        "and (context.shutdown.wait(jitter_s) or self._stopped):",
    ),
    Planted("loops", _WORKER, "                if self._triggered:\n", "                if False:\n"),
    Planted("loops", _WORKER, "while not self._stopped:", "while True:"),
    Planted("loops", _MANAGER, "if self._workers.get(key) is worker:", "if False:"),
    Planted("loops", _MANAGER, "            worker.pod_ends()\n", "            pass\n"),
    Planted("loops", "prober/prober.py", "                    _refuse(cut_off)  # meanwhile\n", ""),
    Planted("configs", _CONFIGS, "max((number + 1 for", "max((number for"),
    Planted("configs", _CONFIGS, "if number < _MOST_LOGS", "if number <= _MOST_LOGS"),
    Planted("configs", _CONFIGS, '.rstrip("-.")', '.rstrip("-")'),
    Planted("configs", _CONFIGS, 'hostname="" if pod.host_network else hostname(pod)', "hostname=hostname(pod)"),
    Planted(
        "configs",
        _CONFIGS,
        "labels={**pod.labels, **_pod_labels(pod, owner)}",
        "labels={**_pod_labels(pod, owner), **pod.labels}",
    ),
    Planted("configs", _CONFIGS, "ipc=cri.POD", "ipc=cri.CONTAINER"),
    Planted("configs", _CONFIGS, '    "/proc/latency_stats",\n', ""),
    Planted("configs", _CONFIGS, "stdin_once=container.stdin_once", "stdin_once=container.stdin"),
    Planted("hooks", _HOOKS, 'if name != "Authorization"', "if name"),
    Planted("hooks", "probe/http.py", '("Accept-Encoding", "Range")', '("Accept-Encoding",)'),
    Planted("hooks", _HOOKS, "output = done.stdout + done.stderr", "output = done.stdout"),
    Planted("hooks", _HOOKS, "if not (action.host or ip):", "if not ip:"),
    Planted("hooks", _HOOKS, "if NOT_TLS not in str(e):", "if True:"),
    Planted("hooks", "probe/tls.py", "if self._first == _PLAIN:", "if self._first:"),
    Planted("hooks", "probe/targets.py", 'takes_gzip=purpose == "lifecycle"', "takes_gzip=False"),
)
