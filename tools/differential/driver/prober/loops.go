// The loops of workers: what only the current release has.
package prober

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	remote "k8s.io/cri-client/pkg"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/prober/results"
	"readygate.dev/testbed/kube/mended"
)

// Put in before upstream waits for a stop, a tick or a trigger: of those that are there already Go takes any. It is to
// take the stop, then the trigger, which makes the ticker begin anew.
func (w *worker) prefers(ticker *time.Ticker) {
	if len(w.stopCh) == 0 && len(w.manualTriggerCh) == 0 {
		return
	}
	select {
	case <-ticker.C:
	default:
	}
	if len(w.stopCh) > 0 {
		select {
		case <-w.manualTriggerCh:
		default:
		}
	}
}

// RunInContainer takes as long as the history says, to its end. The command names the worker.
func (l *loops) RunInContainer(ctx context.Context, id kubecontainer.ContainerID, command []string, timeout time.Duration) ([]byte, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	err := l.runs(command[0], id.String(), func() error {
		return fmt.Errorf("%w: %q timed out after %s", remote.ErrCommandTimedOut, strings.Join(command, " "), timeout)
	})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return nil, err
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
		ahead, beginnings = 0, map[*worker]beginning{}
		known := map[types.UID]*v1.PodStatus{}
		caches := map[probeType]results.Manager{}
		for _, kind := range []probeType{liveness, readiness, startup} {
			caches[kind] = results.NewManager()
		}
		m := NewManager(statuses{known: known}, caches[liveness], caches[readiness], caches[startup], l, &record.FakeRecorder{}).(*manager)
		m.start = at(l.Start)
		ends := map[types.UID][]context.CancelFunc{}
		return l.turn(m, caches, func(step step, pod *v1.Pod) ([]string, error) {
			ctx, end := context.WithCancel(context.Background()) // of a pod's syncs: it is over when the pod begins to end
			if step.Op == "add" {
				ends[pod.UID] = append(ends[pod.UID], end)
			}
			if step.Op == "stop" && !mended.On("fix_exec_probes_of_ending_pods") {
				for _, end := range ends[pod.UID] {
					end()
				}
			}
			return m.take(ctx, step, pod, known)
		})
	})
}
