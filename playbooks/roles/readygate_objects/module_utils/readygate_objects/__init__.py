"""What the modules of this role are made of. Runs on the control plane hosts: Python 3.6 and later, no package.

rollout    pure: what becomes of a roll-out
trial      pure: the pods in which a new image reads its new configuration
canary     pure: the pods by which a play sees that kube-scheduler asks
lock       pure: who may change the cluster now
kubectl    kubectl of the host
"""
