# What is on this host, for the play: one `key=value` a line. Changes nothing;
#   sh -s FOLDER UNIT KUBECONFIG AUTHORITY SERVER ADDRESS < look.sh
# KUBECONFIG: the kubelet's. AUTHORITY: a file with the CA of the cluster, SERVER: the API server's URL; empty: what is found.
# ADDRESS: of this host in the inventory, or none; empty: addresses of the cluster are not looked for.
folder=$1 unit=$2 kubeconfig=$3 authority=$4 server=$5 address=$6
units=${UNITS:-/etc/systemd/system}
shown() { systemctl show --property="$1" --value "$unit" 2>/dev/null; }
version=$(systemctl --version 2>/dev/null | sed -n '1s/^systemd \([0-9]*\).*/\1/p')
echo "status=$(shown StatusText)"
echo "machine=$(uname -m)"
echo "systemd=${version:-0}"
echo "images=$(ls "$folder/images" 2>/dev/null | tr '\n' ' ')"
echo "revision=$(sed -n 's/^# Revision: //p' "$units/$unit" 2>/dev/null)"
echo "state=$(shown ActiveState) $(shown UnitFileState)"
# The configuration is named by its content: what somebody has edited is not what it is called.
digest() { sha256sum "$1" 2>/dev/null | cut -c 1-12; }
bound=$(sed -n "s|^BindReadOnlyPaths=\($folder/configuration/.*\):/etc/readygate$|\1|p" "$units/$unit" 2>/dev/null)
case "$bound" in
    *"/$(digest "$bound/agent.yaml")") echo "intact=yes" ;;
    *) echo "intact=no" ;;
esac
if [ -e "$folder/earlier.service" ]; then echo "open=yes"; else echo "open=no"; fi
first() { for one; do if [ -e "$one" ]; then echo "$one"; return; fi; done; }
# The kubelet's flags are those of its process; where systemd is about to start that, a moment later: in the next look they
# would be there, and so be another configuration.
for tries in 1 2 3 4 5 6; do
    kubelet=$(pidof kubelet)
    [ -z "$kubelet" ] || break
    case "$tries $(systemctl is-active kubelet 2>/dev/null)" in
        [12]" active" | [1-5]" "*ing) sleep "${PAUSE_S:-2}" ;;
        *) break ;; # its process may be called otherwise
    esac
