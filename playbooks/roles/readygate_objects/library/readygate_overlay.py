#!/usr/bin/python
"""Renders a role's objects from its part of the chart and its patches, with kubectl kustomize. Changes nothing."""

import os
import subprocess
import tempfile

from ansible.module_utils.basic import AnsibleModule

LIMIT_S = 60


def made(files: dict, folder: str) -> str:
    """The objects as YAML. files: path -> text, with one kustomization.yaml at the top. Raises OSError."""
    for path, text in files.items():
        if os.path.isabs(path) or os.path.normpath(path).startswith(".."):
            raise OSError(f"{path} is outside the folder")
        place = os.path.join(folder, path)
        os.makedirs(os.path.dirname(place), exist_ok=True)
        with open(place, "w", encoding="utf-8") as file:
            file.write(text)
    environ = dict(os.environ, PATH=os.environ.get("PATH", "") + ":/usr/local/bin:/opt/bin")
    try:
        done = subprocess.run(
            ["kubectl", "kustomize", folder],
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise OSError(f"kubectl kustomize has not ended within {LIMIT_S} s") from None
    if done.returncode != 0:
        raise OSError(
            done.stderr.decode("utf-8", "replace").strip()[-1000:]
            or f"kubectl kustomize ended with code {done.returncode}"
        )
    if not done.stdout.strip():
        raise OSError("kubectl kustomize has rendered nothing")
    try:
        return done.stdout.decode("utf-8")
    except UnicodeDecodeError as e:
        raise OSError(f"the output of kubectl kustomize is no text: {e}") from None


def main() -> None:
    module = AnsibleModule(argument_spec={"files": {"type": "dict", "required": True}}, supports_check_mode=True)
    try:
        # In Ansible's own folder on this host, which no other run uses; what a kill leaves there is harmless.
        with tempfile.TemporaryDirectory(prefix="readygate-", dir=module.tmpdir) as folder:
            manifest = made(module.params["files"], folder)
    except OSError as e:
        module.fail_json(msg=f"kubectl of this host cannot render the objects: {e}")
    module.exit_json(changed=False, manifest=manifest)


if __name__ == "__main__":
    main()
