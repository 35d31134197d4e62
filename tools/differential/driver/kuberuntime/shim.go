// What is to be done for the containers of a pod, and in what order they end.
package kuberuntime

import (
	"context"
	"encoding/json"
	"sort"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/kubelet/allocation/state"
	"k8s.io/kubernetes/pkg/kubelet/cm"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	proberesults "k8s.io/kubernetes/pkg/kubelet/prober/results"
	"k8s.io/klog/v2"
	"readygate.dev/testbed/kube/kubelet"
	"readygate.dev/testbed/kube/mended"
)

type actionsHistory struct {
	Pod        v1.Pod             `json:"pod"`
	Runtime    kubelet.RuntimePod `json:"runtime"`
	Liveness   map[string]bool    `json:"liveness"` // by container id: has it passed
	Startup    map[string]bool    `json:"startup"`
	Hooks      map[string]hookEnd `json:"hooks"`  // by container
	Status     v1.PodStatus       `json:"status"` // looked at where that is mended
}

type killed struct {
	ID      string     `json:"id"`
	Message string     `json:"message"`
	Grace   int64      `json:"grace"`
	Hook    hookAnswer `json:"hook"`
}

type actionsAnswer struct {
	KillPod       bool                `json:"killPod"`
	CreateSandbox bool                `json:"createSandbox"`
	Init          []string            `json:"init"`
	Start         []string            `json:"start"`
	Kill          []killed            `json:"kill"`
	Ends          map[string]hookAnswer `json:"ends"` // of running containers, if all of the pod are to end: by name
	Waits         map[string][]string `json:"waits"` // by running container: whose end it waits for before it is ended
}

// Silent: a container that does not run has nothing to release here.
type silent struct{ cm.InternalContainerLifecycle }

func (silent) PostStopContainer(klog.Logger, string) error { return nil }

func resultsOf(known map[string]bool) proberesults.Manager {
	made := proberesults.NewManager()
	for id, passed := range known {
		result := proberesults.Failure
		if passed {
			result = proberesults.Success
		}
		made.Set(kubecontainer.ParseContainerID(id), result, &v1.Pod{})
	}
	return made
}

// withEnds adds containers that the runtime does not know and whose status says that they have ended, where that is mended.
func withEnds(known *kubecontainer.PodStatus, said v1.PodStatus) *kubecontainer.PodStatus {
	if !mended.On("fix_ended_containers_without_record") {
		return known
	}
	more := *known
	for _, statuses := range [][]v1.ContainerStatus{said.InitContainerStatuses, said.ContainerStatuses} {
		for _, c := range statuses {
			if c.State.Terminated != nil && more.FindContainerStatusByName(c.Name) == nil {
				ended := &kubecontainer.Status{Name: c.Name, State: kubecontainer.ContainerStateExited, ExitCode: int(c.State.Terminated.ExitCode)}
				more.ContainerStatuses = append(more.ContainerStatuses[:len(more.ContainerStatuses):len(more.ContainerStatuses)], ended)
			}
		}
	}
	return &more
}

// Put in for the number of containers that the runtime knows.
func countOfKnown(status *kubecontainer.PodStatus) (count int) {
	for _, c := range status.ContainerStatuses {
		if !c.ID.IsEmpty() {
			count++
		}
	}
	return count
}

// AnswerActions decides once.
func AnswerActions(raw json.RawMessage) (any, error) {
	var given actionsHistory
	if err := json.Unmarshal(raw, &given); err != nil {
		return nil, err
	}
	pod, status := &given.Pod, given.Runtime.Status(&given.Pod)
	m := &kubeGenericRuntimeManager{
		livenessManager:   resultsOf(given.Liveness),
		startupManager:    resultsOf(given.Startup),
		internalLifecycle: silent{},
		actuatedState:     state.NewStateMemory(nil),
	}
	ctx := context.Background()
	found := m.computePodActions(ctx, pod, withEnds(status, given.Status), false)
	said := actionsAnswer{
		KillPod: found.KillPod, CreateSandbox: found.CreateSandbox,
		Init: []string{}, Start: []string{}, Kill: []killed{}, Waits: waits(pod, status), Ends: map[string]hookAnswer{},
	}
	for _, index := range found.InitContainersToStart {
		said.Init = append(said.Init, pod.Spec.InitContainers[index].Name)
	}
	for _, index := range found.ContainersToStart {
		said.Start = append(said.Start, pod.Spec.Containers[index].Name)
	}
	for id, info := range found.ContainersToKill {
		grace := setTerminationGracePeriod(ctx, pod, info.container, info.name, id, info.reason)
		said.Kill = append(said.Kill, killed{id.String(), info.message, grace, killed1(ctx, m, pod, id, info, nil, given.Hooks[info.name])})
	}
	grace := kubelet.EffectiveGrace(pod)
	for _, c := range status.ContainerStatuses {
		if c.State == kubecontainer.ContainerStateRunning {
			said.Ends[c.Name] = killed1(ctx, m, pod, c.ID, containerToKillInfo{name: c.Name, reason: reasonUnknown}, &grace, given.Hooks[c.Name])
		}
	}
	sort.Slice(said.Kill, func(i, j int) bool { return said.Kill[i].ID < said.Kill[j].ID })
	return said, nil
}

func waits(pod *v1.Pod, status *kubecontainer.PodStatus) map[string][]string {
	running := []string{}
	for _, c := range status.ContainerStatuses {
		if c.State == kubecontainer.ContainerStateRunning {
			running = append(running, c.Name)
		}
	}
	ordering := newTerminationOrdering(pod, running)
	said := map[string][]string{}
	for _, name := range running {
		names := []string{}
		for _, channel := range ordering.prereqs[name] {
			for of, its := range ordering.terminated {
				if its == channel && isOpen(channel) {
					names = append(names, of)
				}
			}
		}
		sort.Strings(names)
		said[name] = names
	}
	return said
}

func isOpen(channel chan struct{}) bool {
	select {
	case <-channel:
		return false
	default:
		return true
	}
}
