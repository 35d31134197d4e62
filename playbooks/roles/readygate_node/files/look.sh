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
# The first of its words in the kubelet's kubeconfig, which kubeadm and kubespray write.
said() { sed -n "s/^ *$1: *\"\{0,1\}\([^\" ]*\)\"\{0,1\} *$/\1/p" "$kubeconfig" 2>/dev/null | head -n 1; }
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
# A key of such a file as `=value`, nothing where it has none; a list with commas. YAML in blocks, or JSON.
value() {
    if [ "$(tr -d ' \t\r\n' < "$2" 2>/dev/null | cut -c 1)" = "{" ]; then
        { tr -d '\r\n\t' < "$2"; echo; } | sed -n "s/.*\"$1\" *: *\(\[[^]]*\]\|\"[^\"]*\"\|[^],} ]*\).*/=\1/p"
    else
        awk -v key="$1:" '{ sub(/[ \t\r]*$/, ""); sub(/ +#.*$/, "") } /^(#.*)?$/ { next }
            on && /^ *- / { sub(/^ *- +/, ""); list = list comma $0; comma = ","; next }
            on { on = 0 }
            index($0, key) == 1 { on = 1; list = ""; comma = ""; rest = substr($0, length(key) + 1); seen = 1 }
            END { if (seen) print "=" (list == "" ? rest : list) }' "$2" 2>/dev/null
    fi | tr -d "[]\"' "
}
configured() { files | while read -r file; do value "$1" "$file"; done | tail -n 1 | sed -e 's/^=//' -e 's/^\(null\|~\)$//'; }
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
