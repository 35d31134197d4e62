// How long containers that keep ending wait, under a clock that the history moves.
package kuberuntime

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"
	_ "k8s.io/kubernetes/pkg/apis/core/install" // events need to know what a Pod is
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	testingclock "k8s.io/utils/clock/testing"
	"readygate.dev/testbed/kube/kubelet"
)

type backoffHistory struct {
	Pod     v1.Pod  `json:"pod"`
	Longest float64 `json:"longest"`
	Steps   []struct {
		Wall      float64 `json:"wall"`
		Container int     `json:"container"`
		Ended     float64 `json:"ended"`
	} `json:"steps"`
}

type backoffEvents struct {
	record.EventRecorderLogger
	told []string
}

func (e *backoffEvents) WithLogger(klog.Logger) record.EventRecorderLogger { return e }

func (e *backoffEvents) Eventf(_ runtime.Object, kind, reason, text string, args ...any) {
	e.told = append(e.told, fmt.Sprintf("%s %s %s", kind, reason, fmt.Sprintf(text, args...)))
}

// AnswerBackOff tries to start a container in each step.
func AnswerBackOff(raw json.RawMessage) (any, error) {
	var given backoffHistory
	if err := json.Unmarshal(raw, &given); err != nil {
		return nil, err
	}
	at := func(seconds float64) time.Time { return time.UnixMilli(int64(seconds * 1000)) }
	clock, events := testingclock.NewFakeClock(at(0)), &backoffEvents{}
	longest, first := kubelet.LimitsOfBackOff(time.Duration(given.Longest * float64(time.Second)))
	backOff := flowcontrol.NewFakeBackOff(first, longest, clock)
	// As the kubelet sets it up.
	backOff.HasExpiredFunc = func(ended, updated time.Time, _ time.Duration) bool { return ended.Sub(updated) > 600*time.Second }
	m := &kubeGenericRuntimeManager{recorder: events}
	answers := []any{}
	for _, step := range given.Steps {
		clock.SetTime(at(step.Wall))
		container := &given.Pod.Spec.Containers[step.Container]
		ended := &kubecontainer.Status{Name: container.Name, State: kubecontainer.ContainerStateExited, FinishedAt: at(step.Ended)}
		events.told = []string{}
		waits, message, err := m.doBackOff(context.Background(), &given.Pod, container, &kubecontainer.PodStatus{ContainerStatuses: []*kubecontainer.Status{ended}}, backOff)
		again := 0.0
		if until, found := kubecontainer.MinBackoffExpiration(err); found {
			again = until.Sub(clock.Now()).Seconds()
		}
		answers = append(answers, map[string]any{"waits": waits, "message": message, "again": again, "events": events.told})
	}
	return answers, nil
}
