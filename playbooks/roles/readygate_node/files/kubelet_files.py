"""Reads the kubelet's files on its host: kubelet_files.py KUBECONFIG [CONFIGURATION ...], to one `key=value` a line.

Of KUBECONFIG the keys of its current context; of the configurations those of KEYS, each file over the ones before it,
as mergeKubeletConfigurations in cmd/kubelet/app/server.go does. `unread=FILE: why` for a configuration that is there
and is not understood.

look.sh has a copy of this file behind one of yaml_text.py, made by `make manifests`.
"""

import json
import os
import re
import sys

from yaml_text import NotUnderstoodError, Plain, read  # look.sh has no such line

KEYS = ("clusterDNS", "clusterDomain", "containerRuntimeEndpoint", "cgroupRoot")
KEYS += ("healthzPort", "healthzBindAddress", "port")
OF_CLUSTER, OF_USER = ("server", "certificate-authority"), ("client-certificate", "client-key")
NULL = ("", "~", "null", "Null", "NULL")


def shown(value):
    """One line; None for null and what is neither a text nor a list of such."""
    if isinstance(value, list):
        return ",".join(one for one in map(shown, value) if one)
    if value is None or isinstance(value, dict) or (isinstance(value, Plain) and value in NULL):
        return None
    text = json.dumps(value) if isinstance(value, (bool, int, float)) else str(value)
    return re.sub(r"[\s\x00-\x1f\x7f\"'\[\]]", "", text)


def configured(files):
    found = {}
    for document in files:
        found.update({key: shown(document[key]) for key in KEYS if key in document})
    return found


def identity(kubeconfig, folder):
    """Of the current context; of a file that names none the first cluster and user."""

    def named(kind, name):
        entries = [one for one in kubeconfig.get(kind + "s") or [] if isinstance(one, dict)]
        chosen = [one for one in entries if name and one.get("name") == name] or ([] if name else entries)
        section = chosen[0].get(kind) if chosen else None
        return section if isinstance(section, dict) else {}

    context = named("context", shown(kubeconfig.get("current-context")))
    cluster, user = named("cluster", context.get("cluster")), named("user", context.get("user"))
    found = {key: shown(cluster.get(key)) for key in OF_CLUSTER}
    found.update({key: shown(user.get(key)) for key in OF_USER})
    for key in ("certificate-authority", *OF_USER):
        if found[key]:
            found[key] = os.path.join(folder, found[key])
    return found


def main(kubeconfig, *files):
    found, documents = {}, []
    for file in (kubeconfig, *files):
        try:
            with open(file, "rb") as opened:
                document = read(opened.read())
            if not isinstance(document, dict):
                raise NotUnderstoodError("no keys")
        except FileNotFoundError:
            continue
        except (OSError, ValueError, RecursionError) as e:
            why = e.strerror if isinstance(e, OSError) else str(e)
            found.setdefault("unread" if file != kubeconfig else "", "%s: %s" % (file, re.sub(r"\s+", " ", why)))
            continue
        if file == kubeconfig:
            found.update(identity(document, os.path.dirname(file)))
        else:
            documents.append(document)
    found.update(configured(documents))
    for key, value in found.items():
        if key and value:
            sys.stdout.buffer.write(("%s=%s\n" % (key, value)).encode("utf-8", "replace"))  # whatever the locale


if __name__ == "__main__":
    main(*sys.argv[1:])
