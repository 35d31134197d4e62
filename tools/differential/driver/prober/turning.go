// The loops of workers as they are: goroutines, sleeps, tickers, channels. Time is that of a bubble, so it passes when all
// of them wait. The same for both releases; loops.go has what differs.
package prober

import (
	"errors"
	"fmt"
	"sort"
	"strings"
	"sync"
	"time"

	_ "unsafe" // for the bubble

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/kubernetes/pkg/kubelet/prober/results"
	utilexec "k8s.io/utils/exec"
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

// runs a command, which names the worker, for as long as the history says. timedOut: the error of one that took too long.
func (l *loops) runs(name, id string, timedOut func() error) error {
	l.say(name, name+" probes "+id)
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
	case one.Fault == "timeout":
		return timedOut()
	case one.Fault != "":
		return errors.New("the runtime is gone")
	case one.Code != 0:
		return utilexec.CodeExitError{Err: errors.New("it exited"), Code: one.Code}
	}
	return nil
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

// begin has the clock of the bubble say what the history calls its first moment.
func (l *loops) begin() {
	l.probed, l.began, l.first = map[string]int{}, time.Now(), at(l.Start)
	if len(l.Steps) > 0 {
		l.first = at(l.Steps[0].Wall)
	}
	turning = l
}

// Inside a bubble, so that nothing of it is left running.
func inBubble(turn func() ([][]string, error)) (answers any, failed error) {
	defer func() { turning = nil }()
	bubble(func() {
		defer func() {
			if found := recover(); found != nil {
				failed = fmt.Errorf("%v", found)
			}
		}()
		answers, failed = turn()
	})
	return answers, failed
}

// turn tells what happened up to each step of the history, and until all workers had ended.
func (l *loops) turn(m *manager, caches map[probeType]results.Manager, take func(step, *v1.Pod) ([]string, error)) ([][]string, error) {
	over := make(chan struct{})
	defer close(over)
	for kind, cache := range caches {
		go l.listen(kind, cache.Updates(), over)
	}
	ids, events := l.ids(), &record.FakeRecorder{} // Events of probes are compared step by step
	defer func() {
		m.CleanupPods(nil)
		time.Sleep(aWhile)
	}()
	answers := make([][]string, 0, len(l.Steps)+1)
	for _, step := range l.Steps {
		time.Sleep(at(step.Wall).Sub(l.now()))
		settled()
		said, err := take(step, &l.Pods[step.Pod])
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
