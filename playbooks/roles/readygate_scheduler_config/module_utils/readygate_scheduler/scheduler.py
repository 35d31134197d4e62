"""Reads the processes, health and logs of kube-scheduler on this host, without the API server."""

import contextlib
import glob
import http.client
import os
import ssl
import urllib.request
from typing import Dict, List, Tuple

Process = Tuple[int, str]


class Scheduler:
    """kube-scheduler on this host. Changes nothing."""

    def __init__(self, proc: str = "/proc") -> None:
        self.proc = proc

    def processes(self) -> Dict[Process, List[str]]:
        """Arguments by process id and start time, of each process whose program is called kube-scheduler."""
        found = {}
        for entry in os.listdir(self.proc):
            with contextlib.suppress(OSError, IndexError):
                if entry.isdigit():
                    with open(os.path.join(self.proc, entry, "cmdline"), "rb") as file:
                        argv = [one.decode("utf-8", "replace") for one in file.read().split(b"\0")[:-1]]
                    if os.path.basename(argv[0]) == "kube-scheduler":
                        found[int(entry), self._started(entry)] = argv
        return found

    def running(self, command: List[str]) -> List[Process]:
        """The processes with these arguments; all processes if the arguments are unknown."""
        return sorted(who for who, argv in self.processes().items() if argv[1:] == command[1:] or not command)

    def ended(self, who: Process) -> bool:
        """Whether the process has certainly ended: False if it cannot be read just now."""
        try:
            return self._started(str(who[0])) != who[1]
        except (FileNotFoundError, ProcessLookupError):
            return True
        except (OSError, LookupError):
            return False

    def _started(self, entry: str) -> str:
        """The start time in ticks since boot. A process's name may be any bytes."""
        with open(os.path.join(self.proc, entry, "stat"), "rb") as file:
            return file.read().rsplit(b")", 1)[1].split()[19].decode()

    def healthy(self, url: str) -> bool:
        """Whether the URL answers 200, without a proxy. The scheduler's certificate is self-signed, so not checked."""
        handlers = [urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=_unverified())]
        try:
            with urllib.request.build_opener(*handlers).open(url, timeout=2.0) as answer:
                return bool(answer.getcode() == 200)
        except (OSError, ValueError, http.client.HTTPException):
            return False

    def boot(self) -> str:
        with open(os.path.join(self.proc, "sys/kernel/random/boot_id")) as file:
            return file.read().strip()

    def last_lines(self, logs: str) -> List[str]:
        """The last lines of the newest log file that matches the pattern."""
        found = sorted(glob.glob(logs), key=os.path.getmtime) if logs else []
        if not found:
            return []
        with open(found[-1], "rb") as file:
            file.seek(max(0, os.path.getsize(found[-1]) - 4096))
            return [line.decode("utf-8", "replace").strip()[:500] for line in file.read().splitlines()[-3:]]


def flags_of(argv: List[str]) -> Dict[str, str]:
    """Values by flag, with dashes as kube-scheduler normalizes them (component-base, cli/flag/flags.go).

    The last value of a flag wins, as with pflag; a flag without a value is true. The first word is the program's name.
    """
    return dict(_given(argv))


def values_of(argv: List[str], flag: str) -> List[str]:
    """All values of a flag that may be repeated, such as --feature-gates (component-base, feature_gate.go)."""
    return [value for name, value in _given(argv) if name == flag]


def _given(argv: List[str]) -> List[Tuple[str, str]]:
    found: List[Tuple[str, str]] = []
    name = ""
    for one in argv[1:]:
        if one.startswith("-"):
            name, given, value = one.lstrip("-").partition("=")
            name = name.replace("_", "-")
            found.append((name, value if given else "true"))
        elif name:
            found[-1], name = (name, one), ""
    return found


def address_of(argv: List[str]) -> str:
    """The URL at which a process with these arguments answers on this host.

    A process that listens at every interface answers at loopback. One that listens at :: accepts IPv4 too, and ::1 is
    missing if IPv6 is switched off: kubespray's default is :: even then.
    """
    flags = flags_of(argv)
    port, host = flags.get("secure-port", "10259"), flags.get("bind-address", "127.0.0.1")
    host = {"0.0.0.0": "127.0.0.1", "::": "127.0.0.1"}.get(host, host)
    return "https://" + ("[" + host + "]" if ":" in host else host) + ":" + port


def _unverified() -> ssl.SSLContext:
    """A context that loads no authorities, which would cost 30 ms each time."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
