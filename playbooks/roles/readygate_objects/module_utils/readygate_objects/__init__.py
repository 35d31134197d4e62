"""What the modules of this role are made of. Runs on the control plane hosts: Python 3.6 and later, no package.

rollout    pure: what becomes of a roll-out
kubectl    trial      pure: the pods in which a new image reads its new configuration
    lock       pure: who may change the cluster now
    kubectl of the host
"""
