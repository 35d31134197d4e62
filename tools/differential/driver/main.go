// Command driver answers histories by the kubelet's own packages: a batch of one target a line in, its answers a line out.
//
// It says what the kubelet does and never what is right: the other side compares. Times are seconds since the epoch.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
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

// A target answers one history.
type target func(json.RawMessage) (any, error)

type batch struct {
	Target    string            `json:"target"`
	Gates     map[string]bool   `json:"gates"`
	Histories []json.RawMessage `json:"histories"`
	Mended    []string          `json:"mended"`
}

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
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := bufio.NewWriterSize(os.Stdout, 1<<20)
	standing := map[string]bool{}
	for _, gate := range gates {
		standing[string(gate)] = utilfeature.DefaultFeatureGate.Enabled(gate)
	}
	say(out, map[string]any{"kubernetes": version.Get().GitVersion, "go": runtime.Version(), "gates": standing})
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var asked batch
		if err := json.Unmarshal(line, &asked); err != nil {
			fatal(err)
		}
		if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(asked.Gates); err != nil {
			fatal(err)
		}
		mended.Set(asked.Mended)
		answers := make([]any, 0, len(asked.Histories))
		for _, history := range asked.Histories {
			answers = append(answers, answer(targets[asked.Target], history))
		}
		say(out, answers)
	}
}

// A history that cannot be answered is answered by its error: a shrunk one may be no history at all.
func answer(of target, history json.RawMessage) (answered any) {
	defer func() {
		if found := recover(); found != nil {
			answered = map[string]any{"error": fmt.Sprint(found)}
		}
	}()
	answered, err := of(history)
	if err != nil {
		return map[string]any{"error": err.Error()}
	}
	return answered
}

func say(out *bufio.Writer, value any) {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		fatal(err)
	}
	if err := out.Flush(); err != nil {
		fatal(err)
	}
}

func fatal(err error) {
	fmt.Fprintln(os.Stderr, "driver:", err)
	os.Exit(1)
}
