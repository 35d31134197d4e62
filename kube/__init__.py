"""What both halves need to speak with the API server, and nothing more.

Reading order: `contract` (the shared words), `errors`, `objects`, `paths`, `times`; `auth`, `kubeconfig` and `connect`
(who we are); `addresses`, `transport`, `lines` (pure), `stream` and `client` (one call, one watch); `watching`,
`pacing`, `lag` (pure: what follows from what, and when), `listing`, `peers` and `reflector` (a store kept equal to the
server).

Here live no decision about a pod or a node, no settings, no metric registry, no word that only one half uses. A line
that does not know the Kubernetes API does not belong.

Guaranteed: every call has a deadline and one error type per cause; a store is never filled from an older list; stop()
unblocks whatever waits. Imported by agent, extender and cli; of ours it imports `component` only.
"""
