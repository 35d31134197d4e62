"""Ring 3: systemd hosts on this machine, joined to one cluster by kubeadm. Needs root.

`hosts.Hosts` is their life and use, `command` its verbs on the command line.
`layout`: which hosts there are: one control plane and two workers, or three control planes; sets of them side by side.
`machine`, `network`, `cgroups`, `limits`: one host, and what of this machine each gets or all need.
`layers`, `images`, `kubeadm`: what is on a host's disk, the control plane's images, and the joining.
`snapshot`, `snapshot_cache`: what kubeadm left on the disks of an earlier start, from which most starts begin.
`access`, `readiness`: SSH, the administrator's client, the inventory for Ansible; when a cluster may be used.
`state`, `teardown`: what a run has made, on disk, so that any later process removes it and nothing else.

Guarantees: a Ready node for each host that joined, or a HostsError with cause and remedy in one line, and then nothing
is left running.
Imports `tools.testbed.shared` and `images`, never `tools.testbed.plane`.
"""
