"""Command lines, manifests and configurations of kube-scheduler, as values. Pure. Used on the controller only."""

import json
import re
from typing import Any, Dict, List, Optional

Document = Dict[str, Any]
TRUE = ("1", "t", "T", "true", "TRUE", "True")  # as strconv.ParseBool reads it; kubespray writes Python's words
# Flags that kube-scheduler ignores as soon as it has a --config (options.go: ApplyDeprecated is for no file only), and
# where they stand in the file.
CARRIED = {
    "profiling": (("enableProfiling",), lambda text: text in TRUE),
    "contention-profiling": (("enableContentionProfiling",), lambda text: text in TRUE),
    "kube-api-qps": (("clientConnection", "qps"), float),
    "kube-api-burst": (("clientConnection", "burst"), int),
    "kube-api-content-type": (("clientConnection", "contentType"), str),
    "kubeconfig": (("clientConnection", "kubeconfig"), str),
}
# Where a form of the extender answers on the host, or did in an earlier release; a test compares kube/contract.py.
PORTS = (338, 337, 9376)
# /configz shows these in another form: profiles have all defaults filled in, leader election comes from flags.
NOT_EXPECTED = ("apiVersion", "kind", "profiles", "leaderElection", "extenders")


def plain(value: Any) -> Any:  # noqa: ANN401
    """The value without Ansible's types, which PyYAML does not write."""
    return json.loads(json.dumps(value))


def command_of(manifest: Document) -> List[str]:
    """The process's arguments in the manifest; empty if something else starts it."""
    container = manifest["spec"]["containers"][0]
    command = [*container.get("command", []), *container.get("args", [])]
    known = command and command[0].rpartition("/")[2] == "kube-scheduler"
    return [] if not known or any("$(" in one for one in command) else command


def merged(base: Document, extender: Document, flags: Dict[str, str]) -> Document:
    """`base` with readygate's extender in place of its earlier entries, or last. Flags fill in what `base` lacks.

    Extenders of other programs, profiles and plugins stay as they are. Entries for another form of readygate or an
    earlier release are removed: nothing would answer there, or another program that has taken the port.
    """
    made = _given(plain(base))
    made["clientConnection"] = _given(made.get("clientConnection") or {})
    made.setdefault("apiVersion", "kubescheduler.config.k8s.io/v1")
    made.setdefault("kind", "KubeSchedulerConfiguration")
    for flag, (keys, read) in CARRIED.items():
        if flag in flags:
            part = made
            for key in keys[:-1]:
                part = part.setdefault(key, {})
            part.setdefault(keys[-1], read(flags[flag]))
    made["clientConnection"].setdefault("kubeconfig", "/etc/kubernetes/scheduler.conf")
    before = made.get("extenders") or []
    places = [n for n, one in enumerate(before) if same_url(one, extender) or _was_ours(one)]
    others = [one for n, one in enumerate(before) if n not in places]
    place = min([*places, len(others)])
    made["extenders"] = [*others[:place], plain(extender), *others[place:]]
    return made


def _given(section: Document) -> Document:
    """The section without null values, which kube-scheduler reads as missing."""
    return {key: value for key, value in section.items() if value is not None}


def same_url(one: Document, other: Document) -> bool:
    """Whether it is the same extender: its URL decides, all else may change."""
    return str(one.get("urlPrefix", "")).rstrip("/") == str(other.get("urlPrefix", "")).rstrip("/")


def asked_of(extenders: List[Document], extender: Document) -> List[str]:
    """URLs at which kube-scheduler asks readygate: that of `extender`, and those of its other forms on this host.

    The inventory may have changed since the extender was registered.
    """
    urls = [str(one.get("urlPrefix", "")) for one in extenders if same_url(one, extender)]
    return urls + asked_elsewhere(extenders, extender)


def asked_elsewhere(extenders: List[Document], extender: Document) -> List[str]:
    """URLs at which kube-scheduler asks readygate, other than that of `extender`."""
    others = [one for one in extenders if not same_url(one, extender)]
    return [str(one.get("urlPrefix", "")) for one in others if _is_at_a_port_of_ours(one)]


def _is_at_a_port_of_ours(one: Document) -> bool:
    ports = "|".join(map(str, PORTS))
    loopback = rf"https?://(127[.]0[.]0[.]1|localhost|\[::1\]):({ports})/?"
    return re.fullmatch(loopback, str(one.get("urlPrefix", ""))) is not None


def _was_ours(one: Document) -> bool:
    """Whether readygate registered it: another program may use the same port, so the verbs count too."""
    return _is_at_a_port_of_ours(one) and one.get("filterVerb") == "filter" and not one.get("bindVerb")


