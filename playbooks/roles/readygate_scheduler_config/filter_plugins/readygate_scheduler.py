"""Decides what the scheduler of one host runs with, from what was read there. Pure: values in, values out.

`seen` is the result of the module readygate_scheduler_look, `given` the role's settings (vars/main.yml). YAML is read
and written on the controller only, as Kubernetes does (module_utils/readygate_scheduler/dialect.py).
"""

import difflib
import hashlib
import importlib.util
import json
import re
import shlex
from pathlib import Path
from typing import Any

Document = dict[str, Any]
KIND = "KubeSchedulerConfiguration"
# An annotation of the API server's manifest.
ENDPOINT = "kubeadm.kubernetes.io/kube-apiserver.advertise-address.endpoint"


def _module(name: str) -> Any:  # noqa: ANN401 - a module
    """A module of the package that also runs on the hosts. It is next to this folder, in a collection too."""
    path = Path(__file__).resolve().parent.parent / "module_utils" / "readygate_scheduler" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"readygate_scheduler_{name}", path)
    assert spec is not None  # noqa: S101 - for the types
    assert spec.loader is not None  # noqa: S101
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


differences = _module("proof").differences
_documents = _module("documents")
_dialect = _module("dialect")
document = _dialect.document
_scheduler = _module("scheduler")
flags_of, values_of = _scheduler.flags_of, _scheduler.values_of
plain, command_of, without = _documents.plain, _documents.command_of, _documents.without
merged, expected, same_url = _documents.merged, _documents.expected, _documents.same_url
section_of, config_of, is_ours = _documents.section_of, _documents.config_of, _documents.is_ours
asked_of, asked_elsewhere, differing = _documents.asked_of, _documents.asked_elsewhere, _documents.differing
exec_start, with_config, proxies_of = _documents.exec_start, _documents.with_config, _documents.proxies_of


def digest(text: str | None) -> str:
    return "" if text is None else hashlib.sha256(text.encode()).hexdigest()


def written(value: Document) -> str:
    return str(_dialect.written(plain(value)))


def for_kubeadm(value: Document) -> str:
    """kubeadm's ClusterConfiguration as YAML that administrators can read and edit."""
    return str(_dialect.written(plain(value), beyond_ascii=True))


# The plan


def plan(seen: Document, given: Document) -> Document:
    """Everything that follows from what was read, except kubeadm's renderings.

    problems: nothing may be changed while there are any. content, file: of the configuration. expect: see jobs.
    theirs: the --config from before readygate, empty for none. note: what to save of that, {} if it is unknown.
    forgotten: it is unknown, and the configuration has more than readygate's extender.
    """
    seen, given = plain(seen), plain(given)
    problems = []
    static = given["method"] == "kubeadm"
    manifest = document(seen["target"]) if static else {}
    if static and not manifest.get("spec"):
        where = given["target"]
        problems.append(
            f"{where} does not exist or is no manifest: kubeadm does not run kube-scheduler on this host. Remove the"
            " host from the group control_plane, or set another readygate_scheduler_config_method"
        )
    running = seen["process"]
    line = exec_start(seen["unit_text"], given["target"])
    command = (command_of(manifest) if manifest.get("spec") else []) or running
    named = flags_of(command).get("config", "")
    ours_named = is_ours(named, given["folder"])
    before = _before(seen, given, ours_named=ours_named) if ours_named or not named else named
    theirs = before or ""
    flags = {**flags_of(running), **flags_of(command)} | ({} if static else flags_of(line.split()))
    base, present = given["base"], document(seen["configs"].get(theirs))
    if ours_named and "config" not in (seen["noted"] or {}) and (before is None or (theirs and not present)):
        # A host that has joined with readygate's file: the rest of its content is the operator's.
        present = document(seen["configs"].get(named))
        if not base and present.get("kind") != KIND:
            problems.append(
                f"kube-scheduler runs with --config={named}, which readygate wrote but which cannot be read, and its"
                f" configuration before readygate was not saved here: copy {given['folder']}/original/noted.json from"
                " another control plane host, or set your own configuration as readygate_scheduler_config_base"
            )
        base = base or present
    elif not base and theirs:
        base = present
        if base.get("kind") != KIND:
            problems.append(
                f"kube-scheduler runs with --config={theirs}, which cannot be read as a KubeSchedulerConfiguration:"
                " correct it, or set its content as readygate_scheduler_config_base"
            )
    if "kubescheduler-config.yaml" in theirs and static:
        problems.append(
            "kubespray runs this scheduler and would undo the change: set readygate_scheduler_config_method: kubespray,"
            " which prints what its inventory needs"
        )
    configuration = merged(base, given["extender"], flags)
    content = written(configuration)
    return {
        "problems": problems,
        "configuration": configuration,
        "content": content,
        "file": f"{given['folder']}/kube-scheduler-{digest(content)[:12]}.yaml",
        "expect": expected(configuration),
        "theirs": theirs,
        "note": {} if before is None else {"config": theirs},
        "forgotten": before is None and configuration != merged({}, given["extender"], flags),
        "named": named,
        "ours_named": ours_named,
        "command": command,
        "line": line,
    }


