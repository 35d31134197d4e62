// What the image manager makes of a runtime that has images or not, and pulls them or not, under a clock that the
// history moves.
package images

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/flowcontrol"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/kubernetes/pkg/credentialprovider"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/images"
	"k8s.io/kubernetes/pkg/kubelet/images/pullmanager"
	testingclock "k8s.io/utils/clock/testing"
	"readygate.dev/testbed/kube/kubelet"
)

type step struct {
	Wall    float64       `json:"wall"`
	UID     types.UID     `json:"uid"`
	Image   string        `json:"image"`
	Policy  v1.PullPolicy `json:"policy"`
	There   bool          `json:"there"`
	Inspect string        `json:"inspect"` // why it cannot be looked for
	Pull    string        `json:"pull"`    // why it cannot be pulled
}

type answer struct {
	Ref     string   `json:"ref"`
	Reason  string   `json:"reason"`
	Message string   `json:"message"`
	Asked   []string `json:"asked"`
}

type service struct {
	kubecontainer.ImageService
	step  *step
	asked []string
}

func (s *service) GetImageRef(_ context.Context, image kubecontainer.ImageSpec) (string, error) {
	s.asked = append(s.asked, "look for "+image.Image)
	if s.step.Inspect != "" {
		return "", errors.New(s.step.Inspect)
	}
	if s.step.There {
		return "id", nil
	}
	return "", nil
}

func (s *service) PullImage(_ context.Context, image kubecontainer.ImageSpec, _ []credentialprovider.TrackedAuthConfig, _ *runtimeapi.PodSandboxConfig) (string, *credentialprovider.TrackedAuthConfig, error) {
	s.asked = append(s.asked, "pull "+image.Image)
	if s.step.Pull != "" {
		return "", nil, errors.New(s.step.Pull)
	}
	return "pulled", nil, nil
}

func (s *service) GetImageSize(context.Context, kubecontainer.ImageSpec) (uint64, error) { return 1, nil }

type nobody struct{}

func (nobody) RecordImageStartedPulling(types.UID)  {}
func (nobody) RecordImageFinishedPulling(types.UID) {}

// Answer asks for an image in each step.
func Answer(raw json.RawMessage) (any, error) {
	var given struct {
		Steps []step `json:"steps"`
	}
	if err := json.Unmarshal(raw, &given); err != nil {
		return nil, err
	}
	clock := testingclock.NewFakeClock(time.Time{})
	first, longest := kubelet.LimitsOfImageBackOff()
	runtime := &service{}
	manager := images.NewImageManager(&record.FakeRecorder{}, credentialprovider.UnionDockerKeyring{}, runtime,
		&pullmanager.NoopImagePullManager{}, flowcontrol.NewFakeBackOff(first, longest, clock), false, nil, 0, 0, nobody{})
	sandbox := &runtimeapi.PodSandboxConfig{Metadata: &runtimeapi.PodSandboxMetadata{}}
	answers := []answer{}
	for index := range given.Steps {
		runtime.step, runtime.asked = &given.Steps[index], []string{}
		clock.SetTime(time.UnixMilli(int64(runtime.step.Wall * 1000)))
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: runtime.step.UID, Name: "pod", Namespace: "default"}}
		ref, message, err := manager.EnsureImageExists(context.Background(), nil, pod, runtime.step.Image, nil, sandbox, "", runtime.step.Policy)
		said := answer{Ref: ref, Asked: runtime.asked}
		if err != nil {
			said.Reason, said.Message = err.Error(), message
		}
		answers = append(answers, said)
	}
	return answers, nil
}
