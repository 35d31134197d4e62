"""The checks of modes `pod` and `node`: what is checked, when, and what the results mean for the node.

    catalogue           the table of kinds; a check of the settings made runnable
    builtin             the kinds, one file each
    profiles            ready-made lists of checks; pure
    rights              what a check needs beyond an ordinary container; pure
    engine              one thread a check; keeps the health of the node
    schedule            when a check runs; pure
    state               findings -> state of a check, by thresholds; pure
    health              states of all checks -> health of the node; pure
    last_failures       output of checks that do not pass, for alerts; pure
    pages               the checks as JSON, as a table, and one explained; pure
    kernel_events       wakes a check when the kernel has events for it
    subprocess_reader   reads files in a child process, which is killed where a mount hangs
    file_contents       what such a child process reads: files, names, owners
    tempfile_script     part of a script: a file without a name, to test writes; pure
    kernel_files        small files that show the kernel's state
    kernel_lines        which trouble a line of the kernel log reports; pure
    kernel_troubles     which troubles of the kernel log still hold; pure
    own_classes         classes of kernel log lines that the settings define; pure
    linear_patterns     regular expressions with bounded time; pure
    pattern_syntax      reads such an expression into an automaton; pure
    block_devices       which mounts lie on a block device; pure
    sysfs               the block devices that exist, and what each is built on
    ports               network ports that sysfs shows; read by a child process
    networks            which network configuration a runtime takes
    executables         which binaries are run for a new pod
    delegates           which plugins a CNI plugin runs itself; pure
    go_json             JSON by the rules of Go's encoding/json; pure
    cgroups             finds the control group of all pods
    proxy_health        answers of kube-proxy, of all its releases; pure
    system_bus          reads properties of systemd's units
    dbus_messages       messages of D-Bus; pure
    surroundings        what the check podNetwork gets from its agent
    peers               which other nodes a node asks; pure
    peer_list           which nodes have an agent, read from the API server
    peer_policies       NetworkPolicies that stop packets between agents; pure
    peer_answer         what agents ask one another, and answer
    peer_verdict        whether this node or the network is at fault; pure
    pod_legs            the connections of the check podNetwork

Guaranteed: one run of a check at a time; a check that hangs, breaks or cannot be made changes only its own state; a
check that has passed is protected by the failure threshold; a check that could not run has neither passed nor failed;
a check that warns has passed.

Imported by `settings` (the keys of a check), `store`, `opinion` and `modes`. Sends nothing anywhere: `report` does.
"""
