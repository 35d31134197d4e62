"""Changes what kube-scheduler of this host runs with, so that it works with the new files or has the old ones back.

Commit-confirm, as network gear does it: `apply` tries a new configuration with the scheduler's own binary, keeps what
is needed to go back, renames the new manifest into place and waits until a new process shows the configuration at
/configz. Else the old manifest comes back, first of all. Where it stands is never noted: it is what lies in the folder
(`pending/` and the manifest in place), so that after a kill or a reboot at any moment `recover` ends it: forwards where
it is proven, else backwards. While a change is open, a timer of systemd calls `recover`, at boot too.

Stands alone (Python 3.6 and its library, any systemd); Ansible starts it, and needs not live until it ends. In its
folder, /etc/kubernetes/readygate:

    bin/       this program          original/  what was there before us; never written again
    pending/   the open change       proven/    the last that worked: target, without (as it would be without us), mark
    verdict.json   what became of the last change

Modules: command (what can be asked of it), change (one change, from begin to verdict), dead_man (systemd calls again),
jobs (what a change is told, and what is kept of it), proof (what the scheduler has loaded), scheduler (its processes,
its health), kubelet (has it look again), lease (of who leads), hands (everything that leaves a mark), errors, documents
and dialect (not on the host).
"""
