// The runtime of the pod workers' histories: it starts a container where upstream's would, and ends it when the history
// says so.
package kubelet

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
)

// What kuberuntime gives a container in any case, in seconds.
const leastGrace = 2

type workersRuntime struct {
	kubecontainer.Runtime
	*workersScene
}

func (workersRuntime) Type() string                                                 { return "test" }
func (workersRuntime) IsPodResizeInProgress(*v1.Pod, *kubecontainer.PodStatus) bool { return false }
func (workersRuntime) UpdateActuatedPodLevelResources(*v1.Pod) error                { return nil }

// SyncPod is that of kuberuntime for a pod of one container.
func (r workersRuntime) SyncPod(ctx context.Context, pod *v1.Pod, status *kubecontainer.PodStatus, _ []v1.Secret, backOff *flowcontrol.Backoff, _ bool) (result kubecontainer.PodSyncResult) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	uid, container := pod.UID, &pod.Spec.Containers[0]
	run := r.runs[uid]
	if r.over || run.running() != nil {
		return
	}
	created := run == nil || !run.ready
	if created && run != nil && len(run.containers) > 0 && pod.Spec.RestartPolicy == v1.RestartPolicyNever {
		return // no sandbox for what has run
	}
	if !created && !kubecontainer.ShouldContainerBeRestarted(klog.FromContext(ctx), container, pod, status) {
		return
	}
	if created {
		if run == nil {
			run = &workersRun{}
			r.runs[uid] = run
		}
		run.ready = true
	}
	start := kubecontainer.NewSyncResult(kubecontainer.StartContainer, container.Name)
	result.AddSyncResult(start)
	if len(run.containers) > 0 {
		ended := run.containers[0].FinishedAt
		if backOff.IsInBackOffSince(string(uid), ended) {
			wait := backOff.Get(string(uid))
			err := kubecontainer.NewBackoffError(kubecontainer.ErrCrashLoopBackOff, ended.Add(wait))
			start.Fail(err, fmt.Sprintf("back-off %s", wait))
			return
		}
		backOff.Next(string(uid), ended)
	}
	for r.faults["slow"][uid] && !r.over {
		r.parked[uid] = context.Background()
		r.changed.Wait()
	}
	if r.faults["broken"][uid] {
		r.tell(uid, "start fails")
		start.Fail(kubecontainer.ErrRunContainer, "broken")
		return
	}
	if r.over {
		return
	}
	count := len(run.containers)
	if isStatic(pod) { // another one of its uid may have been there, whose restarts the logs count
		r.tell(uid, "start")
	} else {
		r.tell(uid, "start", count)
	}
	run.killed = nil
	delete(r.asked, uid)
	run.containers = append([]*kubecontainer.Status{{
		ID:           kubecontainer.ContainerID{Type: "test", ID: fmt.Sprintf("%s-%d", uid, count)},
		Name:         container.Name,
		State:        kubecontainer.ContainerStateRunning,
		CreatedAt:    r.clock.Now(),
		StartedAt:    r.clock.Now(),
		RestartCount: count,
		Hash:         kubecontainer.HashContainer(container),
	}}, run.containers...)
	return
}

// KillPod comes back when the container has ended and the sandbox is stopped.
func (r workersRuntime) KillPod(ctx context.Context, pod *v1.Pod, _ kubecontainer.Pod, override *int64) error {
	defer context.AfterFunc(ctx, r.wake)()
	r.mutex.Lock()
	defer r.mutex.Unlock()
	run := r.runs[pod.UID]
	if r.over {
		return errors.New("another kubelet")
	}
	if run == nil {
		return nil
	}
	if r.kind[pod.UID] == "orphan" { // nobody waits for one
		r.tell(pod.UID, "orphan")
		delete(r.runs, pod.UID)
		return nil
	}
	if run.running() != nil {
		r.asked[pod.UID] = true
		r.kill(pod.UID, max(leastGrace, graceOf(pod, override)))
	}
	for run.running() != nil {
		if r.over {
			return errors.New("another kubelet")
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		r.parked[pod.UID] = ctx
		r.changed.Wait()
	}
	if r.faults["blind"][pod.UID] {
		return errors.New("nobody knows whether it runs")
	}
	if run.ready && r.faults["stuck"][pod.UID] {
		r.tell(pod.UID, "stop fails")
		return errors.New("the sandbox cannot be stopped")
	}
	if run.ready {
		r.tell(pod.UID, "stopped")
	}
	run.ready = false
	return nil
}

// kill counts where it is sooner than the last: the runtime ends a container at the first of its deadlines.
func (s *workersScene) kill(uid types.UID, grace int64) {
	deadline := s.clock.Now().Add(time.Duration(grace) * time.Second)
	run := s.runs[uid]
	if run.killed == nil || deadline.Before(*run.killed) {
		run.killed = &deadline
		s.tell(uid, "kill", grace)
	}
}

// graceOf is setTerminationGracePeriod of kuberuntime where no probe has failed.
func graceOf(pod *v1.Pod, override *int64) int64 {
	switch {
	case override != nil:
		return *override
	case pod.DeletionGracePeriodSeconds != nil:
		return *pod.DeletionGracePeriodSeconds
	case pod.Spec.TerminationGracePeriodSeconds != nil:
		return *pod.Spec.TerminationGracePeriodSeconds
	}
	return leastGrace
}

func (r workersRuntime) GetPod(_ context.Context, uid types.UID) (*kubecontainer.Pod, error) {
	return &kubecontainer.Pod{ID: uid}, nil
}

func (r workersRuntime) GetPodStatus(_ context.Context, pod *kubecontainer.Pod) (*kubecontainer.PodStatus, error) {
	return r.kl.podCache.Get(pod.ID)
}

func (s *workersScene) exit(uid types.UID, code int) {
	if running := s.runs[uid].running(); running != nil {
		running.State, running.ExitCode, running.FinishedAt = kubecontainer.ContainerStateExited, code, s.clock.Now()
		running.Reason = "Error"
	}
}
