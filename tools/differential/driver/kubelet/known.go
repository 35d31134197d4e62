// What a runtime knows of a pod, as a history has it and as the kubelet's cache does.
package kubelet

import (
	"time"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
)

// EventCapacity is that of the channel of PLEG's events.
const EventCapacity = plegChannelCapacity

// RuntimePod is what a runtime knows of a pod, newest first.
type RuntimePod struct {
	Sandboxes []struct {
		ID          string  `json:"id"`
		Ready       bool    `json:"ready"`
		IP          *string `json:"ip"`
		HostNetwork bool    `json:"hostNetwork"`
	} `json:"sandboxes"`
	Containers []struct {
		ID           string   `json:"id"`
		Sandbox      string   `json:"sandbox"`
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

func at(seconds float64) time.Time { return time.UnixMilli(int64(seconds * 1000)).UTC() }

func maybeAt(seconds *float64) time.Time {
	if seconds == nil {
		return time.Time{}
	}
	return at(*seconds)
}

// Status is the runtime's cache of the pod. Active are, as getPodContainerStatuses tells them, the containers of the
// newest sandbox while that is ready.
func (r RuntimePod) Status(pod *v1.Pod) *kubecontainer.PodStatus {
	made := &kubecontainer.PodStatus{ID: pod.UID, Name: pod.Name, Namespace: pod.Namespace}
	active := ""
	for index, sandbox := range r.Sandboxes {
		status := &runtimeapi.PodSandboxStatus{
			Id:       sandbox.ID,
			Metadata: &runtimeapi.PodSandboxMetadata{Attempt: uint32(len(r.Sandboxes) - index - 1)},
			State:    runtimeapi.PodSandboxState_SANDBOX_NOTREADY,
			Linux:    &runtimeapi.LinuxPodSandboxStatus{Namespaces: &runtimeapi.Namespace{Options: &runtimeapi.NamespaceOption{}}},
		}
		if sandbox.Ready {
			status.State = runtimeapi.PodSandboxState_SANDBOX_READY
			if index == 0 {
				active = sandbox.ID
			}
		}
		if sandbox.HostNetwork {
			status.Linux.Namespaces.Options.Network = runtimeapi.NamespaceMode_NODE
		}
		if sandbox.IP != nil {
			status.Network = &runtimeapi.PodSandboxNetworkStatus{Ip: *sandbox.IP}
			if index == 0 && *sandbox.IP != "" {
				made.IPs = []string{*sandbox.IP}
			}
		}
		made.SandboxStatuses = append(made.SandboxStatuses, status)
	}
	for _, c := range r.Containers {
		status := &kubecontainer.Status{
			ID:           kubecontainer.ParseContainerID(c.ID),
			Name:         c.Name,
			State:        kubecontainer.State(c.State),
			CreatedAt:    at(c.CreatedAt),
			StartedAt:    maybeAt(c.StartedAt),
			FinishedAt:   maybeAt(c.FinishedAt),
			ExitCode:     c.ExitCode,
			Image:        c.Image,
			ImageRef:     c.ImageID,
			Reason:       c.Reason,
			Message:      c.Message,
			RestartCount: c.RestartCount,
			Hash:         kubecontainer.HashContainer(specOf(pod, c.Name)),
		}
		made.ContainerStatuses = append(made.ContainerStatuses, status)
		if c.Sandbox == active {
			made.ActiveContainerStatuses = append(made.ActiveContainerStatuses, status)
		}
	}
	return made
}

func specOf(pod *v1.Pod, name string) *v1.Container {
	if found := kubecontainer.GetContainerSpec(pod, name); found != nil {
		return found
	}
	return &v1.Container{}
}
