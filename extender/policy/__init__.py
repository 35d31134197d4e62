"""Pure: may new pods be placed on a node, and if not, why.

    orders     what operators have ordered: hold, exempt, pause, arm, disarm
    evidence   what is seen of a node, in the words of verdicts
    reasons    the texts that kube-scheduler shows; at most seven, constant
    placement  where the pods of a DaemonSet can run
    overlay    a large mapping that changes a little at a time
    decision   what was decided of a node, of a gate; values only
    damping    how long a node that keeps failing must be healthy before it opens again
    storm      many nodes that turn bad at once for one cause are held open
    caps       how many nodes may be closed, and which ones
    conditions whether a gate's conditions, the pod's or those others write on Nodes, are as they shall be
    cel        which drivers a CEL expression of a DeviceClass admits
    devices    which devices a pod claims by DRA
    pods       for which pods a gate speaks
    verdict    the evidence of one node -> open, or closed with one constant reason
    gates      the gates of the configuration, as policy sees them
    exempt     which pods are never refused a node
    refusals   which nodes were refused to some pod, and the order that loses no kick
    spelling   names of nodes as JSON spells them, looked up as they came
    snapshot   all decisions at a moment, looked up by requests
    rows       one node at one gate: verdict, order, damping
    ledger     what is remembered from one decision to the next
    brakes     all bad nodes together: storms, then caps
    decide     evidence of all that changed -> the next snapshot

Guaranteed: no clock, no lock, no object of the API; time is an argument; at most seven reasons, none of which ever
holds a name, a digit or a time. Each imports only those above it (import-linter, "the extender's policy").

Imported by `decider`, `services`, `verbs`, `web`; `evidence` and `devices` also by `cluster`.
"""
