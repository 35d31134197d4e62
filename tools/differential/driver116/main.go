// Command driver of Kubernetes 1.16: answers histories by the packages of the kubelet that `kubelet.compat: v1.16` names.
//
// It has the same module path as the driver of the current release, so it is a program of its own. What both have in
// common lies in the folder of that one, and is copied here when this one is built.
//
//go:debug asynctimerchan=0
package main

import (
	"flag"
	"runtime"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/klog"
	"readygate.dev/testbed/kube/kubelet"
	node "readygate.dev/testbed/kube/node"
	"readygate.dev/testbed/kube/pleg"
	"readygate.dev/testbed/kube/prober"
	"readygate.dev/testbed/kube/sources"
)

var targets = map[string]target{
	"generate-1.16": kubelet.AnswerStatus,
	"loops-1.16":    prober.AnswerLoops,
	"node-1.16":     node.Answer,
	"pleg-1.16":     pleg.Answer,
	"prober-1.16":   prober.Answer,
	"sources-1.16":  sources.Answer,
	"status-1.16":   kubelet.AnswerStatus,
}

// Set at the build: 1.16's own variable is in a package that says something else with modules.
var release string

func main() {
	flags := flag.NewFlagSet("klog", flag.ExitOnError)
	klog.InitFlags(flags)
	for name, value := range map[string]string{"logtostderr": "false", "stderrthreshold": "FATAL"} {
		if err := flags.Set(name, value); err != nil {
			fatal(err)
		}
	}
	klog.SetOutput(nowhere{})
	utilruntime.ReallyCrash = false
	utilruntime.PanicHandlers = nil
	first := map[string]any{"kubernetes": release, "go": runtime.Version(), "gates": map[string]bool{}}
	serve(first, func(asked batch) error { return utilfeature.DefaultMutableFeatureGate.SetFromMap(asked.Gates) })
}

type nowhere struct{}

func (nowhere) Write(written []byte) (int, error) { return len(written), nil }
