// Command driver answers histories by the kubelet's own packages: a batch of one target a line in, its answers a line out.
//
// It says what the kubelet does and never what is right: the other side compares. Times are seconds since the epoch.
package main

import (
	"runtime"

	"github.com/go-logr/logr"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	"k8s.io/component-base/version"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/features"
	"readygate.dev/testbed/kube/mended"
)

// Those that a batch may set; the first line says how they stand.
var gates = []featuregate.Feature{
	features.ChangeContainerStatusOnKubeletRestart,
	features.ContainerRestartRules,
	features.RestartAllContainersOnContainerExits,
	features.PLEGOnDemandRelist,
	features.PodReadyToStartContainersCondition,
	features.NodeDeclaredFeatures,
	features.KubeletRegistrationGetOnExistsOnly,
}

// What the agent does not model, and what would ask for cgroups.
var off = map[string]bool{
	string(features.ExtendWebSocketsToKubelet):               false,
	string(features.InPlacePodLevelResourcesVerticalScaling): false,
	string(features.InPlacePodVerticalScalingInitContainers): false,
}

func main() {
	klog.SetLogger(logr.Discard())
	utilruntime.ReallyCrash = false
	if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(off); err != nil {
		fatal(err)
	}
	standing := map[string]bool{}
	for _, gate := range gates {
		standing[string(gate)] = utilfeature.DefaultFeatureGate.Enabled(gate)
	}
	first := map[string]any{"kubernetes": version.Get().GitVersion, "go": runtime.Version(), "gates": standing}
	serve(first, func(asked batch) error {
		mended.Set(asked.Mended)
		return utilfeature.DefaultMutableFeatureGate.SetFromMap(asked.Gates)
	})
}
