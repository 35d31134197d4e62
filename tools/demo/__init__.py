"""`make demo`: a person watches the real kube-scheduler obey the health pods, on a control plane of their own.

What belongs here tells a story and checks that each part of it was seen through the API server. How the cluster is made
belongs to `tools/testbed`.
"""