def _before(seen: Document, given: Document, *, ours_named: bool) -> str | None:
    """The --config from before readygate, empty for none: saved here, on another host, or again in kubeadm's ConfigMap.
    None if it is unknown."""
    for noted in (seen["noted"] or {}, (given.get("elsewhere") or {}) if ours_named else {"config": ""}):
        if "config" in noted:
            return str(noted["config"])
    config = config_of(document((seen["cluster"].get("data") or {}).get("ClusterConfiguration")))
    if given["method"] == "kubeadm" and config and not is_ours(config, given["folder"]):
        return config
    return None


def kubeadm_plan(seen: Document, given: Document, made: Document) -> Document:
    """What kubeadm renders: `today`, `wanted` and `without`, each a whole ClusterConfiguration; `problems`;
    `environment`: the scheduler's proxy variables, which kubeadm copies from its own environment."""
    seen, given = plain(seen), plain(given)
    cluster = document((seen["cluster"].get("data") or {}).get("ClusterConfiguration"))
    if not cluster:
        why = seen["cluster"].get("error") or "it has no ClusterConfiguration"
        problem = f"ConfigMap kube-system/kubeadm-config: {why}"
        return {"problems": [problem], "renderings": {}, "cluster": {}, "environment": {}}
    volume = {
        "name": given["volume"],
        "hostPath": given["folder"],
        "mountPath": given["folder"],
        "readOnly": True,
        # A folder that must exist: FileOrCreate would create an empty file in place of a missing one.
        "pathType": "Directory",
    }
    endpoint = document(seen["apiserver"]).get("metadata", {}).get("annotations", {}).get(ENDPOINT, "")
    init = {
        "apiVersion": cluster["apiVersion"],
        "kind": "InitConfiguration",
        "nodeRegistration": {"name": given["node_name"] or seen["node"]},
    }
    if endpoint:  # without it kubeadm looks for a default route, which not every host has
        init["localAPIEndpoint"] = {"advertiseAddress": re.sub(r"^\[?(.*?)\]?:[0-9]+$", r"\1", endpoint)}
    in_manifest = section_of(cluster, made["named"], volume if made["ours_named"] else None, given["volume"])
    renderings = {
        "today": in_manifest,
        "wanted": section_of(cluster, made["file"], volume, given["volume"]),
        "without": section_of(cluster, made["theirs"], None, given["volume"]),
    }
    return {
        "problems": [],
        "environment": proxies_of(document(seen["target"])),
        "cluster": cluster,
        "clusters": renderings,
        "renderings": {name: f"{json.dumps(one)}\n---\n{json.dumps(init)}" for name, one in renderings.items()},
    }


def edits(seen: Document, rendered: Document, given: Document) -> list[str]:
    """Problems of the renderings: lines that would be lost, and a patch of kubeadm that replaces the command."""
    today, in_place = rendered["today"], seen["target"]
    if document(today) != document(in_place) and not given["overwrite_edits"]:
        lines = list(difflib.unified_diff(in_place.splitlines(), today.splitlines(), "in place", "kubeadm's", n=1))[2:]
        lost = (
            "these lines (-) would be lost. Put them into ConfigMap kube-system/kubeadm-config, or set the folder of"
            " kubeadm's patches (readygate_scheduler_config_kubeadm_patches),"
        )
        new = (
            "these lines (+) would be new. Remove them from ConfigMap kube-system/kubeadm-config, from kubeadm's"
            " patches or from readygate_scheduler_config_kubeadm_environment,"
        )
        only_new = not any(line.startswith("-") for line in lines)
        text = (
            f"{given['target']} differs from what kubeadm would write: {new if only_new else lost} or accept kubeadm's"
            f" content with readygate_scheduler_config_overwrite_edits: true. {lines}"
        )
        return [text]
    named = flags_of(command_of(document(rendered["wanted"])) or ["kube-scheduler"]).get("config", "")
    if not is_ours(named, given["folder"]):
        text = (
            f"kubeadm renders a manifest that names --config={named} and not readygate's file: a patch of kubeadm"
            " replaces the command. Remove --config from the patch; readygate merges the content of its file"
        )
        return [text]
    return []


