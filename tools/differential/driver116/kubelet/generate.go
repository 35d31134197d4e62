// A pod's status from what the runtime knows: 1.16's functions on a kubelet that has nothing else.
package kubelet

import (
	"errors"
	"net"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1alpha2"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	keptstatus "readygate.dev/testbed/kube/status"
)

// Kubelet has what the functions that are cut out of upstream's file ask for.
type Kubelet struct {
	PodSyncHandlers []interface {
		ShouldEvict(*v1.Pod) verdict
	}
	kubeClient    *statusScene
	probeManager  *statusScene
	statusManager keptstatus.Kept
	reasonCache   reasons
}

// Whether a pod must end. Nothing here asks for it.
type verdict struct {
	Evict           bool
	Reason, Message string
}

type reason struct {
	Err     error
	Message string
}

// Why the last start of a container failed, by its name.
type reasons map[string][2]string

func (r reasons) Get(_ types.UID, name string) (*reason, bool) {
	found, known := r[name]
	return &reason{errors.New(found[0]), found[1]}, known
}

func (kl *Kubelet) getHostIPAnyWay() (net.IP, error) {
	if address := net.ParseIP(kl.kubeClient.step.Host); address != nil {
		return address, nil
	}
	return nil, errors.New("the node has no address yet")
}

// UpdatePodStatus is the prober's word, as the history has it.
func (s *statusScene) UpdatePodStatus(_ types.UID, status *v1.PodStatus) {
	for _, of := range [][]v1.ContainerStatus{status.ContainerStatuses, status.InitContainerStatuses} {
		for index := range of {
			if said, found := s.step.Probes[of[index].Name]; found {
				of[index].Started, of[index].Ready = &said[0], said[1]
			}
		}
	}
}

// What a runtime knows of a pod, newest first.
type runtimePod struct {
	Sandboxes []struct {
		ID    string  `json:"id"`
		Ready bool    `json:"ready"`
		IP    *string `json:"ip"`
	} `json:"sandboxes"`
	Containers []struct {
		ID           string   `json:"id"`
		Name         string   `json:"name"`
		State        string   `json:"state"`
		CreatedAt    float64  `json:"createdAt"`
		StartedAt    *float64 `json:"startedAt"`
		FinishedAt   *float64 `json:"finishedAt"`
		ExitCode     int      `json:"exitCode"`
		Reason       string   `json:"reason"`
		Message      string   `json:"message"`
		RestartCount int      `json:"restartCount"`
		Image        string   `json:"image"`
		ImageID      string   `json:"imageID"`
	} `json:"containers"`
}

func maybeAt(seconds *float64) time.Time {
	if seconds == nil {
		return time.Time{}
	}
	return at(*seconds)
}

func (r runtimePod) status(pod *v1.Pod) *kubecontainer.PodStatus {
	made := &kubecontainer.PodStatus{ID: pod.UID, Name: pod.Name, Namespace: pod.Namespace}
	for index, sandbox := range r.Sandboxes {
		status := &runtimeapi.PodSandboxStatus{Id: sandbox.ID, State: runtimeapi.PodSandboxState_SANDBOX_NOTREADY}
		if sandbox.Ready {
			status.State = runtimeapi.PodSandboxState_SANDBOX_READY
		}
		if index == 0 && sandbox.IP != nil && *sandbox.IP != "" {
			made.IPs = []string{*sandbox.IP}
		}
		made.SandboxStatuses = append(made.SandboxStatuses, status)
	}
	for _, c := range r.Containers {
		made.ContainerStatuses = append(made.ContainerStatuses, &kubecontainer.ContainerStatus{
			ID:           kubecontainer.ParseContainerID(c.ID),
			Name:         c.Name,
			State:        kubecontainer.ContainerState(c.State),
			CreatedAt:    at(c.CreatedAt),
			StartedAt:    maybeAt(c.StartedAt),
			FinishedAt:   maybeAt(c.FinishedAt),
			ExitCode:     c.ExitCode,
			Image:        c.Image,
			ImageID:      c.ImageID,
			Reason:       c.Reason,
			Message:      c.Message,
			RestartCount: c.RestartCount,
		})
	}
	return made
}
