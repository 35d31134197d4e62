"""Changes the files that kube-scheduler of this host runs with: it works with the new files, or gets the old ones back.

It is a commit with confirmation, as network devices do it. `apply` tries a new configuration with the scheduler's own
binary, saves what undoing needs, renames the new manifest into place and waits until a new process shows the
configuration at /configz. Otherwise the old manifest is put back first of all. No file records the progress: the files
themselves are the state (`pending/` and the manifest in place). So after a kill or a reboot at any moment `recover`
completes the change if it is proven, and undoes it otherwise. While a change is open, a timer of systemd calls
`recover`, at boot too.

The program needs only Python 3.6 and systemd. Ansible starts it, and may die before it ends. In its folder,
/etc/kubernetes/readygate:

    bin/       this program          original/  the state before readygate; never overwritten
    pending/   the open change       proven/    the last change that worked: target, without (without readygate), mark
    verdict.json   the result of the last change

Modules: command (the commands), change (one change, from begin to verdict), dead_man (the timer), jobs (the job of a
change, and its mark), proof (the loaded configuration), scheduler (its processes and health), kubelet (resync of a
static pod), lease (leader election), host_io (all effects on the host), errors, documents and dialect (not on the
host).
"""
