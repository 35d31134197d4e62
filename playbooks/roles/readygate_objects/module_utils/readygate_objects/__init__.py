"""Shared code of this role's modules. Runs on the control plane hosts: Python 3.6 and later, no package.

rollout    pure: the progress and the verdict of a roll-out
trial      pure: the pods in which a new image reads its new configuration
canary     pure: the pods with which a play checks that kube-scheduler asks
lock       pure: which run may change the cluster now
kubectl    kubectl of the host
"""
