// Steps of the probe manager and its workers, one after the other, under a clock that the history moves.
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
	_ "k8s.io/kubernetes/pkg/apis/core/install" // events need to know what a Pod is
	"k8s.io/kubernetes/pkg/kubelet/prober/results"
)

var wall time.Time

func wallNow() time.Time {
	if turning != nil {
		return turning.now()
	}
	return wall
}

func wallSince(earlier time.Time) time.Duration { return wallNow().Sub(earlier) }

// Put in where upstream starts the goroutine of a worker: the history says when it probes, but where loops turn.
func started(ctx context.Context, w *worker) {
	if turning != nil {
		go w.run(ctx)
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
	beginnings = map[*worker]beginning{}
	events := record.NewFakeRecorder(1000)
	caches := map[probeType]results.Manager{}
	for _, kind := range []probeType{liveness, readiness, startup} {
		caches[kind] = results.NewManager()
	}
	m := NewManager(statuses{known: known}, caches[liveness], caches[readiness], caches[startup], nil, events).(*manager)
	m.start = at(given.Start)
	handler := &script{}
	m.prober.exec = handler
	ctx := context.Background()
	ids := given.ids()
	answers := make([][]string, 0, len(given.Steps))
	for _, step := range given.Steps {
		wall, ahead = at(step.Wall), at(step.Ahead).Sub(at(0))
		pod := &given.Pods[step.Pod]
		said := []string{}
		if step.Op == "probe" {
			m.probeAll(ctx, handler, step.Outcomes)
		} else if took, err := m.take(ctx, step, pod, known); err != nil {
			return nil, err
		} else {
			said = took
		}
		answers = append(answers, append(said, m.seen(caches, events, ids)...))
	}
	return answers, nil
}

// take does what a step says, and tells what it gave.
func (m *manager) take(ctx context.Context, step step, pod *v1.Pod, known map[types.UID]*v1.PodStatus) ([]string, error) {
	said := []string{}
	switch step.Op {
	case "pass":
	case "status":
		known[pod.UID] = step.Status
	case "add":
		m.AddPod(ctx, pod.DeepCopy())
	case "stop":
		m.StopLivenessAndStartup(pod)
	case "remove":
		m.RemovePod(pod)
	case "cleanup":
		m.CleanupPods(map[types.UID]sets.Empty{pod.UID: {}})
	case "update":
		filled := step.Status.DeepCopy()
		m.UpdatePodStatus(ctx, pod, filled)
		for _, of := range [][]v1.ContainerStatus{filled.InitContainerStatuses, filled.ContainerStatuses} {
			for _, c := range of {
				said = append(said, fmt.Sprintf("%s started %t ready %t", c.Name, *c.Started, c.Ready))
			}
		}
	default:
		return nil, fmt.Errorf("no step %q", step.Op)
	}
	return said, nil
}

// One probe; a trigger that is there is used up by it.
func (w *worker) turn(ctx context.Context) bool {
	select {
	case <-w.manualTriggerCh:
	default:
	}
	return w.doProbe(ctx)
}

func (w *worker) triggered() bool { return len(w.manualTriggerCh) > 0 }
