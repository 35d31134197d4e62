"""Pure: whether new pods may be placed on a node, and if not, why.

    orders         orders of operators: hold, exempt, pause, arm, disarm
    evidence       what is observed of a node, in the terms of verdicts
    reasons        the texts that kube-scheduler shows; at most seven, constant
    placement      where the pods of a DaemonSet can run
    deadlines      which name is due when
    layered_map    a large mapping that changes a little at a time
    shares         a bounded dictionary that is fair to namespaces
    decision       the decision on a node and on a gate; values only
    damping        how long a node that keeps failing must be healthy before it opens again
    storm          many nodes that turn bad at once for one cause are held open
    caps           how many nodes may be closed, and which ones
    conditions     whether the conditions of a gate, on health pods or Nodes, are good
    cel            which drivers a CEL expression of a DeviceClass selects
    devices        which devices a pod claims by DRA
    pod_starts     on which nodes pods fail to start that start elsewhere
    pods           to which pods a gate applies
    verdict        the evidence of one node -> open, or closed with one constant reason
    gates          the gates of the configuration, in the terms of policy
    exempt         which pods are never refused a node
    refusals       which nodes were refused to some pod, and the order of steps that loses no kick
    encoded_names  node names as JSON, looked up without decoding
    snapshot       all decisions at a moment, looked up by requests
    node_rows      one node at one gate: verdict, order, damping
    limits         all bad nodes together: storms, then caps
    memory         the state from one decision to the next
    changes        what a decision has changed, as log lines
    decide         evidence of all changed nodes -> the next snapshot

Guaranteed: no clock, no lock, no object of the API; time is an argument. There are at most seven reasons, and none
holds a name, a digit or a time. Each module imports only those above it (import-linter, "the extender's policy").

Imports `config`. Imported by every other room of the extender, and by `cli`. Of it `cluster` uses evidence and the
values it consists of, and no verdict.
"""
