// Histories of the probe manager and its workers, and what is there after each step: the same for both releases.
package prober

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/prober/results"
	"k8s.io/kubernetes/pkg/kubelet/status"
	"k8s.io/kubernetes/pkg/probe"
	"k8s.io/utils/exec"
)

type history struct {
	Start float64  `json:"start"` // when the manager was made
	Pods  []v1.Pod `json:"pods"`
	Steps []step   `json:"steps"`
}

type step struct {
	Op       string        `json:"op"`
	Wall     float64       `json:"wall"`
	Ahead    float64       `json:"ahead"`
	Pod      int           `json:"pod"`
	Status   *v1.PodStatus `json:"status"`
	Outcomes [][]string    `json:"outcomes"`
}

// What the worker asks of the status manager.
type statuses struct {
	status.Manager
	known map[types.UID]*v1.PodStatus
}

func (s statuses) GetPodStatus(uid types.UID) (v1.PodStatus, bool) {
	found := s.known[uid]
	if found == nil {
		return v1.PodStatus{}, false
	}
	return *found, true
}

// One attempt after the other gives the next outcome, the last one again and again.
type script struct{ outcomes []string }

func (s *script) Probe(exec.Cmd) (probe.Result, string, error) {
	outcome := s.outcomes[0]
	if len(s.outcomes) > 1 {
		s.outcomes = s.outcomes[1:]
	}
	switch outcome {
	case "panic":
		panic("a probe that panics")
	case "error":
		return probe.Unknown, "", errors.New("the runtime is gone")
	}
	return probe.Result(outcome), "said so", nil
}

func at(seconds float64) time.Time { return time.UnixMilli(int64(seconds * 1000)).UTC() }

func (m *manager) sorted() []probeKey {
	keys := make([]probeKey, 0, len(m.workers))
	for key := range m.workers {
		keys = append(keys, key)
	}
	sort.Slice(keys, func(i, j int) bool {
		a, b := keys[i], keys[j]
		if a.podUID != b.podUID {
			return a.podUID < b.podUID
		}
		if a.containerName != b.containerName {
			return a.containerName < b.containerName
		}
		return a.probeType.String() < b.probeType.String()
	})
	return keys
}

// One turn of every worker, as its run loop takes it: a probe, then whether it was stopped.
func (m *manager) probeAll(ctx context.Context, handler *script, outcomes [][]string) {
	for index, key := range m.sorted() {
		w := m.workers[key]
		handler.outcomes = outcomes[index%len(outcomes)]
		goes := w.turn(ctx)
		select {
		case <-w.stopCh:
			goes = false
		default:
		}
		if !goes {
			if !w.containerID.IsEmpty() {
				w.resultsManager.Remove(w.containerID)
			}
			m.removeWorker(key.podUID, key.containerName, key.probeType)
		}
	}
}

// The ids that a history speaks of, as they are understood, sorted.
func (h history) ids() []kubecontainer.ContainerID {
	seen := map[kubecontainer.ContainerID]bool{}
	var found []kubecontainer.ContainerID
	for _, step := range h.Steps {
		if step.Status == nil {
			continue
		}
		for _, of := range [][]v1.ContainerStatus{step.Status.InitContainerStatuses, step.Status.ContainerStatuses} {
			for _, c := range of {
				if id := kubecontainer.ParseContainerID(c.ContainerID); !seen[id] {
					seen[id] = true
					found = append(found, id)
				}
			}
		}
	}
	sort.Slice(found, func(i, j int) bool { return text(found[i]) < text(found[j]) })
	return found
}

func text(id kubecontainer.ContainerID) string {
	if id.IsEmpty() {
		return ""
	}
	return id.String()
}

// What the API server puts in where nothing is said, and a handler.
func defaulted(pod *v1.Pod) {
	for _, containers := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for index := range containers {
			c := &containers[index]
			for _, spec := range []*v1.Probe{c.StartupProbe, c.ReadinessProbe, c.LivenessProbe} {
				if spec == nil {
					continue
				}
				spec.Exec = &v1.ExecAction{Command: []string{"true"}} // the script answers it
				for field, instead := range map[*int32]int32{&spec.TimeoutSeconds: 1, &spec.PeriodSeconds: 10, &spec.SuccessThreshold: 1, &spec.FailureThreshold: 3} {
					if *field == 0 {
						*field = instead
					}
				}
			}
		}
	}
}

func (m *manager) seen(caches map[probeType]results.Manager, events *record.FakeRecorder, ids []kubecontainer.ContainerID) []string {
	said := []string{}
	for _, key := range m.sorted() {
		w := m.workers[key]
		said = append(said, fmt.Sprintf("%s %s %s: id %s, %s x %d, hold %t, stop %t, trigger %t", key.podUID, key.containerName,
			key.probeType, text(w.containerID), w.lastResult, w.resultRun, w.onHold, len(w.stopCh) > 0, w.triggered()))
	}
	for _, kind := range []probeType{liveness, readiness, startup} {
		for _, id := range ids {
			if result, found := caches[kind].Get(id); found {
				said = append(said, fmt.Sprintf("%s of %s: %s", kind, text(id), result))
			}
		}
		for len(caches[kind].Updates()) > 0 {
			update := <-caches[kind].Updates()
			said = append(said, fmt.Sprintf("%s update %s %s %s", kind, update.PodUID, text(update.ContainerID), update.Result))
		}
	}
	for len(events.Events) > 0 {
		said = append(said, <-events.Events)
	}
	return said
}
