#!/usr/bin/python
"""Writes several small files and folders of one host in one call, because each call of a module starts Python there."""

import os
import tempfile

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
module: readygate_files
short_description: Writes several files and folders at once
options:
  entries:
    description: In their order; a folder comes before its files.
    type: list
    elements: dict
    required: true
    suboptions:
      path: {type: path, required: true, description: of the file or folder}
      content: {type: str, description: of the file; a folder has none}
      mode: {type: str, required: true, description: as of chmod}
      group: {type: str, default: root, description: its name or number}
      shown: {type: bool, default: true, description: whether --diff shows the content; not needed for programs}
  forgotten:
    description: Files that are removed, which is no change.
    type: list
    elements: path
    default: []
author: The readygate authors
"""


def read(path):
    """The content of a file; None if it does not exist. Raises OSError."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None


def write(module, path, data):
    """Writes the whole file or nothing, with the SELinux label of its folder."""
    handle, part = tempfile.mkstemp(prefix=".readygate-", dir=os.path.dirname(path))
    with os.fdopen(handle, "wb") as file:
        file.write(data)
    module.atomic_move(part, path)


def bring(module, entry):
    """Writes one entry. Returns (changed, difference). Raises OSError."""
    path, content = entry["path"], entry["content"]
    before = None
    if content is None:
        changed = not os.path.isdir(path)
        if changed and not module.check_mode:
            os.makedirs(path, 0o700)
    else:
        before, data = read(path), content.encode("utf-8")
        changed = before != data
        if changed and not module.check_mode:
            write(module, path, data)
    difference = {}
    if changed and entry["shown"]:
        shown = "" if before is None else before.decode("utf-8", "replace")
        difference = {"before_header": path, "after_header": path, "before": shown, "after": content or "a folder\n"}
    # In check mode a missing file has no attributes to compare.
    if os.path.exists(path):
        given = {"path": path, "owner": "root", "group": entry["group"], "mode": entry["mode"]}
        attributes = module.load_file_common_arguments(given)
        changed = module.set_fs_attributes_if_different(attributes, changed)
    return changed, difference


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "entries": {
                "type": "list",
                "elements": "dict",
                "required": True,
                "options": {
                    "path": {"type": "path", "required": True},
                    "content": {"type": "str"},
                    "mode": {"type": "str", "required": True},
                    "group": {"type": "str", "default": "root"},
                    "shown": {"type": "bool", "default": True},
                },
            },
            "forgotten": {"type": "list", "elements": "path", "default": []},
        },
        supports_check_mode=True,
    )
    changed, differences = [], []
    for entry in module.params["entries"]:
        try:
            is_changed, difference = bring(module, entry)
        except OSError as e:
            module.fail_json(msg="{} cannot be written: {}".format(entry["path"], e))
        changed += [entry["path"]] if is_changed else []
        differences += [difference] if difference else []
    for path in [] if module.check_mode else filter(os.path.lexists, module.params["forgotten"]):
        os.unlink(path)
    module.exit_json(changed=bool(changed), written=changed, diff=differences)


if __name__ == "__main__":
    main()
