"""The client of the Kubernetes API that agent, extender and cli share, and nothing more.

Reading order: `contract` (shared words), `errors`, `objects`, `paths`, `times`; `auth`, `kubeconfig` and `connect`
(identity and address); `addresses`, `transport`, `lines` (pure), `stream` and `client` (one call, one watch);
`watching`, `retry_policy`, `staleness` (pure: what follows from events and errors, and when), `listing`,
`server_health` and `reflector` (a store kept equal to the server).

It has no decision about a pod or a node, no settings, no metric registry, and no word that only one program uses. A
line that does not know the Kubernetes API does not belong here.

Guaranteed: every call has a deadline and one error type per cause. A store is never filled from an older list. stop()
unblocks every waiting thread. Imported by agent, extender and cli; of readygate it imports `component` only.
"""
