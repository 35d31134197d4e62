// Steps of 1.16's probe manager and its workers, one after the other, under a clock that the history moves.
package prober

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/record"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/prober/results"
)

var wall time.Time

func wallSince(earlier time.Time) time.Duration {
	if turning != nil {
		return turning.now().Sub(earlier)
	}
	return wall.Sub(earlier)
}

// Put in where upstream starts the goroutine of a worker: the history says when it probes, but where loops turn.
func started(w *worker) {
	if turning != nil {
		go w.run()
	}
}

func (m *manager) caches() map[probeType]results.Manager {
	return map[probeType]results.Manager{
		liveness: m.livenessManager, readiness: m.readinessManager, startup: m.startupManager,
	}
}

// Answer takes the steps of a history and tells what is there after each of them.
func Answer(raw json.RawMessage) (any, error) {
	var given history
	if err := json.Unmarshal(raw, &given); err != nil {
		return nil, err
	}
	for index := range given.Pods {
		defaulted(&given.Pods[index])
	}
	known := map[types.UID]*v1.PodStatus{}
	events, refs, ids := record.NewFakeRecorder(1000), kubecontainer.NewRefManager(), given.ids()
	for _, id := range ids { // the kubelet has started them all: of others it writes no event
		refs.SetRef(id, &v1.ObjectReference{})
	}
	m := NewManager(statuses{known: known}, results.NewManager(), nil, refs, events).(*manager)
	caches, handler := m.caches(), &script{}
	m.prober.exec = handler
	answers := make([][]string, 0, len(given.Steps))
	for _, step := range given.Steps {
		wall = at(step.Wall)
		said := []string{}
		if step.Op == "probe" {
			m.probeAll(context.Background(), handler, step.Outcomes)
		} else if took, err := m.take(step, &given.Pods[step.Pod], known); err != nil {
			return nil, err
		} else {
			said = took
		}
		answers = append(answers, append(said, m.seen(caches, events, ids)...))
	}
	return answers, nil
}

// take does what a step says, and tells what it gave.
func (m *manager) take(step step, pod *v1.Pod, known map[types.UID]*v1.PodStatus) ([]string, error) {
	said := []string{}
	switch step.Op {
	case "pass", "stop": // of liveness and startup of a pod that ends: 1.16 has no such call
	case "status":
		known[pod.UID] = step.Status
	case "add":
		m.AddPod(pod.DeepCopy())
	case "remove":
		m.RemovePod(pod)
	case "cleanup":
		m.CleanupPods(map[types.UID]sets.Empty{pod.UID: {}})
	case "update":
		filled := step.Status.DeepCopy()
		m.UpdatePodStatus(pod.UID, filled)
		for _, of := range [][]v1.ContainerStatus{filled.InitContainerStatuses, filled.ContainerStatuses} {
			for _, c := range of {
				said = append(said, fmt.Sprintf("%s started %t ready %t", c.Name, c.Started != nil && *c.Started, c.Ready))
			}
		}
	default:
		return nil, fmt.Errorf("no step %q", step.Op)
	}
	return said, nil
}

func (w *worker) turn(context.Context) bool { return w.doProbe() }

// Nothing asks for a probe before its time.
func (w *worker) triggered() bool { return false }