done
kubelet=${kubelet%% *}
# All values of a flag, one a line: `--name=value` or `--name value`.
flags() {
    tr '\0' '\n' < "/proc/${kubelet:-none}/cmdline" 2>/dev/null |
        awk -v name="--$1" 'on { print; on = 0; next } $0 == name { on = 1; next }
            index($0, name "=") == 1 { print substr($0, length(name) + 2) }'
}
flag() { flags "$1" | tail -n 1; }
# The kubelet's configuration: its file, then those of its folder, each over the ones before, as mergeKubeletConfigurations in
# cmd/kubelet/app/server.go does; its flags come before all of them.
config=${KUBELET_CONFIG:-$(flag config)}
dropins=$(flag config-dir)
[ -n "$config$dropins" ] || config=/var/lib/kubelet/config.yaml
files() {
    [ -z "$config" ] || echo "$config"
    # In the order of Go's WalkDir, by the names of each folder.
    [ -z "$dropins" ] || find "$dropins" -name '*.conf' ! -type d 2>/dev/null | tr / '\001' | LC_ALL=C sort | tr '\001' /
}
python=$(for one in python3 /usr/libexec/platform-python python; do command -v "$one" && break; done)
understood() {
    # Copies of yaml_text.py and kubelet_files.py, made by `make manifests`.
    "${python:-false}" -I -S -B - "$kubeconfig" "$@" <<'PYTHON'
"""Reads YAML with nothing but Python's standard library, as a host may have no PyYAML.

As the kubelet reads it (sigs.k8s.io/yaml), of several documents the first: all of YAML but keys of more than one line
(`? `) and what tags make of a text. A scalar without quotes stays a text. Needs Python 3.6.

look.sh has a copy of this file, made by `make manifests`.
"""

import json
import re

_LETTERS, _CHARACTERS = '0abtnvfre "/\\N_LP\t', '\0\a\b\t\n\v\f\r\x1b "/\\\x85\xa0\u2028\u2029\t'
ESCAPED = {letter: _CHARACTERS[place] for place, letter in enumerate(_LETTERS)}
LENGTHS = {"x": 2, "u": 4, "U": 8}
DEEPEST = 100
PROPERTY = re.compile(r"([&!])(\S*)[ \t]*")
END = re.compile(r"^(---|\.\.\.)(?=\s|$)", re.M)
KEY = re.compile(r"(?![\[\]{},#&*!|>'\"%@`]|[-?](\s|$))(?:[^\s:#]|:(?=\S)|(?<=\S)#|[ \t]+(?=[^\s:#])|[ \t]+(?=:\S))+")
BLOCK_SCALAR = re.compile(r"([|>])([-+0-9]{0,2})[ \t]*(#.*)?$", re.M)


class NotUnderstoodError(ValueError):
    """The text is no YAML, or YAML that this does not read."""


class Plain(str):
    """A scalar without quotes: only such a one may be null."""

    __slots__ = ()


class Reader:
    """Of one document. `at`: the place in the text."""

    def __init__(self, text):
        self.text, self.at, self.anchors, self.depth = text, 0, {}, 0

    def error(self, why):
        return NotUnderstoodError("line %d: %s" % (self.text.count("\n", 0, self.at) + 1, why))

    def column(self):
        return self.at - (self.text.rfind("\n", 0, self.at) + 1)

    def peek(self, count=1):
        return self.text[self.at : self.at + count]

    def take(self, pattern):
        found = re.compile(pattern).match(self.text, self.at)
        self.at = found.end() if found else self.at
        return found

    def blanks(self, lines=True):
        """Past blanks and comments, and also past ends of lines."""
        while True:
            begin = self.at
            self.take(r"[ \t]+")
            if self.peek() == "#" and (self.at == 0 or self.text[self.at - 1] in " \t\n]}'\""):
                self.take(r"[^\n]*")
            if lines:
                self.take(r"\n+")
            if self.at == begin or not lines:
                return

    def document(self):
        self.blanks()
        value = self.node(-1)
        self.blanks()
        if self.at < len(self.text):
            raise self.error("more than one value")
        return value

    def node(self, parent, is_value=False):
        """A node that is indented more than `parent`; as the value of a key also a list that is indented as much."""
        self.depth += 1
        if self.depth > DEEPEST:
            raise self.error("too deep")
        try:
            return self._node(parent, is_value)
        finally:
            self.depth -= 1

    def _node(self, parent, is_value):
        line, anchor = self.text.count("\n", 0, self.at), None
        self.blanks()
        begin = self.at
        if not self._is_within(parent, is_value):
            return Plain("")
        if self.peek() == "*":
            alias = self.take(r"\*([^\s,\[\]{}]+)")
            if not self._colon():
                return self._known(alias)
            self.at = begin
        while PROPERTY.match(self.text, self.at) and not self._starts_key():
            kind, name = self.take(PROPERTY.pattern).groups()
            anchor = name if kind == "&" else anchor
            self.blanks()
            if not self._is_within(parent, is_value):
                return self._keep(anchor, Plain(""))
        column, new_line = self.column(), self.text.count("\n", 0, self.at) > line
        if self.take(r"-(?=\s|$)"):
            if is_value and not new_line:
                raise self.error("a list on the line of its key")
            self.at -= 1
            return self._keep(anchor, self._list(column))
        if (not is_value or new_line) and self._starts_key():
            return self._keep(anchor, self._mapping(column))
        scalar = BLOCK_SCALAR.match(self.text, self.at)
        if scalar:
            return self._keep(anchor, self._block_scalar(scalar, parent))
        if self.peek() in "[{\"'":
            return self._keep(anchor, self._flow())
        return self._keep(anchor, self._plain(parent))

    def _is_within(self, parent, is_value):
        if self.at >= len(self.text):
            return False
        column = self.column()
        return column > parent or (is_value and column == parent and self.take(r"(?=-(\s|$))") is not None)

    def _known(self, alias):
        if not alias or alias.group(1) not in self.anchors:
            raise self.error("an alias of nothing")
        return self.anchors[alias.group(1)]

    def _keep(self, anchor, value):
        if anchor:
            self.anchors[anchor] = value
        return value

    def _colon(self):
        return re.compile(r"[ \t]*:(?=\s|$)").match(self.text, self.at)

    def _starts_key(self):
        """Is here a key of a mapping, on one line?"""
        begin = self.at
        try:
            self._key()
            return self._colon() is not None
        except NotUnderstoodError:
            return False
        finally:
            self.at = begin

    def _key(self):
        while self.take(r"[&!]\S*[ \t]+"):
            pass
        alias = self.take(r"\*([^\s,\[\]{}]+)")
        if alias:
            return self._known(alias)
        if self.take(r"\?(?=\s)"):
            raise self.error("a key of its own line")
        if self.peek() in "\"'":
            begin = self.at
            key = self._quoted()
            if "\n" in self.text[begin : self.at]:
                raise self.error("a key of several lines")
            return key
        key = self.take(KEY.pattern)
        if not key:
            raise self.error("no key")
        return Plain(key.group())

    def _mapping(self, column):
        found, merged = {}, []
        while True:
            key = self._key()
            self.at = self._colon().end()
            value = self.node(column, True)
            if isinstance(key, Plain) and key == "<<":
                merged += value if isinstance(value, list) else [value]
            else:
                found[str(key)] = value
            self.blanks()
            if self.at >= len(self.text) or self.column() < column:
                break
            if self.column() > column or not self._starts_key():
                raise self.error("no key")
        for one in merged:
            found = {**one, **found} if isinstance(one, dict) else found
        return found

    def _list(self, column):
        found = []
        while True:
            self.at += 1
            found.append(self.node(column))
            self.blanks()
            if self.at >= len(self.text) or self.column() < column or not self.take(r"(?=-(\s|$))"):
                if self.at < len(self.text) and self.column() > column:
                    raise self.error("no entry of the list")
                return found

    def _block_scalar(self, header, parent):
        """`|` keeps the ends of lines, `>` folds them; a number is the indentation, `-` and `+` are about the last."""
        style, how = header.group(1), header.group(2)
        self.at = min(header.end() + 1, len(self.text))
        number = re.sub(r"[-+]", "", how)
        indent, lines = (max(parent, 0) + int(number) if number else None), []
        while self.at < len(self.text):
            line = self.take(r"[^\n]*").group()
            own = len(line) - len(line.lstrip(" "))
            if line.strip(" "):
                indent = own if indent is None else indent
                if own < indent or own <= parent:
                    self.at -= len(line)
                    break
            lines.append(line[indent if indent is not None else own :])
            self.at += 1
        self.at = min(self.at, len(self.text))
        text = "\n".join(lines)
        if style == ">":
            text = re.sub(r"(?<=\S)\n(\n*)(?=\S)", lambda ends: ends.group(1) or " ", text)
        stripped = text.rstrip("\n")
        return text + "\n" if "+" in how else stripped if "-" in how or not stripped else stripped + "\n"

    def _plain(self, parent, flow=False):
        """Also of several lines, each indented more than `parent`."""
        stop = r",\[\]{}" if flow else ""
        word = r"(?:[^\s:#%s]|:(?=[^\s%s])|(?<=[^\s])#)+" % (stop, stop)
        if re.compile(r"[\[\]{},#&*!|>'\"%%@`]|[-?:](\s|$|[%s])" % (stop or " ")).match(self.text, self.at):
            raise self.error("no value")
        text = ""
        while True:
            line = self.take(word + r"(?:[ \t]+" + word + ")*")
            if not line:
                break
            text += line.group()
            begin = self.at
            lines = self.take(r"[ \t]*\n\s*")
            if not lines or self.peek() in ("", "#") or (not flow and self.column() <= parent):
                self.at = begin
                break
            if not re.compile(word).match(self.text, self.at):
                self.at = begin
                break
            text += "\n" * (lines.group().count("\n") - 1) or " "
        if not flow and self._colon():
            raise self.error("a key within a value")
        return Plain(text.strip())

    def _quoted(self):
        quote, text = self.peek(), ""
        self.at += 1
        while True:
            text += self.take(r"[^'\n]*" if quote == "'" else r"[^\"\\\n]*").group()
            one = self.peek()
            if not one:
                raise self.error("no end of a quote")
            if one == "\n":
                ends = self.take(r"\s*").group().count("\n")
                text = text.rstrip(" \t") + ("\n" * (ends - 1) or " ")
            elif one == "\\":
                text += self._escape()
            elif quote == "'" and self.peek(2) == "''":
                text, self.at = text + "'", self.at + 2
            else:
                self.at += 1
                return text

    def _escape(self):
        if self.take(r"\\\n[ \t]*"):
            return ""
        one = self.peek(2)[1:]
        self.at += 2
        if one in LENGTHS:
            digits = self.peek(LENGTHS[one])
            self.at += LENGTHS[one]
            try:
                return chr(int(digits, 16))
            except (ValueError, OverflowError):
                raise self.error("no character") from None
        if one not in ESCAPED:
            raise self.error("no such escape")
        return ESCAPED[one]

    def _flow(self):
        """A value within brackets, or a quoted one."""
        self.depth += 1
        if self.depth > DEEPEST:
            raise self.error("too deep")
        anchor = None
        while self.peek() in ("&", "!"):
            kind, name = self.take(r"([&!])([^\s,\[\]{}]*)").groups()
            anchor = name if kind == "&" else anchor
            self.blanks()
        alias = self.take(r"\*([^\s,\[\]{}]+)")
        if alias:
            value = self._known(alias)
        elif self.peek() in ("[", "{"):
            value = self._items(self.peek())
        elif self.peek() in ("'", '"'):
            value = self._quoted()
        elif self.peek() in (",", "]", "}", ":"):
            value = Plain("") if self.peek() != ":" or self._ends_key(Plain("")) else self._plain(0, flow=True)
        else:
            value = self._plain(0, flow=True)
        self.depth -= 1
        return self._keep(anchor, value)

    def _items(self, bracket):
        found, end = ({}, "}") if bracket == "{" else ([], "]")
        self.at += 1
        while True:
            self.blanks()
            if not self.peek():
                raise self.error("no end of " + bracket)
            if self.peek() == end:
                self.at += 1
                return found
            key = self._flow()
            self.blanks()
            is_pair = self._ends_key(key)
            if is_pair:
                self.at += 1
                self.blanks()
            value = self._flow() if is_pair else Plain("")
            self._add(found, key, value, is_pair)
            self.blanks()
            if not self.take(",") and self.peek() != end:
                raise self.error("no comma")

    def _ends_key(self, key):
        """Behind a quoted key the colon may stand without a blank, as in JSON."""
        if self.peek() != ":":
            return False
        return not isinstance(key, Plain) or self.take(r"(?=:([\s,\[\]{}]|$))") is not None

    def _add(self, found, key, value, is_pair):
        if isinstance(found, list):
            found.append({str(key): value} if is_pair else key)
        elif not isinstance(key, str):
            raise self.error("no key")
        elif isinstance(key, Plain) and key == "<<" and isinstance(value, (dict, list)):
            for one in value if isinstance(value, list) else [value]:
                for name in one if isinstance(one, dict) else ():
                    found.setdefault(name, one[name])
        else:
            found[str(key)] = value


def text_of(content):
    """Of a file, as YAML may be encoded."""
    text = content.decode("utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
    return re.sub(r"\r\n?", "\n", text)


def first_document(text):
    """Without the lines that begin or end it."""
    head = re.match(r"(?:[ \t]*(?:#[^\n]*)?\n|%[^\n]*\n)*---(?=\s|$)", text)
    if head:
        # What follows on the line is at the column that it has.
        text = "\n" * (text.count("\n", 0, head.end())) + "   " + text[head.end() :]
    end = END.search(text)
    return text[: end.start()] if end else text


def read(content):
    """The first document of a file. Raises ValueError."""
    text = text_of(content)
    try:
        return json.loads(text)
    except ValueError:
        return Reader(first_document(text)).document()


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
PYTHON
}
understood=$(
    IFS='
'
    set -f
    understood $(files)
) || failed="$config: not read, as ${python:-python3} ended with $?"
[ -n "$python" ] || failed="$config: not read, as no Python 3 is in PATH"
configured() { printf '%s\n' "$understood" | sed -n "s|^$1=||p" | head -n 1; }
# Of the kubelet's kubeconfig; the first of its words where the file is not understood.
said() {
    if [ -n "$(configured server)" ]; then configured "$1"; return; fi
    sed -n "s/^ *$1: *\"\{0,1\}\([^\" ]*\)\"\{0,1\} *$/\1/p" "$kubeconfig" 2>/dev/null | head -n 1
}
unread=${failed:-$(configured unread)}
[ -n "$kubelet$unread" ] || [ -e "$config" ] || unread="$config: is not there, and no process is called kubelet"
echo "unread=$unread"
# Its flag, else what is configured.
set_to() {
    by_flag=$(flag "$1")
    echo "${by_flag:-$(configured "$2")}"
}
# The container runtime's socket: as the kubelet is given it, else where runtimes put it.
given=$(set_to container-runtime-endpoint containerRuntimeEndpoint | sed 's|^unix:\(//\)\{0,1\}||')
echo "runtime=$(first $given /run/containerd/containerd.sock /run/crio/crio.sock)"
# Where it tells whether it is well; port 0: nowhere.
health_port=$(set_to healthz-port healthzPort)
health_address=$(set_to healthz-bind-address healthzBindAddress)
case "$health_address" in
    "" | 0.0.0.0) health_address=127.0.0.1 ;;
    ::) health_address='[::1]' ;;
    *:*) health_address="[$health_address]" ;;
