"""Who we are towards the API server where we are not a pod of our own: mode node.

    token   Credentials: a token requested for a health pod of this node, by the kubelet's certificate

Guaranteed: the kubelet's certificate is used to read and to ask for tokens only. What is written is written with a
token that is bound to the health pod, so the admission policy that confines the agent in the pod confines us as well,
and it dies with that pod.

Imported by `agent.modes` only. The certificate's files are `kube.auth`'s.
"""
