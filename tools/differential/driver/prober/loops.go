// The loops of workers as they are: goroutines, sleeps, tickers, channels. Time is that of a bubble, so it passes when all
// of them wait.
package prober

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"strings"
	"sync"
	"time"

	_ "unsafe" // for the bubble

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	remote "k8s.io/cri-client/pkg"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/prober/results"
	utilexec "k8s.io/utils/exec"
	"readygate.dev/testbed/kube/mended"
)

// What testing/synctest has for tests alone: runs a function with a clock of its own; waits until all of its goroutines do.
//
//go:linkname bubble internal/synctest.Run
func bubble(func())

//go:linkname settled internal/synctest.Wait
func settled()

// Longer than any probe of a history takes.
const aWhile = time.Hour

type loopsHistory struct {
	history
	Pauses map[string]float64   `json:"pauses"` // by worker, what it draws for its first pause
	Runs   map[string][]lasting `json:"runs"`   // by worker, what its attempts come to, in turns
}

type lasting struct {
	Seconds float64 `json:"seconds"`
	Code    int     `json:"code"`
	Fault   string  `json:"fault"`
}

type loops struct {
	loopsHistory
	began, first time.Time // of the bubble, and what the history calls it
	mutex        sync.Mutex
	probed       map[string]int
	said         []told
}

type told struct{ when, text string }

// Those of the history that is being answered.
var turning *loops

func (l *loops) now() time.Time { return l.first.Add(time.Since(l.began)) }

// of: who says it, so that what happens at one time in several goroutines is told in one order.
func (l *loops) say(of, text string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	when := time.Since(l.began).Microseconds()
	l.said = append(l.said, told{fmt.Sprintf("%015d %s", when, of), fmt.Sprintf("%d %s", when, text)})
}

// heard is what was said since it was asked last.
func (l *loops) heard() []string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	sort.SliceStable(l.said, func(i, j int) bool { return l.said[i].when < l.said[j].when })
	lines := []string{}
	for _, one := range l.said {
		lines = append(lines, one.text)
	}
	l.said = nil
	return lines
}

func nameOf(kind probeType, pod *v1.Pod, container string) string {
	return fmt.Sprintf("probe-%s-%s-%s", strings.ToLower(kind.String()), pod.Name, container)
}

// Put in where upstream draws how long a worker waits for its first probe.
func (w *worker) drawn(func() float64) float64 {
	return turning.Pauses[nameOf(w.probeType, w.pod, w.container.Name)]
}

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
	name := command[0]
	l.say(name, name+" probes "+id.String())
	l.mutex.Lock()
	runs, at := l.Runs[name], l.probed[name]
	l.probed[name]++
	l.mutex.Unlock()
	if len(runs) == 0 {
		runs = []lasting{{}}
	}
	one := runs[at%len(runs)]
	time.Sleep(time.Duration(one.Seconds * float64(time.Second)))
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case one.Fault == "timeout":
		return nil, fmt.Errorf("%w: %q timed out after %s", remote.ErrCommandTimedOut, strings.Join(command, " "), timeout)
	case one.Fault != "":
		return nil, errors.New("the runtime is gone")
	case one.Code != 0:
		return nil, utilexec.CodeExitError{Err: errors.New("it exited"), Code: one.Code}
	}
	return nil, nil
}

// AnswerLoops lets the workers of a history turn, and tells what happened up to each of its steps, and until all had ended.
func AnswerLoops(raw json.RawMessage) (answers any, failed error) {
	given := &loops{probed: map[string]int{}}
	if err := json.Unmarshal(raw, &given.loopsHistory); err != nil {
		return nil, err
	}
	for index := range given.Pods {
		defaulted(&given.Pods[index])
		named(&given.Pods[index])
	}
	defer func() { turning = nil }()
	bubble(func() {
		defer func() {
			if found := recover(); found != nil {
				failed = fmt.Errorf("%v", found)
			}
		}()
		answers, failed = given.turn()
	})
	return answers, failed
}

func named(pod *v1.Pod) {
	for _, containers := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for _, c := range containers {
			for kind, spec := range map[probeType]*v1.Probe{startup: c.StartupProbe, readiness: c.ReadinessProbe, liveness: c.LivenessProbe} {
				if spec != nil {
					spec.Exec = &v1.ExecAction{Command: []string{nameOf(kind, pod, c.Name)}}
				}
			}
		}
	}
}

func (l *loops) turn() ([][]string, error) {
	l.began, l.first = time.Now(), at(l.Start)
	if len(l.Steps) > 0 {
		l.first = at(l.Steps[0].Wall)
	}
	turning, ahead, beginnings = l, 0, map[*worker]beginning{}
	known := map[types.UID]*v1.PodStatus{}
	over := make(chan struct{})
	defer close(over)
	caches := map[probeType]results.Manager{}
	for _, kind := range []probeType{liveness, readiness, startup} {
		caches[kind] = results.NewManager()
		go l.listen(kind, caches[kind].Updates(), over)
	}
	events := &record.FakeRecorder{} // what is told of probes is compared step by step
	m := NewManager(statuses{known: known}, caches[liveness], caches[readiness], caches[startup], l, events).(*manager)
	m.start = at(l.Start)
	ids, ends := l.ids(), map[types.UID][]context.CancelFunc{}
	defer func() {
		m.CleanupPods(nil)
		time.Sleep(aWhile)
	}()
	answers := make([][]string, 0, len(l.Steps)+1)
	for _, step := range l.Steps {
		time.Sleep(at(step.Wall).Sub(l.now()))
		settled()
		pod := &l.Pods[step.Pod]
		ctx, end := context.WithCancel(context.Background()) // of a pod's syncs: it is over when the pod begins to end
		if step.Op == "add" {
			ends[pod.UID] = append(ends[pod.UID], end)
		}
		if step.Op == "stop" && !mended.On("fix_exec_probes_of_ending_pods") {
			for _, end := range ends[pod.UID] {
				end()
			}
		}
		said, err := m.take(ctx, step, pod, known)
		if err != nil {
			return nil, err
		}
		settled()
		answers = append(answers, append(append(said, l.heard()...), m.seen(caches, events, ids)...))
	}
	m.CleanupPods(nil)
	time.Sleep(aWhile)
	settled()
	return append(answers, append(l.heard(), m.seen(caches, events, ids)...)), nil
}

func (l *loops) listen(kind probeType, updates <-chan results.Update, over chan struct{}) {
	for {
		select {
		case update := <-updates:
			l.say(kind.String()+text(update.ContainerID), fmt.Sprintf("%s update %s %s %s", kind, update.PodUID, text(update.ContainerID), update.Result))
		case <-over:
			return
		}
	}
}
