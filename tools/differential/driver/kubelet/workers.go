// Lives of pods, as the pod workers and SyncPod, SyncTerminatingPod and SyncTerminatedPod drive them.
package kubelet

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kubetypes "k8s.io/kubernetes/pkg/kubelet/types"
	keptstatus "readygate.dev/testbed/kube/status"
)

type workersHistory struct {
	Capacity int           `json:"capacity"`
	Random   float64       `json:"random"` // 0 to 1, of each wait
	Steps    []workersStep `json:"steps"`
}

type workersStep struct {
	Op      string    `json:"op"`
	UID     types.UID `json:"uid"`
	Pod     *v1.Pod   `json:"pod"`     // put
	Grace   int64     `json:"grace"`   // delete
	Code    int       `json:"code"`    // exit
	Quiet   bool      `json:"quiet"`   // exit: no event tells of it
	On      bool      `json:"on"`      // blind, broken, slow, stuck, network
	Seconds float64   `json:"seconds"` // advance
}

// hasPod reports whether the step has a pod that an API server or a file could give. A shrunk step may have none.
func (step *workersStep) hasPod() bool {
	pod := step.Pod
	return pod != nil && pod.UID == step.UID && pod.UID != "" && pod.Name != "" && pod.Namespace != "" &&
		pod.Spec.RestartPolicy != "" && len(pod.Spec.Containers) > 0 && pod.Spec.Containers[0].Name != ""
}

// jitter takes the place of wait.Jitter: the history says how much longer a wait is.
func jitter(_ func(time.Duration, float64) time.Duration, period time.Duration, most float64) time.Duration {
	return period + time.Duration(random*most*float64(period))
}

// A grace period that is made shorter counts, as in the agent (row LH18).
var shorterGraceCounts bool

// endingContext is the context of SyncTerminatingPod: upstream's is the second.
func endingContext(given, detached context.Context) context.Context {
	if shorterGraceCounts {
		return given
	}
	return detached
}

// AnswerWorkers tells after each step what was done for each pod, and what its worker says of it.
func AnswerWorkers(raw json.RawMessage) (any, error) {
	var given workersHistory
	if err := json.Unmarshal(raw, &given); err != nil {
		return nil, err
	}
	random, shorterGraceCounts = given.Random, true
	defer func() { shorterGraceCounts = false }()
	workerPanic.Store(nil)
	world := newWorkersWorld(given.Capacity)
	scene := newWorkersScene(world)
	defer func() { scene.end() }()
	ctx := context.Background()
	if err := scene.begin(ctx); err != nil {
		return nil, err
	}
	answers := []any{}
	for i := range given.Steps {
		step := &given.Steps[i]
		if step.Op == "restart" {
			scene.end()
			scene = newWorkersScene(world)
			if err := scene.begin(ctx); err != nil {
				return nil, err
			}
		} else if err := scene.take(ctx, step); err != nil {
			return nil, err
		}
		answers = append(answers, scene.told())
	}
	return answers, nil
}

// begin is the start of a kubelet: it sees all pods, then what is left of others.
func (s *workersScene) begin(ctx context.Context) error {
	if err := s.set(ctx); err != nil {
		return err
	}
	return s.house(ctx)
}

func (s *workersScene) take(ctx context.Context, step *workersStep) error {
	uid, on := step.UID, step.On
	pod := s.config[uid]
	switch step.Op {
	case "put":
		if !step.hasPod() {
			return fmt.Errorf("no pod of uid %q", uid)
		}
		s.put(step.Pod)
	case "house":
		if err := s.house(ctx); err != nil {
			return err
		}
	case "advance":
		s.advance(ctx, time.Duration(step.Seconds*float64(time.Second)))
	case "network":
		s.network(on)
	case "blind", "broken", "slow", "stuck":
		s.locked(func() { s.faults[step.Op][uid] = on && pod != nil })
		s.wake()
	case "exit":
		_, waits := s.parked[uid]
		ends := s.asked[uid] && s.runs[uid].running() != nil
		s.locked(func() { s.exit(uid, step.Code) })
		s.wake()
		// An end that was asked for is noticed, but by KillPod itself while that waits for it.
		if (ends || !step.Quiet) && !(waits && s.kind[uid] == "end") {
			s.relists = append(s.relists, uid)
		}
	case "sync":
		s.relists = append(s.relists, uid)
	case "delete", "fail", "echo", "label", "remove":
		if pod != nil && (!isStatic(pod) || step.Op == "label" || step.Op == "remove") {
			if err := s.change(ctx, pod, step); err != nil {
				return err
			}
		}
	default:
		return fmt.Errorf("no step %q", step.Op)
	}
	return s.set(ctx)
}

