"""What of the kubelet's code no history has reached, as Go tells it."""

from tools.differential.coverage import Function, functions_of, unreached

TOLD = """\
k8s.io/kubernetes/pkg/probe/exec/exec.go:45:\t\tNew\t\t0.0%
k8s.io/kubernetes/pkg/probe/exec/exec.go:54:\t\tProbe\t\t95.0%
k8s.io/kubernetes/pkg/kubelet/oom/oom.go:10:\tNew\t\t0.0%
readygate.dev/testbed/kube/prober/shim.go:80:\tAnswer\t\t90.0%
readygate.dev/testbed/kube/prober/shim.go:90:\ttext\t\t0.0%
total:\t\t\t\t(statements)\t12.5%
"""
NEW = Function("k8s.io/kubernetes/pkg/probe/exec/exec.go", 45, "New", 0.0)


def test_each_function_is_told_with_how_much_of_it_was_run() -> None:
    found = functions_of(TOLD)
    assert (5, NEW, 95.0) == (len(found), found[0], found[1].percent)


def test_unreached_is_what_never_runs_beside_what_does_but_for_our_own() -> None:
    assert {NEW.file: [NEW]} == unreached(functions_of(TOLD))
