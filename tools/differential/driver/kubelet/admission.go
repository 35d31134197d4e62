// Pods that come one after the other to a node of a history's making: which of them are refused, and why.
package kubelet

import (
	"context"
	"encoding/json"
	"slices"

	v1 "k8s.io/api/core/v1"
	versionutil "k8s.io/apimachinery/pkg/util/version"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-helpers/nodedeclaredfeatures"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
	kubetypes "k8s.io/kubernetes/pkg/kubelet/types"
	schedulerframework "k8s.io/kubernetes/pkg/scheduler/framework"
)

type admissionHistory struct {
	Node     v1.Node  `json:"node"`
	Declared []string `json:"declared"`
	Steps    []struct {
		Gone        []string        `json:"gone"`        // names of pods that have ended before this one comes
		Allocatable v1.ResourceList `json:"allocatable"` // of the node from now on, where it is set
		Pod  v1.Pod   `json:"pod"`
	} `json:"steps"`
}

// A kubelet ends others to make room for a critical pod: here there is enough for it.
type asTheyAre struct{}

func (asTheyAre) HandleAdmissionFailure(_ context.Context, pod *v1.Pod, reasons []lifecycle.PredicateFailureReason) ([]lifecycle.PredicateFailureReason, error) {
	if !kubetypes.IsCriticalPod(pod) {
		return reasons, nil
	}
	return slices.DeleteFunc(reasons, func(reason lifecycle.PredicateFailureReason) bool {
		_, resource := reason.(*lifecycle.InsufficientResourceError)
		return resource
	}), nil
}

// AnswerAdmission tells of each pod why it is refused, nil where it is taken.
func AnswerAdmission(raw json.RawMessage) (any, error) {
	var given admissionHistory
	if err := json.Unmarshal(raw, &given); err != nil {
		return nil, err
	}
	node := func(context.Context, bool) (*v1.Node, error) { return given.Node.DeepCopy(), nil }
	noDevices := func(*schedulerframework.NodeInfo, *lifecycle.PodAdmitAttributes) error { return nil }
	handlers := []lifecycle.PodAdmitHandler{
		lifecycle.NewPredicateAdmitHandler(node, asTheyAre{}, noDevices),
		lifecycle.NewPodFeaturesAdmitHandler(),
	}
	if utilfeature.DefaultFeatureGate.Enabled(features.NodeDeclaredFeatures) {
		framework := nodedeclaredfeatures.DefaultFramework
		handlers = append(handlers, lifecycle.NewDeclaredFeaturesAdmitHandler(framework,
			framework.MustMapSorted(given.Declared), versionutil.MustParse("v1.36.3")))
	}
	active := []*v1.Pod{}
	answers := []any{}
	for i := range given.Steps {
		step := &given.Steps[i]
		if step.Allocatable != nil {
			given.Node.Status.Allocatable = step.Allocatable
		}
		active = slices.DeleteFunc(active, func(pod *v1.Pod) bool { return slices.Contains(step.Gone, pod.Name) })
		attributes := &lifecycle.PodAdmitAttributes{Pod: &step.Pod, OtherPods: active, Operation: lifecycle.AddOperation}
		var refused []string
		for _, handler := range handlers {
			if result := handler.Admit(attributes); !result.Admit {
				refused = []string{result.Reason, result.Message}
				break
			}
		}
		if refused == nil {
			active = append(active, &step.Pod)
		}
		answers = append(answers, refused)
	}
	return answers, nil
}
