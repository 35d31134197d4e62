"""readygate's whole way over one real kubeadm cluster: installed, armed, changed to its other forms, removed without a
trace. The gate's part of ring 3 that deploys by Ansible: few plays, many assertions on each.

Read conftest.py first, then the tests in the order of their names: each module begins with the state that the one
before it has left.
"""
