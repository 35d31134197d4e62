"""Real Kubernetes for tests and the demo, on this machine: `python -m tools.testbed`.

`plane` is ring 2: etcd, kube-apiserver, kube-controller-manager and kube-scheduler on loopback, without root.
`hosts` is ring 3: a kubeadm cluster of systemd hosts, with root.
`shared` is what both stand on, and what a test of either asks the API server with.

What belongs here starts, stops and speaks with real Kubernetes components. It knows nothing of how readygate decides:
it starts our programs as anybody would, by their command line. `plane` and `hosts` do not know each other. Every test
ring, the demo and the benchmark may import it; it imports none of them, and nothing of it is imported by the product.
"""