func (s *workersScene) put(pod *v1.Pod) {
	for uid, other := range s.config {
		if other.Name == pod.Name && isStatic(other) {
			s.remove(uid)
		}
	}
	s.config[pod.UID] = pod.DeepCopy()
}

func (s *workersScene) change(ctx context.Context, pod *v1.Pod, step *workersStep) error {
	switch step.Op {
	case "delete":
		now, grace := metav1.Unix(1000, 0), step.Grace
		if given := pod.DeletionGracePeriodSeconds; given != nil {
			grace = min(grace, *given)
		}
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &now, &grace
	case "fail":
		if pod.DeletionTimestamp == nil {
			pod.Status.Phase = v1.PodFailed
		}
	case "echo":
		if kept, found := s.kl.statusManager.GetPodStatus(pod.UID); found {
			pod.Status.Phase = kept.Phase
		}
	case "label":
		if kept, found := s.kl.statusManager.GetPodStatus(pod.UID); found && !isStatic(pod) {
			pod.Status.Phase = kept.Phase
			if err := s.set(ctx); err != nil {
				return err
			}
		}
		pod.Labels = map[string]string{"n": pod.Labels["n"] + "+"}
	case "remove":
		s.remove(pod.UID)
	}
	return nil
}

// A pod that is gone ends without faults: where it does not, upstream tries again with its housekeeping alone.
func (s *workersScene) remove(uid types.UID) {
	delete(s.config, uid)
	s.locked(func() { s.faults["blind"][uid], s.faults["stuck"][uid] = false, false })
}

func isStatic(pod *v1.Pod) bool {
	return pod.Annotations[kubetypes.ConfigSourceAnnotationKey] == kubetypes.FileSource
}

// Hands over what the sources have, as syncLoopIteration does, and waits until there is nothing to do.
func (s *workersScene) set(ctx context.Context) error {
	for _, source := range []string{kubetypes.FileSource, kubetypes.ApiserverSource} {
		pods := []*v1.Pod{}
		for _, pod := range s.config {
			if isStatic(pod) == (source == kubetypes.FileSource) {
				pods = append(pods, pod.DeepCopy())
			}
		}
		updates, err := s.merged.SetOf(ctx, source, pods)
		if err != nil {
			return err
		}
		for _, update := range updates {
			switch update.Op {
			case kubetypes.ADD:
				s.kl.HandlePodAdditions(ctx, update.Pods)
			case kubetypes.UPDATE, kubetypes.DELETE:
				s.kl.HandlePodUpdates(ctx, update.Pods)
			case kubetypes.REMOVE:
				s.kl.HandlePodRemoves(ctx, update.Pods)
			case kubetypes.RECONCILE:
				s.kl.HandlePodReconcile(ctx, update.Pods)
			}
			s.settle(ctx)
		}
	}
	s.settle(ctx)
	return nil
}

func (s *workersScene) house(ctx context.Context) error {
	s.cleaned = nil
	if err := s.kl.HandlePodCleanups(ctx); err != nil {
		return err
	}
	s.settle(ctx)
	for uid, run := range s.runs { // as the garbage collection, which comes later
		if run.running() == nil && s.workers.stage(uid) == nil {
			delete(s.runs, uid)
		}
	}
	s.housed = slices.DeleteFunc(s.cleaned, func(uid string) bool { return !s.workers.hasStarted(types.UID(uid)) })
	return nil
}

func (s *workersScene) advance(ctx context.Context, by time.Duration) {
	until := s.clock.Now().Add(by)
	for {
		s.settle(ctx)
		next, found := s.queue.next()
		if !found || next.After(until) {
			break
		}
		s.to(next)
	}
	s.to(until)
	s.settle(ctx)
}

func (s *workersScene) to(now time.Time) {
	if now.After(s.clock.Now()) {
		s.clock.SetTime(now)
	}
	keptstatus.Set(s.clock.Now())
}

