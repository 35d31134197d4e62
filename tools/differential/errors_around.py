"""Errors for the loops of workers, for lifecycle hooks, and for what a container runtime is asked to make."""

from tools.differential.planted_error import Planted

_WORKER, _MANAGER, _TICKER = "prober/worker.py", "prober/manager.py", "probe/ticker.py"
_CONFIGS, _HOOKS = "cri/configs.py", "pods/hooks.py"
_INTAKE = "pods/intake.py"
AROUND = (
    Planted("intake", "pods/source.py", "replace(new, status=old.status) != old", "new != old"),
    Planted("intake", _INTAKE, "if not is_terminal(pod.status.phase):  #", "if not is_to_end(pod):  #"),
    Planted("intake", _INTAKE, "if pod is None or not state.takes_room or", "if not state.takes_room or"),
    Planted("intake", _INTAKE, "if state.refused and is_to_end(pod) and", "if False and"),
    Planted("intake", _INTAKE, "return state.ending or state.stage is Stage.TERMINATING or not", "return not"),
    Planted("intake", _INTAKE, "or not is_terminal(pod.status.phase)\n", "or True\n"),
    Planted(
        "intake",
        "pods/housekeeping.py",
        "if pod is not None and pod.deletion_timestamp is not None and",
        "if False and",
    ),
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
