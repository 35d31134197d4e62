"""Calls kubectl of this host."""

import json
import os
import subprocess

LIMIT_S = 300.0  # of a call: its requests end sooner, but a credential plugin or a network folder may hang


class Kubectl:
    """kubectl of this host, in one namespace. Raises OSError if a call fails."""

    def __init__(self, kubeconfig: str, namespace: str) -> None:
        self._start = ["kubectl", "--kubeconfig", kubeconfig, "--namespace", namespace, "--request-timeout=20s"]
        path = os.environ.get("PATH", "") + ":/usr/local/bin:/opt/bin"
        self._environ = dict(os.environ, PATH=path, KUBERC="off")  # ignores the user's preferences

    def run(self, *arguments: str, **options: str) -> str:
        """Runs kubectl and returns its output. options: stdin."""
        try:
            done = subprocess.run(
                self._start + list(arguments),
                env=self._environ,
                input=options.get("stdin", ""),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                # kubectl writes UTF-8, whatever the host's locale is.
                encoding="utf-8",
                errors="replace",
                timeout=LIMIT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise OSError(f"kubectl {arguments[0]} has not ended within {LIMIT_S:g} s") from None
        if done.returncode != 0:
            raise OSError(done.stderr.strip()[-500:] or f"kubectl ended with code {done.returncode}")
        return done.stdout

    def get(self, *arguments: str) -> dict:
        output = self.run("get", "--output=json", *arguments)
        try:
            return json.loads(output)
        except ValueError:
            raise OSError(f"kubectl get printed no JSON: {output.strip()[:200]}") from None


def warnings_of_pods(kubectl: Kubectl) -> dict:
    """The last warning Event of each pod: name -> (reason, message). Warnings of probes are left out."""
    found = {}
    for event in kubectl.get("events", "--field-selector=type=Warning")["items"]:
        about, reason = event["involvedObject"], event.get("reason", "")
        if about.get("kind") == "Pod" and reason.startswith("Failed"):
            found[about.get("name", "")] = (reason, event.get("message", ""))
    return found
