// One container killed with its preStop hook, under a clock of its own.
package kuberuntime

import (
	"context"
	"errors"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	internalapi "k8s.io/cri-api/pkg/apis"
	"k8s.io/klog/v2"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
)

// What becomes of a hook.
type hookEnd struct {
	Takes float64 `json:"takes"`
	Fails bool    `json:"fails"`
}

// The scene of one kill: its clock, and what is done. The hook's goroutine waits until it is known who waits for it.
type killScene struct {
	internalapi.RuntimeService
	record.EventRecorderLogger

	now     time.Time
	end     hookEnd
	hangs   chan bool
	release chan struct{}
	ran     bool
	stop    int64
	events  []string
}

var kill *killScene

func wallNow() time.Time { return kill.now }

func afterHook(limit time.Duration) <-chan time.Time {
	hangs := kill.end.Takes > limit.Seconds()
	if !hangs {
		kill.hangs <- false
		return nil
	}
	kill.now = kill.now.Add(limit)
	kill.hangs <- true
	fired := make(chan time.Time, 1)
	fired <- kill.now
	return fired
}

func (s *killScene) Run(context.Context, kubecontainer.ContainerID, *v1.Pod, *v1.Container, *v1.LifecycleHandler) (string, error) {
	s.ran = true
	if <-s.hangs {
		<-s.release
		return "", nil
	}
	s.now = s.now.Add(time.Duration(s.end.Takes * float64(time.Second)))
	if s.end.Fails {
		return "", errors.New("it failed")
	}
	return "", nil
}

func (s *killScene) StopContainer(_ context.Context, _ string, grace int64) error {
	s.stop = grace
	return nil
}

func (s *killScene) WithLogger(klog.Logger) record.EventRecorderLogger { return s }

func (s *killScene) Event(_ runtime.Object, kind, reason, text string) {
	s.events = append(s.events, kind+" "+reason+" "+text)
}

type hookAnswer struct {
	Ran    bool     `json:"ran"`
	Stop   int64    `json:"stop"`
	Events []string `json:"events"`
}

func killed1(ctx context.Context, m *kubeGenericRuntimeManager, pod *v1.Pod, id kubecontainer.ContainerID, info containerToKillInfo, grace *int64, end hookEnd) hookAnswer {
	scene := &killScene{now: time.UnixMilli(0), end: end, hangs: make(chan bool), release: make(chan struct{}), events: []string{}}
	kill = scene
	m.runtimeService, m.runner, m.recorder = scene, scene, scene
	if err := m.killContainer(ctx, pod, id, info.name, info.message, info.reason, grace, nil); err != nil {
		scene.events = append(scene.events, err.Error())
	}
	answer := hookAnswer{scene.ran, scene.stop, scene.events}
	close(scene.release)
	return answer
}
