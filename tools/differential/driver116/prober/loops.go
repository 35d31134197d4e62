// The loops of 1.16's workers: what differs from the current release's.
package prober

import (
	"encoding/json"
	"errors"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/prober/results"
)

// Put in before upstream waits for a stop or a tick: of those that are there already Go takes any. It is to take the stop.
func (w *worker) prefers(ticker *time.Ticker) {
	if len(w.stopCh) == 0 {
		return
	}
	select {
	case <-ticker.C:
	default:
	}
}

// RunInContainer takes as long as the history says, to its end. The command names the worker.
func (l *loops) RunInContainer(id kubecontainer.ContainerID, command []string, _ time.Duration) ([]byte, error) {
	return nil, l.runs(command[0], id.String(), func() error { return errors.New("it took too long") })
}

// AnswerLoops lets the workers of a history turn, and tells what happened up to each of its steps, and until all had ended.
func AnswerLoops(raw json.RawMessage) (any, error) {
	l := &loops{}
	if err := json.Unmarshal(raw, &l.loopsHistory); err != nil {
		return nil, err
	}
	for index := range l.Pods {
		defaulted(&l.Pods[index])
		named(&l.Pods[index])
	}
	return inBubble(func() ([][]string, error) {
		l.begin()
		known, refs := map[types.UID]*v1.PodStatus{}, kubecontainer.NewRefManager()
		m := NewManager(statuses{known: known}, results.NewManager(), l, refs, &record.FakeRecorder{}).(*manager)
		return l.turn(m, m.caches(), func(step step, pod *v1.Pod) ([]string, error) { return m.take(step, pod, known) })
	})
}