def _last_lines(unit: str) -> list[str]:
    """The command that reads the last log lines of the unit's own processes, without systemd's, up to a time."""
    name = unit if "." in unit else f"{unit}.service"
    return ["journalctl", f"_SYSTEMD_UNIT={name}", "--until=@{until}", "--lines=3", "--output=cat"]  # see jobs.py


def _mirror(seen: Document, given: Document) -> list[str]:
    """kubectl's command line for the mirror pod, whose name is that of the pod and of the node."""
    node = given["node_name"] or seen["node"]
    name = (document(seen["target"]).get("metadata") or {}).get("name", "kube-scheduler")
    return [*seen["kubectl"], "--namespace=kube-system", f"{name}-{node}"] if node else []


def _lease(seen: Document) -> dict[str, list[str]]:
    """Commands for the scheduler's Lease. Its name comes from the loaded configuration, so that no other is changed."""
    election = seen["configz"].get("leaderElection") or {}
    name, namespace = election.get("resourceName"), election.get("resourceNamespace")
    if not (election.get("leaderElect") and election.get("resourceLock") == "leases" and name and namespace):
        return {}
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}"
    return {
        "leads": ["--raw=/metrics" if word == "--raw=/configz" else word for word in seen["configz_command"]],
        "read": [*seen["kubectl"], "get", f"--raw={path}"],
        "change": [*seen["kubectl"], f"--namespace={namespace}", "patch", "lease", name, "--type=json"],
    }


def job(seen: Document, given: Document, made: Document, rendered: Document, *, remove: bool = False) -> Document:
    """The job for the program on the host (module_utils/readygate_scheduler/jobs.py)."""
    seen, given, made = plain(seen), plain(given), plain(made)
    static = given["method"] == "kubeadm"
    fixed = {
        "target": given["target"],
        "expected": digest(seen["target"]),
        "mode": 0o600 if static else 0o644,
        "note": made["note"],
        "before_command": made["command"] if static else seen["process"],
        "restart": [] if static else [["systemctl", "daemon-reload"], ["systemctl", "restart", given["unit"]]],
        "mirror": _mirror(seen, given) if static else [],
        "lease": _lease(seen),
        "healthz": seen["healthz"],
        "limit_s": float(given["limit_s"]),
        "logs": given["logs"] if static else "",
        "evidence": [] if static else _last_lines(given["unit"]),
        "keep": bool(given.get("keep")),
        "force": bool(given["force"]),
    }
    wanted, bare = _contents(seen, given, made, rendered, remove=remove)
    # Nothing restarts where only the text differs.
    same = document(wanted) == document(seen["target"]) if static else wanted == seen["target"]
    if same and not remove:
        wanted = seen["target"]
    after = command_of(document(wanted)) if static else _argv(wanted, made["line"])
    files = {} if remove else {made["file"]: made["content"]}
    gates = [f"--feature-gates={value}" for value in values_of(after, "feature-gates")]
    trial = [f"--config={made['file']}", "--secure-port=0", "--write-config-to=/dev/null", *gates]
    more = {
        "wanted": wanted,
        "without": bare,
        "files": files,
        "command": after,
        "restarts": not same,
        "trial": trial if given["validate"] and not remove else [],
        "expect": {} if remove else made["expect"],
        "configz": [] if remove else seen["configz_command"],
    }
    return {"id": digest(json.dumps({**fixed, **more}, sort_keys=True))[:12] + f"-{given['run']}", **fixed, **more}


def _contents(
    seen: Document, given: Document, made: Document, rendered: Document, *, remove: bool
) -> tuple[str | None, str | None]:
    """The wanted content of the file, and its content without readygate.

    If the manifest in place without readygate equals one that kubeadm wrote, it is that one, byte for byte.
    """
    if given["method"] == "systemd":
        line = with_config(made["line"], made["file"])
        return (None if remove else f"# Written by readygate.\n[Service]\nExecStart=\nExecStart={line}\n"), None
    if not remove:
        return rendered["wanted"], rendered["without"]
    bare = without(document(seen["target"]), given["folder"], given["volume"], made["theirs"])
    if bare == document(seen["target"]):
        return seen["target"], seen["target"]
    known = [text for text in (seen["original"], seen["without"]) if text and document(text) == bare]
    text = known[0] if known else written(bare)
    return text, text


def _argv(dropin: str | None, line: str) -> list[str]:
    """Arguments of the process that a unit starts; empty if systemd expands variables in them."""
    command = exec_start(dropin, "") if dropin else line
    return [] if re.search(r"[$%\\]", command) else shlex.split(command.lstrip("-@:+!"))


def asked(configmap: Document, folder: str) -> str:
    """The file of readygate that kubeadm's ConfigMap gives a scheduler; empty for none."""
    config = config_of(document((plain(configmap).get("data") or {}).get("ClusterConfiguration")))
    return config if is_ours(config, folder) else ""


