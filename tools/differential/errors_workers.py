"""Errors for the pod workers: what the sync loop does for each pod, and when."""

from tools.differential.planted_error import Planted

_SYNC, _STATE, _BACKOFF = "kubelet/pods/sync.py", "kubelet/pods/state.py", "kubelet/pods/backoff.py"
_ENDING, _INTAKE, _HOUSE = "kubelet/pods/ending.py", "kubelet/pods/admission_order.py", "kubelet/pods/housekeeping.py"
WORKERS = (
    Planted("workers", _SYNC, "elif state.starts.errors != errors:", "elif False:"),
    Planted(
        "workers",
        _SYNC,
        "        if state.removed:\n            pod = None",
        "        if False:\n            pod = None",
    ),
    Planted("workers", _SYNC, "and not pod.host_network:", "and True:"),
    Planted("workers", _SYNC, "jittered_s(NETWORK_RETRY_S, self._random)", "jittered_s(RETRY_S, self._random)"),
    Planted("workers", _SYNC, "        state.announced = False\n", "        state.announced = True\n"),
    Planted("workers", _SYNC, "            self._retry(state.pod.uid, done.backoffs_s)\n", "            pass\n"),
    Planted("workers", _SYNC, "        if not state.announced:  #", "        if False:  #"),
    Planted(
        "workers",
        _SYNC,
        "            self._retry(uid)\n        except Exception",
        "            pass\n        except Exception",
    ),
    Planted("workers", _SYNC, "            self._statuses.terminate_pod(pod)\n", "            pass\n"),
    Planted(
        "workers",
        _SYNC,
        "        for waiting in self._pods.uids() -",
        "        for waiting in () and self._pods.uids() -",
    ),
    Planted("workers", _SYNC, "        self._prober.remove_pod(pod)\n", ""),
    Planted(
        "workers",
        _SYNC,
        "self._wake_in(pod.uid, jittered_s(RESYNC_S, self._random))",
        "self._wake_in(pod.uid, RESYNC_S)",
    ),
    Planted("workers", _BACKOFF, "JITTER = 0.5", "JITTER = 0.25"),
    Planted("workers", _BACKOFF, "min(backoffs_s, default=RETRY_S)", "RETRY_S"),
    Planted("workers", _ENDING, "if ending.grace_s is None or grace_s < ending.grace_s:", "if ending.grace_s is None:"),
    Planted("workers", _STATE, "return pod.deletion_timestamp is not None or is_terminal(", "return is_terminal("),
    Planted("workers", _INTAKE, "return not runs and not any(", "return not runs or not any("),
    Planted("workers", _HOUSE, "if state.stage is not Stage.TERMINATED)", "if state.stage is Stage.SYNCING)"),
    Planted("workers", _HOUSE, "        for uid in there - kept:\n", "        for uid in ():\n"),
)
