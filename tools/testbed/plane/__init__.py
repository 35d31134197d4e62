"""Ring 2: a real control plane on loopback, each component a process of this user.

`plane.Plane` is its life and use, `command` its verbs on the command line (one standing plane of this user).
`identities` and `pki`: who may speak with its API server, and by what.
`scheduler_config`: kube-scheduler's configuration, with and without the extender; `programs`: our programs beside it.
`proxy`, `recorder`: what stands between two of them to delay or to note. `loopback`: requests to the plane's servers.

Guarantees: needs no root; any number of planes at once; none leaves a process behind, not even when it was killed.
Imports `tools.testbed.shared`, never `tools.testbed.hosts`.
"""