esac
if [ "$health_port" = 0 ]; then echo "health=none"; else echo "health=http://$health_address:${health_port:-10248}/healthz"; fi
certificate=$(said client-certificate)
named=$(openssl x509 -noout -subject -nameopt multiline -in "${certificate:-/}" 2>/dev/null | sed -n 's/.*= system:node:\(.*\)/\1/p')
overridden=$(flag hostname-override)
own=$(uname -n | tr 'A-Z' 'a-z')
named=${named:-$overridden}
echo "name=${named:-$own}"
echo "server=$(said server)"
echo "certificate=$certificate"
key=$(said client-key)
echo "key=$key"
found=$(first "$(said certificate-authority)" /etc/kubernetes/pki/ca.crt /etc/kubernetes/ssl/ca.crt)
echo "authority=$found"
echo "authority_digest=$(digest "${authority:-${found:-/}}")"
[ -n "$address" ] || exit 0

# The addresses that checks need. Of the DNS servers: those that the kubelet gives its pods.
servers=$(flags cluster-dns | tr '\n' ',')
servers=${servers:-$(configured clusterDNS)}
echo "dns=${servers%,}"
echo "domain=$(set_to cluster-domain clusterDomain)"
echo "cgroup_root=$(set_to cgroup-root cgroupRoot)"
echo "port=$(set_to port port)"
if ip -o addr show 2>/dev/null | grep -qF " $address/"; then echo "own=yes"; else echo "own=no"; fi
# Of the API server's Service, as it tells the kubelet, which may read that. Where it does not answer, what it has told the
# last time, which is in the configuration that is in place: a server that is away changes no host.
place=${server:-$(said server)}
place=${place#*://}
place=${place%%/*}
case "$place" in
    *\]) place=$place:443 ;;
    *:*) ;;
    *) place=$place:443 ;;
esac
name=${place%:*}
name=${name#\[}
name=${name%\]}
case "$name" in
    *:*) by=-verify_ip ;;
    *[!0-9.]*) by=-verify_hostname ;;
    *) by=-verify_ip ;;
esac
asked() {
    printf 'GET /api/v1/namespaces/default/%s/kubernetes HTTP/1.0\r\nHost: %s\r\nUser-Agent: readygate\r\n\r\n' "$1" "$name" |
        timeout 5 openssl s_client -quiet -connect "$place" -cert "$certificate" -key "${key:-$certificate}" \
            -CAfile "${authority:-$found}" -verify_return_error "$by" "$name" 2>/dev/null | tr -d ' \n\r'
}
kept() { sed -n "s/^# Seen: $1=//p" "$bound/agent.yaml" 2>/dev/null | head -n 1; }
# Of kube-proxy, or who stands in for it: where it tells how it is. Its port is open also while it stands still; while it is
# started again, and its pod or its unit is there, what was found the last time.
proxy=$(ss -Hltn "sport = :10256" 2>/dev/null | awk '{ sub(/:10256$/, "", $4); print $4 }' | tr -d '[]' | sort | head -n 1)
case "$proxy" in
    "*" | 0.0.0.0) proxy=127.0.0.1 ;;
    ::) proxy=::1 ;;
    "")
        if [ -n "$(pidof kube-proxy)" ] || systemctl is-enabled kube-proxy >/dev/null 2>&1 ||
            ls -d "${PODS:-/var/lib/kubelet/pods}"/*/volumes/kubernetes.io~configmap/kube-proxy >/dev/null 2>&1; then
            proxy=$(kept proxy)
        fi
        ;;
esac
echo "proxy=$proxy"
services=$(asked services | sed -n 's/.*"clusterIPs":\[\([^]]*\)\].*/\1/p' | tr -d '"')
behind=
[ -z "$services" ] || behind=$(asked endpoints | sed -n 's/.*"subsets":\(.*\)/\1/p')
api_port=$(printf %s "$behind" | grep -o '"port":[0-9]*' | head -n 1 | cut -d : -f 2)
echo "services=${services:-$(kept services)}"
# A server that is being started again is out of its own Service for a moment; it is no other cluster for that.
if [ -n "$api_port" ]; then
    echo "endpoints=$(printf %s "$behind" | grep -o '"ip":"[^"]*"' | cut -d '"' -f 4 | sort | tr '\n' ',')"
    echo "api_port=$api_port"
else
    for one in endpoints api_port; do echo "$one=$(kept $one)"; done
fi