def registered(seen: Document, given: Document) -> bool:
    """Whether readygate is in the manifest or the unit that starts the scheduler."""
    if given["method"] != "kubeadm":
        return seen["target"] is not None and given["method"] == "systemd"
    manifest = document(seen["target"])
    return bool(manifest.get("spec")) and manifest != without(manifest, given["folder"], given["volume"], "")


def asks(seen: Document, given: Document) -> list[str]:
    """Each URL at which this host's scheduler still asks readygate, a line each, whichever program configured it.
    If the scheduler does not show its configuration, the file in its --config counts."""
    seen = plain(seen)
    manifest = document(seen["target"]) if given["method"] != "systemd" else {}
    command = (command_of(manifest) if manifest.get("spec") else []) or seen["process"]
    loaded, named = seen["configz"], flags_of(command).get("config", "")
    if "error" in loaded and named:
        loaded = document(seen["configs"].get(named)) or loaded
        if "error" in loaded:
            return [f"it is unknown whether kube-scheduler asks: {loaded['error']}"]
    return [f"kube-scheduler asks {url}" for url in asked_of(loaded.get("extenders") or [], plain(given["extender"]))]


def stays(seen: Document, given: Document) -> list[str]:
    """What `detach` could not end: as `asks`, and a file in place of the manifest that is none."""
    if given["method"] == "kubeadm" and seen["target"] is not None and not document(seen["target"]).get("spec"):
        return [f"{given['target']} is no manifest, so nothing was changed: correct it, or move it away"]
    return asks(seen, given)


def unread(seen: Document, given: Document) -> str:
    """Why kubeadm's ConfigMap could not be read; empty if it was read, or does not exist."""
    error = str(seen["cluster"].get("error", ""))
    return "" if "(NotFound)" in error or given["method"] != "kubeadm" else error


def findings(seen: Document, given: Document, made: Document) -> list[str]:
    """Why this host's scheduler does not ask readygate, or will not after an upgrade, a line each. Changes nothing."""
    seen, given, made = plain(seen), plain(given), plain(made)
    found = ["a change of kube-scheduler is open: it was interrupted"] if seen["open"] else []
    if not seen["healthy"]:
        found.append(f"kube-scheduler does not answer at {seen['healthz']}")
    if "error" in seen["configz"]:
        return [*found, f"/configz of kube-scheduler cannot be read: {seen['configz']['error']}"]
    loaded = seen["configz"].get("extenders") or []
    (ours, *more) = [one for one in loaded if same_url(one, given["extender"])] or [None]
    if ours is None:
        listed = [one.get("urlPrefix") for one in loaded]
        found.append(f"kube-scheduler does not ask {given['extender']['urlPrefix']}; its extenders: {listed or 'none'}")
    else:
        found += [f"kube-scheduler's entry differs: {one}" for one in differences(given["extender"], ours)]
    found += [f"{given['extender']['urlPrefix']} is registered {1 + len(more)} times"] if more else []
    elsewhere = asked_elsewhere(loaded, given["extender"]) if ours else []
    found += [f"kube-scheduler also asks {url}, the port of another form or an earlier release" for url in elsewhere]
    if given["method"] != "kubeadm" or ours is None:
        return found
    cluster = document((seen["cluster"].get("data") or {}).get("ClusterConfiguration"))
    if not cluster:
        found.append(f"ConfigMap kube-system/kubeadm-config cannot be read: {seen['cluster'].get('error')}")
    elif not is_ours(config_of(cluster), given["folder"]):
        found.append(
            "ConfigMap kube-system/kubeadm-config lacks readygate: the next kubeadm upgrade loses the registration"
        )
    elif config_of(cluster) not in seen["files"]:
        found.append(
            f"kubeadm's ConfigMap names {config_of(cluster)}, which is not on this host: after a kubeadm upgrade"
            " kube-scheduler does not start"
        )
    if made["named"] and made["ours_named"] and made["named"] not in seen["files"]:
        found.append(f"the manifest names {made['named']}, which does not exist: kube-scheduler cannot restart")
    return found


class FilterModule:
    """The filters by their names in Ansible."""

    def filters(self) -> dict[str, Any]:
        return {
            "readygate_scheduler_plan": plan,
            "readygate_scheduler_kubeadm": kubeadm_plan,
            "readygate_scheduler_edits": edits,
            "readygate_scheduler_job": job,
            "readygate_scheduler_registered": registered,
            "readygate_scheduler_asked": asked,
            "readygate_scheduler_asks": asks,
            "readygate_scheduler_differing": differing,
            "readygate_scheduler_stays": stays,
            "readygate_scheduler_unread": unread,
            "readygate_scheduler_findings": findings,
            "readygate_scheduler_for_kubeadm": for_kubeadm,
        }
