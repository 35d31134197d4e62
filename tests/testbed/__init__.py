"""Real Kubernetes for tests and the demo, on this machine.

Ring 2 (`plane`): etcd, kube-apiserver, kube-controller-manager and kube-scheduler on loopback, without root.
Ring 3 (`hosts`): a kubeadm cluster of systemd hosts, with root.

What belongs here starts, stops and speaks with real Kubernetes components. It knows nothing of how readygate decides:
it starts our programs as anybody would, by their command line. Nothing here is imported by the product.
"""
