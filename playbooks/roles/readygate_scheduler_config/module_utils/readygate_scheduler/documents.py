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
# Where a form of ours answers on the host, or did in an earlier release; as in kube/contract.py, a test compares.
PORTS = (338, 337, 9376)
# Of these it is known how /configz shows them; profiles come with all defaults filled in, leader election from flags.
NOT_EXPECTED = ("apiVersion", "kind", "profiles", "leaderElection", "extenders")


def plain(value: Any) -> Any:  # noqa: ANN401
    """Without Ansible's types, which PyYAML does not write."""
    return json.loads(json.dumps(value))


def command_of(manifest: Document) -> List[str]:
    """The process's arguments as the manifest says them; empty where something else starts it."""
    container = manifest["spec"]["containers"][0]
    command = [*container.get("command", []), *container.get("args", [])]
    known = command and command[0].rpartition("/")[2] == "kube-scheduler"
    return [] if not known or any("$(" in one for one in command) else command


def merged(base: Document, extender: Document, flags: Dict[str, str]) -> Document:
    """`base` with the extender in the place where an earlier one of ours stood, or last; what `base` does not say is
    carried over from the flags. Others' extenders, profiles and plugins stay as they are; ours where another form or an
    earlier release answers does not, for nobody would be there, or whoever has taken the port."""
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
    """Without what is null: kube-scheduler reads that as not there."""
    return {key: value for key, value in section.items() if value is not None}


def same_url(one: Document, other: Document) -> bool:
    """Is it the same extender? By where it is asked; how is what may change."""
    return str(one.get("urlPrefix", "")).rstrip("/") == str(other.get("urlPrefix", "")).rstrip("/")


def asked_of(extenders: List[Document], extender: Document) -> List[str]:
    """Where ours is asked: as `extender` says, or where a form of ours answers on the host itself, for an inventory may
    have changed since it was registered."""
    urls = [str(one.get("urlPrefix", "")) for one in extenders if same_url(one, extender)]
    return urls + asked_elsewhere(extenders, extender)


def asked_elsewhere(extenders: List[Document], extender: Document) -> List[str]:
    """Where ours is asked, but not as `extender` says."""
    others = [one for one in extenders if not same_url(one, extender)]
    return [str(one.get("urlPrefix", "")) for one in others if _is_at_a_port_of_ours(one)]


def _is_at_a_port_of_ours(one: Document) -> bool:
    ports = "|".join(map(str, PORTS))
    loopback = rf"https?://(127[.]0[.]0[.]1|localhost|\[::1\]):({ports})/?"
    return re.fullmatch(loopback, str(one.get("urlPrefix", ""))) is not None


def _was_ours(one: Document) -> bool:
    """Registered as we do it: the port alone may be somebody else's as well."""
    return _is_at_a_port_of_ours(one) and one.get("filterVerb") == "filter" and not one.get("bindVerb")


def differing(made: Dict[str, Document]) -> List[str]:
    """What is not the same in the configurations of all hosts, a line each; `made`: the plan by host."""
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
    """What /configz has to show of it: all extenders in order, all settings whose form there is known."""
    shown = {key: value for key, value in configuration.items() if key not in NOT_EXPECTED}
    return {**shown, "extenders": configuration["extenders"]}


# kubeadm


def proxies_of(manifest: Document) -> Dict[str, str]:
    """The proxy variables of a manifest, as kubeadm tells them from others (cmd/kubeadm/app/util/env.go)."""
    containers = (manifest.get("spec") or {}).get("containers") or [{}]
    entries = [one for one in containers[0].get("env") or [] if one["name"].lower().endswith("_proxy")]
    return {one["name"]: str(one["value"]) for one in entries if one.get("value")}


def section_of(cluster: Document, config: str, volume: Optional[Document], ours: str) -> Document:
    """kubeadm's ClusterConfiguration with the scheduler's --config in place (empty: none) and our volume or none.
    Arguments are a list of {name, value} since v1beta4, a mapping before."""
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
    """The --config that kubeadm gives the scheduler, of several the last, as kube-scheduler does; empty for none."""
    arguments = (cluster.get("scheduler") or {}).get("extraArgs") or []
    if isinstance(arguments, dict):
        return str(arguments.get("config", ""))
    return next((str(one["value"]) for one in reversed(arguments) if one["name"] == "config"), "")


def without(manifest: Document, ours: str, volume: str, config: str) -> Document:
    """A manifest of anybody's with what is ours taken out; `config` is the --config from before us, or empty."""
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
    """Ours as one word or as two: a flag without its value would take the next one for it."""
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
    """Is it a --config (or its value) of ours?"""
    return re.fullmatch(rf"(--config=)?{re.escape(folder)}/kube-scheduler-[0-9a-f]+[.]yaml", argument) is not None


# Units of systemd


def exec_start(text: str, skipped: str) -> str:
    """The command line of `systemctl cat`, past the drop-in `skipped`; an empty ExecStart= forgets those before."""
    found, own = "", False
    for line in re.sub(r"\s*\\\n\s*", " ", text).splitlines():
        if line.startswith("# /"):
            own = line[2:].strip() == skipped
        elif not own and line.startswith("ExecStart="):
            found = line.partition("=")[2].strip()
    return found


def with_config(line: str, config: str) -> str:
    """The command line with this --config, last: of two the last one counts."""
    stripped = re.sub(r"\s--?config[= ]\S+", "", line)
    return f"{stripped} --config={config}"