// settle goes on until no worker works but those that wait for the runtime, and nothing is due.
func (s *workersScene) settle(ctx context.Context) {
	for turns := 0; ; turns++ {
		if turns > 1_000 {
			panic("it never settles")
		}
		waitForWorkers(s.working)
		uids := append(s.relists, s.made()...)
		s.relists = nil
		pods := s.kl.getPodsToSync()
		for _, uid := range append(uids, s.heldBack()...) {
			if pod, found := s.kl.podManager.GetPodByUID(uid); found && s.workers.stage(uid) != nil {
				pods = append(pods, pod)
			}
		}
		again := s.workers.wantRestart(func(uid types.UID) bool { return s.config[uid] != nil })
		if len(pods) == 0 && !again {
			return
		}
		s.kl.HandlePodSyncs(ctx, pods)
		if again {
			_ = s.kl.HandlePodCleanups(ctx)
		}
	}
}

func (s *workersScene) working() (uids []types.UID) {
	s.workers.podLock.Lock()
	defer s.workers.podLock.Unlock()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for uid, status := range s.workers.podSyncStatuses {
		waits, parked := s.parked[uid]
		if status.working && !(parked && waits.Err() == nil) {
			uids = append(uids, uid)
		}
	}
	return uids
}

// heldBack are static pods whose turn has come: upstream they try again after a while.
func (s *workersScene) heldBack() []types.UID {
	s.workers.podLock.Lock()
	defer s.workers.podLock.Unlock()
	found := []types.UID{}
	for uid, status := range s.workers.podSyncStatuses {
		_, taken := s.workers.startedStaticPodsByFullname[status.fullname]
		if status.pendingUpdate != nil && !status.IsStarted() && !status.working && !taken {
			found = append(found, uid)
		}
	}
	return found
}

func (s *workersScene) told() any {
	told := map[types.UID]any{}
	for uid := range s.config {
		told[uid] = s.toldOf(uid)
	}
	for uid := range s.does {
		if _, found := told[uid]; !found {
			told[uid] = map[string]any{"does": s.does[uid], "stage": nil}
		}
	}
	s.workers.podLock.Lock()
	for uid, status := range s.workers.podSyncStatuses {
		if s.config[uid] == nil && status.WorkType() == TerminatingPod {
			told[uid] = map[string]any{"does": s.does[uid], "stage": "ends"}
		}
	}
	s.workers.podLock.Unlock()
	ends := map[string]bool{}
	ends["static"] = s.workers.IsPodForMirrorPodTerminatingByFullName("static_default")
	for _, pod := range s.config {
		delete(ends, pod.Name)
	}
	answer := map[string]any{"pods": told, "mirrorsEnd": ends}
	if s.housed != nil {
		slices.Sort(s.housed)
		answer["probed"] = s.housed
	}
	s.does, s.housed = map[types.UID][]any{}, nil
	return answer
}

func (s *workersScene) toldOf(uid types.UID) any {
	w := s.workers
	said := map[string]any{"does": s.does[uid], "stage": w.stage(uid)}
	if said["stage"] == nil {
		return said
	}
	started := w.hasStarted(uid)
	if said["stage"] == "syncing" && !started { // it waits for another one of its name
		said["stage"] = nil
		return said
	}
	said["terminationRequested"] = w.IsPodTerminationRequested(uid)
	said["knownTerminated"] = w.IsPodKnownTerminated(uid)
	said["couldRun"] = w.CouldHaveRunningContainers(uid)
	said["runtimeRemoved"] = w.ShouldPodRuntimeBeRemoved(uid)
	said["finished"] = w.ShouldPodBeFinished(uid)
	s.mutex.Lock()
	_, parked := s.parked[uid]
	parked = parked || s.asked[uid] && s.runs[uid].running() != nil
	s.mutex.Unlock()
	if due, found := s.queue.due[uid]; found && started && !parked && said["finished"] == false {
		said["wait"] = due.Sub(s.clock.Now()).Milliseconds()
	}
	return said
}

// network is there or not.
func (s *workersScene) network(on bool) {
	s.noNetwork = !on
	s.kl.runtimeState.setNetworkState(s.networkError())
}

func (s *workersScene) end() {
	s.locked(func() { s.over = true })
	s.wake()
	if workerPanic.Load() == nil {
		waitForWorkers(s.working)
	}
	s.workers.stop()
}

func (s *workersScene) locked(do func()) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	do()
}

// wake has those look again that wait for the runtime.
func (s *workersScene) wake() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	maps.DeleteFunc(s.parked, func(types.UID, context.Context) bool { return true })
	s.changed.Broadcast()
}
