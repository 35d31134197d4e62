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
flag() { tr '\0' '\n' < "/proc/${kubelet:-none}/cmdline" 2>/dev/null | sed -n "s|^--$1=||p" | head -n 1; }
# The container runtime's socket: as the kubelet is given it, in its flags or its configuration, else where runtimes put it.
given() {
    flag container-runtime-endpoint | sed 's|^unix://||'
    sed -n 's|^containerRuntimeEndpoint: *"\{0,1\}\(unix://\)\{0,1\}\([^" ]*\).*|\2|p' /var/lib/kubelet/config.yaml 2>/dev/null
}
echo "runtime=$(first $(given) /run/containerd/containerd.sock /run/crio/crio.sock)"
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

# The addresses that checks need. Of the DNS servers: what the kubelet gives its pods, by its flags, else its configuration.
config=${KUBELET_CONFIG:-$(flag config)}
config=${config:-/var/lib/kubelet/config.yaml}
servers=$(flag cluster-dns)
if [ -z "$servers" ]; then
    servers=$(awk '/^clusterDNS:/ { on = 1; sub(/^clusterDNS:/, ""); if (/[^ ]/) { print; on = 0 }; next }
        on && /^ *- / { sub(/^ *- /, ""); print; next } { on = 0 }' "$config" 2>/dev/null | tr -d "[]\" '" | tr '\n' ',')
fi
echo "dns=${servers%,}"
domain=$(flag cluster-domain)
echo "domain=${domain:-$(sed -n "s/^clusterDomain: *[\"']\{0,1\}\([^\"' ]*\).*/\1/p" "$config" 2>/dev/null)}"
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
