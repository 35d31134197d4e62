// What is told of the pod workers' histories: statuses, probes and events, each where it is new.
package kubelet

import (
	"context"
	"encoding/json"
	"fmt"

	v1 "k8s.io/api/core/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/events"
	"k8s.io/kubernetes/pkg/kubelet/prober"
	keptstatus "readygate.dev/testbed/kube/status"
)

type workersStatuses struct {
	keptstatus.Kept
	scene *workersScene
}

func (w workersStatuses) SetPodStatus(logger klog.Logger, pod *v1.Pod, status v1.PodStatus) (v1.PodStatus, bool) {
	set, changed := w.Kept.SetPodStatus(logger, pod, status)
	kind := "refused"
	w.scene.locked(func() {
		if goesOn := w.scene.kind[pod.UID]; goesOn != "" {
			kind = goesOn
		}
	})
	w.show(pod, kind, set)
	return set, changed
}

// show tells what is kept, where it is new.
func (w workersStatuses) show(pod *v1.Pod, kind string, set v1.PodStatus) {
	s := w.scene
	s.mutex.Lock()
	defer s.mutex.Unlock()
	told := []any{"status", kind, string(set.Phase), set.Reason}
	for _, container := range set.ContainerStatuses {
		told = append(told, stateOf(container))
		if !isStatic(pod) {
			told = append(told, container.RestartCount)
		}
	}
	if kind == "sync" {
		told = append(told, pod.Labels["n"])
	}
	text, _ := json.Marshal(told)
	_, known := s.kl.podManager.GetPodByUID(pod.UID)
	if (known || isStatic(pod)) && s.shown[pod.UID] != string(text) {
		s.shown[pod.UID] = string(text)
		s.tell(pod.UID, told...)
	}
}

func stateOf(container v1.ContainerStatus) string {
	switch state := container.State; {
	case state.Running != nil:
		return "running"
	case state.Terminated != nil:
		return fmt.Sprintf("ended %d", state.Terminated.ExitCode)
	case state.Waiting != nil:
		return "waits " + state.Waiting.Reason
	}
	return ""
}

func (w workersStatuses) TerminatePod(logger klog.Logger, pod *v1.Pod) {
	w.Kept.TerminatePod(logger, pod)
	if kept, found := w.Kept.GetPodStatus(pod.UID); found {
		w.show(pod, "finished", kept)
	}
}

type workersProbes struct {
	prober.Manager
	*workersScene
}

func (p workersProbes) AddPod(_ context.Context, pod *v1.Pod) {
	p.locked(func() {
		if !p.probed[pod.UID] {
			p.probed[pod.UID] = true
			p.tell(pod.UID, "probe")
		}
	})
}

func (p workersProbes) StopLivenessAndStartup(pod *v1.Pod) {
	p.locked(func() {
		if p.probed[pod.UID] && !p.lessened[pod.UID] {
			p.lessened[pod.UID] = true
			p.tell(pod.UID, "probe less")
		}
	})
}

func (p workersProbes) RemovePod(pod *v1.Pod) {
	p.locked(func() {
		if p.probed[pod.UID] {
			delete(p.probed, pod.UID)
			delete(p.lessened, pod.UID)
			p.tell(pod.UID, "no probe")
		}
	})
}

func (p workersProbes) CleanupPods(wanted map[types.UID]sets.Empty) {
	p.cleaned = []string{}
	for uid := range wanted {
		p.cleaned = append(p.cleaned, string(uid))
	}
}

func (workersProbes) UpdatePodStatus(_ context.Context, _ *v1.Pod, status *v1.PodStatus) {
	for index := range status.ContainerStatuses {
		container := &status.ContainerStatuses[index]
		runs := container.State.Running != nil
		container.Ready, container.Started = runs, &runs
	}
}

type workersRecorder struct{ scene *workersScene }

func (r workersRecorder) Event(apiruntime.Object, string, string, string) {}
func (r workersRecorder) AnnotatedEventf(apiruntime.Object, map[string]string, string, string, string, ...any) {
}
func (r workersRecorder) WithLogger(klog.Logger) record.EventRecorderLogger { return r }
func (r workersRecorder) Eventf(about apiruntime.Object, _, reason, text string, parts ...any) {
	if pod, ok := about.(*v1.Pod); ok && reason == events.NetworkNotReady {
		r.scene.locked(func() { r.scene.tell(pod.UID, reason, fmt.Sprintf(text, parts...)) })
	}
}
