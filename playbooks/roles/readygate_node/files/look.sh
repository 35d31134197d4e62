# What is on this host, for the play: one `key=value` a line. Changes nothing;
#   sh -s FOLDER UNIT KUBECONFIG AUTHORITY < look.sh
# KUBECONFIG: the kubelet's. AUTHORITY: a file with the CA of the cluster, empty: what is found.
folder=$1 unit=$2 kubeconfig=$3 authority=$4
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
# The container runtime's socket: as the kubelet is given it, in its flags or its configuration, else where runtimes put it.
given() {
    tr '\0' '\n' < "/proc/$(pidof kubelet)/cmdline" 2>/dev/null | sed -n 's|^--container-runtime-endpoint=\(unix://\)\{0,1\}||p'
    sed -n 's|^containerRuntimeEndpoint: *"\{0,1\}\(unix://\)\{0,1\}\([^" ]*\).*|\2|p' /var/lib/kubelet/config.yaml 2>/dev/null
}
echo "runtime=$(first $(given) /run/containerd/containerd.sock /run/crio/crio.sock)"
certificate=$(said client-certificate)
named=$(openssl x509 -noout -subject -nameopt multiline -in "${certificate:-/}" 2>/dev/null | sed -n 's/.*= system:node:\(.*\)/\1/p')
overridden=$(tr '\0' '\n' < "/proc/$(pidof kubelet)/cmdline" 2>/dev/null | sed -n 's/^--hostname-override=//p')
own=$(uname -n | tr 'A-Z' 'a-z')
named=${named:-$overridden}
echo "name=${named:-$own}"
echo "server=$(said server)"
echo "certificate=$certificate"
echo "key=$(said client-key)"
found=$(first "$(said certificate-authority)" /etc/kubernetes/pki/ca.crt /etc/kubernetes/ssl/ca.crt)
echo "authority=$found"
echo "authority_digest=$(digest "${authority:-${found:-/}}")"
