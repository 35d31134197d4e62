"""kubectl of this host."""

import json
import os
import subprocess


class Kubectl:
    """kubectl of this host, in one namespace. Raises OSError for what it could not do."""

    def __init__(self, kubeconfig: str, namespace: str) -> None:
        self._start = ["kubectl", "--kubeconfig", kubeconfig, "--namespace", namespace, "--request-timeout=20s"]
        self._environ = dict(os.environ, PATH=os.environ.get("PATH", "") + ":/usr/local/bin:/opt/bin")

    def run(self, *arguments: str, **options: str) -> str:
        """options: stdin."""
        done = subprocess.Popen(
            self._start + list(arguments),
            env=self._environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            universal_newlines=True,
        )
        out, error = done.communicate(options.get("stdin", ""))
        if done.returncode != 0:
            raise OSError(error.strip()[-500:] or f"kubectl ended with code {done.returncode}")
        return out

    def get(self, *arguments: str) -> dict:
        return json.loads(self.run("get", "--output=json", *arguments))


def warnings_of_pods(kubectl: Kubectl) -> dict:
    """Name -> (reason, message) of its last warning; those of probes are left out."""
    found = {}
    for event in kubectl.get("events", "--field-selector=type=Warning")["items"]:
        about, reason = event["involvedObject"], event.get("reason", "")
        if about.get("kind") == "Pod" and reason.startswith("Failed"):
            found[about.get("name", "")] = (reason, event.get("message", ""))
    return found