def differing(made: Dict[str, Document]) -> List[str]:
    """How the configurations of the hosts differ, a line each; `made`: the plan by host."""
    configurations = {host: one["configuration"] for host, one in made.items()}
    lines = []
    for key in sorted({key for one in configurations.values() for key in one}):
        hosts: Dict[str, List[str]] = {}
        for host, one in sorted(configurations.items()):
            hosts.setdefault(json.dumps(one[key], sort_keys=True) if key in one else "none", []).append(host)
        if len(hosts) > 1:
            lines.append(key + ": " + "; ".join(what + " on " + ", ".join(where) for what, where in hosts.items()))
    return lines


def expected(configuration: Document) -> Document:
    """What /configz must show of it: all extenders in order, all settings whose form there is known."""
    shown = {key: value for key, value in configuration.items() if key not in NOT_EXPECTED}
    return {**shown, "extenders": configuration["extenders"]}


# kubeadm


def proxies_of(manifest: Document) -> Dict[str, str]:
    """The proxy variables of a manifest, by the rule of kubeadm (cmd/kubeadm/app/util/env.go)."""
    containers = (manifest.get("spec") or {}).get("containers") or [{}]
    entries = [one for one in containers[0].get("env") or [] if one["name"].lower().endswith("_proxy")]
    return {one["name"]: str(one["value"]) for one in entries if one.get("value")}


def section_of(cluster: Document, config: str, volume: Optional[Document], ours: str) -> Document:
    """kubeadm's ClusterConfiguration with the scheduler's --config (empty: none) and readygate's volume, or none.

    Arguments are a list of {name, value} since v1beta4, a mapping before.
    """
    made = plain(cluster)
    section = made.get("scheduler") or {}
    mapped = made["apiVersion"] in ("kubeadm.k8s.io/v1beta2", "kubeadm.k8s.io/v1beta3")
    arguments = section.pop("extraArgs", None) or ({} if mapped else [])
    listed = [{"name": k, "value": v} for k, v in arguments.items()] if mapped else arguments
    named = [n for n, one in enumerate(listed) if one["name"] == "config"]
    rest = [one for one in listed if one["name"] != "config"]
    if config:
        rest.insert(named[0] if named else len(rest), {"name": "config", "value": config})
    if rest:
        section["extraArgs"] = {one["name"]: one["value"] for one in rest} if mapped else rest
    volumes = [one for one in section.pop("extraVolumes", None) or [] if one["name"] != ours]
    if volume:
        volumes.append(volume)
    if volumes:
        section["extraVolumes"] = volumes
    return {**made, "scheduler": section}


def config_of(cluster: Document) -> str:
    """The --config that kubeadm gives the scheduler; the last one, as in kube-scheduler; empty for none."""
    arguments = (cluster.get("scheduler") or {}).get("extraArgs") or []
    if isinstance(arguments, dict):
        return str(arguments.get("config", ""))
    return next((str(one["value"]) for one in reversed(arguments) if one["name"] == "config"), "")


def without(manifest: Document, ours: str, volume: str, config: str) -> Document:
    """Any manifest without readygate's parts; `config` is the --config from before readygate, or empty."""
    made = plain(manifest)
    container = made["spec"]["containers"][0]
    for key in ("command", "args"):
        if key in container:
            container[key] = _without_config(container[key], ours, config)
    for part, key in ((container, "volumeMounts"), (made["spec"], "volumes")):
        if key in part:
            part[key] = [one for one in part[key] if one["name"] != volume]
    return made


def _without_config(arguments: List[str], ours: str, config: str) -> List[str]:
    """Arguments without readygate's --config, which may be one word or two."""
    made: List[str] = []
    for one in arguments:
        if not is_ours(one, ours):
            made.append(one)
            continue
        if one.startswith("/") and made and made[-1].lstrip("-") == "config":
            made.pop()
        made += [f"--config={config}"] if config else []
    return made


def is_ours(argument: str, folder: str) -> bool:
    """Whether it is readygate's --config, or its value."""
    return re.fullmatch(rf"(--config=)?{re.escape(folder)}/kube-scheduler-[0-9a-f]+[.]yaml", argument) is not None


# Units of systemd


def exec_start(text: str, skipped: str) -> str:
    """The command line in the output of `systemctl cat`, without the drop-in `skipped`; empty ExecStart= resets it."""
    found, own = "", False
    for line in re.sub(r"\s*\\\n\s*", " ", text).splitlines():
        if line.startswith("# /"):
            own = line[2:].strip() == skipped
        elif not own and line.startswith("ExecStart="):
            found = line.partition("=")[2].strip()
    return found


def with_config(line: str, config: str) -> str:
    """The command line with this --config last, because the last one counts."""
    stripped = re.sub(r"\s--?config[= ]\S+", "", line)
    return f"{stripped} --config={config}"
