// Pods that come, change and go on a node with little room: which are taken or refused, and how far each is.
package kubelet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	versionutil "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/flowcontrol"
	ndf "k8s.io/component-helpers/nodedeclaredfeatures"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/allocation"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	kubepod "k8s.io/kubernetes/pkg/kubelet/pod"
	"k8s.io/kubernetes/pkg/kubelet/podcertificate"
	"k8s.io/kubernetes/pkg/kubelet/prober"
	"k8s.io/kubernetes/pkg/kubelet/status"
	kubetypes "k8s.io/kubernetes/pkg/kubelet/types"
	"k8s.io/kubernetes/pkg/kubelet/util/queue"
	"k8s.io/utils/clock"
	config "readygate.dev/testbed/kube/podconfig"
)

type intakeHistory struct {
	Capacity int `json:"capacity"`
	Steps    []struct {
		Op      string    `json:"op"`
		UID     types.UID `json:"uid"`
		Deleted bool      `json:"deleted"` // put: it is being deleted already
		Failed  bool      `json:"failed"`  // put: it has failed
	} `json:"steps"`
}

// Around the workers: an API server, a runtime and a status manager that know no more than the histories ask for.
type intakeScene struct {
	mutex    sync.Mutex
	capacity int
	api      map[types.UID]*v1.Pod
	created  int
	kept     map[types.UID]v1.PodStatus
	finished map[types.UID]bool
	running  map[types.UID]bool
}

type intakeStatuses struct {
	status.Manager
	*intakeScene
}

func (s intakeStatuses) SetPodStatus(_ klog.Logger, pod *v1.Pod, status v1.PodStatus) (v1.PodStatus, bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.kept[pod.UID] = status
	return status, true
}

func (s intakeStatuses) GetPodStatus(uid types.UID) (v1.PodStatus, bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	kept, found := s.kept[uid]
	return kept, found
}

func (s intakeStatuses) RemoveOrphanedStatuses(_ klog.Logger, uids map[types.UID]bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for uid := range s.kept {
		if !uids[uid] {
			delete(s.kept, uid)
		}
	}
}

func (intakeStatuses) BackfillPodResizeConditions([]*v1.Pod)    {}
func (intakeStatuses) ClearPodResizePendingCondition(types.UID) {}

type intakeAllocation struct {
	allocation.Manager
	*intakeScene
}

// AddPod has the words of lifecycle's admit handler, and counts the others as its caller there.
func (a intakeAllocation) AddPod(active []*v1.Pod, pod *v1.Pod) (bool, string, string) {
	used := 0
	for _, other := range active {
		if other.UID != pod.UID {
			used++
		}
	}
	if used >= a.capacity {
		return false, "OutOfpods", fmt.Sprintf("Node didn't have enough resource: pods, requested: 1, used: %d, capacity: %d", used, a.capacity)
	}
	return true, "", ""
}

func (intakeAllocation) UpdatePodFromAllocation(pod *v1.Pod) (*v1.Pod, bool) { return pod, false }
func (intakeAllocation) RemovePod(types.UID)                                 {}
func (intakeAllocation) RemoveOrphanedPods(sets.Set[types.UID])              {}
func (intakeAllocation) HasPendingResizes() bool                             { return false }
func (intakeAllocation) RetryPendingResizes(string)                          {}
func (intakeAllocation) PushPendingResize(types.UID)                         {}

type intakeProbes struct{ prober.Manager }

func (intakeProbes) CleanupPods(map[types.UID]sets.Empty) {}

type intakeCertificates struct{ podcertificate.Manager }

func (intakeCertificates) TrackPod(context.Context, *v1.Pod)  {}
func (intakeCertificates) ForgetPod(context.Context, *v1.Pod) {}

type allReady struct{}

func (allReady) AddSource(string) {}
func (allReady) AllReady() bool   { return true }

// The runtime, and the cache of it.
type intakeRuntime struct {
	kubecontainer.ROCache
	*intakeScene
}

func (r intakeRuntime) GetPods(context.Context) ([]*kubecontainer.Pod, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	found := []*kubecontainer.Pod{}
	for uid, runs := range r.running {
		if runs {
			found = append(found, &kubecontainer.Pod{ID: uid, Name: string(uid), Namespace: "default"})
		}
	}
	return found, nil
}

func (intakeRuntime) ForceUpdateIfOlder(context.Context, time.Time) error { return nil }

func (r intakeRuntime) Get(uid types.UID) (*kubecontainer.PodStatus, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	found := &kubecontainer.PodStatus{ID: uid}
	if r.running[uid] {
		found.ContainerStatuses = []*kubecontainer.Status{{State: kubecontainer.ContainerStateRunning}}
	}
	return found, nil
}

func (r intakeRuntime) GetNewerThan(uid types.UID, _ time.Time) (*kubecontainer.PodStatus, error) {
	return r.Get(uid)
}

// SyncPod starts the pod at once. It goes on until something ends it.
func (s *intakeScene) SyncPod(_ context.Context, _ kubetypes.SyncPodType, pod *v1.Pod, _ *v1.Pod, _ *kubecontainer.PodStatus) (bool, func(), error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.running[pod.UID], s.kept[pod.UID] = true, v1.PodStatus{Phase: v1.PodRunning}
	return false, nil, nil
}

// SyncTerminatingPod is asked again once the containers have ended.
func (s *intakeScene) SyncTerminatingPod(_ context.Context, pod *v1.Pod, _ *kubecontainer.PodStatus, _ *int64, _ func(*v1.PodStatus)) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	phase := v1.PodRunning
	if pod.Status.Phase == v1.PodFailed || !s.running[pod.UID] {
		phase = v1.PodFailed
	}
	s.kept[pod.UID] = v1.PodStatus{Phase: phase}
	if s.running[pod.UID] {
		return errors.New("it still runs")
	}
	return nil
}

func (s *intakeScene) SyncTerminatingRuntimePod(context.Context, *kubecontainer.Pod) error {
	return errors.New("no history has such a pod")
}

func (s *intakeScene) SyncTerminatedPod(_ context.Context, pod *v1.Pod, _ *kubecontainer.PodStatus) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.kept[pod.UID], s.finished[pod.UID] = v1.PodStatus{Phase: v1.PodFailed}, true
	return nil
}

// AnswerIntake tells after each step how far each pod is that the API server has, or that still ends.
func AnswerIntake(raw json.RawMessage) (any, error) {
	var given intakeHistory
	if err := json.Unmarshal(raw, &given); err != nil {
		return nil, err
	}
	scene := &intakeScene{
		capacity: given.Capacity,
		api:      map[types.UID]*v1.Pod{},
		kept:     map[types.UID]v1.PodStatus{},
		finished: map[types.UID]bool{},
		running:  map[types.UID]bool{},
	}
	around := intakeRuntime{intakeScene: scene}
	kl := &Kubelet{
		podManager:                    kubepod.NewBasicPodManager(),
		statusManager:                 intakeStatuses{intakeScene: scene},
		allocationManager:             intakeAllocation{intakeScene: scene},
		probeManager:                  intakeProbes{},
		podCertificateManager:         intakeCertificates{},
		sourcesReady:                  allReady{},
		podCache:                      around,
		runtimeCache:                  around,
		recorder:                      &record.FakeRecorder{},
		workQueue:                     queue.NewBasicWorkQueue(clock.RealClock{}),
		clock:                         clock.RealClock{},
		crashLoopBackOff:              flowcontrol.NewBackOff(time.Second, time.Minute),
		nodeDeclaredFeaturesFramework: ndf.DefaultFramework,
		version:                       versionutil.MustParse("1.36.3"),
	}
	workerPanic.Store(nil)
	workers := newPodWorkers(scene, kl.recorder, kl.workQueue, time.Minute, time.Minute, around, kl.allocationManager).(*podWorkers)
	kl.podWorkers = workers
	defer workers.stop()
	merged, answers := config.NewMerged(), []any{}
	for _, step := range given.Steps {
		if step.Op == "put" {
			scene.put(step.UID, step.Deleted, step.Failed)
		}
		if err := scene.take(kl, workers, merged, step.Op, step.UID); err != nil {
			return nil, err
		}
		answers = append(answers, scene.told(workers))
	}
	return answers, nil
}

func (s *intakeScene) take(kl *Kubelet, workers *podWorkers, merged *config.Merged, op string, uid types.UID) error {
	ctx, pod := context.Background(), s.api[uid]
	if pod == nil && op != "house" && op != "ended" {
		return nil
	}
	switch op {
	case "put":
	case "delete":
		deleted(pod)
	case "label":
		s.echo(pod)
		if err := s.set(ctx, kl, workers, merged); err != nil {
			return err
		}
		pod.Labels = map[string]string{"n": pod.Labels["n"] + "+"}
	case "fail":
		pod.Status.Phase = v1.PodFailed
	case "echo":
		s.echo(pod)
	case "remove":
		delete(s.api, uid)
	case "sync":
		if workers.stage(uid) != nil {
			known, _ := kl.podManager.GetPodByUID(uid)
			kl.HandlePodSyncs(ctx, []*v1.Pod{known})
		}
	case "ended":
		if workers.stage(uid) == "terminating" {
			s.mutex.Lock()
			s.running[uid] = false
			s.mutex.Unlock()
			workers.podLock.Lock()
			workers.requeueLastPodUpdate(uid, workers.podSyncStatuses[uid])
			workers.podLock.Unlock()
		}
	case "house":
		if err := kl.HandlePodCleanups(ctx); err != nil {
			return err
		}
	default:
		return fmt.Errorf("no step %q", op)
	}
	return s.set(ctx, kl, workers, merged)
}

func (s *intakeScene) put(uid types.UID, isDeleted, failed bool) {
	s.created++
	meta := metav1.ObjectMeta{UID: uid, Name: string(uid), Namespace: "default", CreationTimestamp: metav1.Unix(int64(s.created), 0)}
	pod := &v1.Pod{ObjectMeta: meta, Spec: v1.PodSpec{Containers: []v1.Container{{Name: string(uid)}}}}
	if pod.Status.Phase = v1.PodPending; failed {
		pod.Status.Phase = v1.PodFailed
	}
	if isDeleted {
		deleted(pod)
	}
	s.api[uid] = pod
}

func deleted(pod *v1.Pod) {
	now, grace := metav1.Unix(1000, 0), int64(30)
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &now, &grace
}

// The API server takes over what the status manager has.
func (s *intakeScene) echo(pod *v1.Pod) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if kept, found := s.kept[pod.UID]; found {
		pod.Status.Phase = kept.Phase
	}
}

// Hands over what the API server has, as syncLoopIteration does, and waits until the workers have nothing to do.
func (s *intakeScene) set(ctx context.Context, kl *Kubelet, workers *podWorkers, merged *config.Merged) error {
	pods := []*v1.Pod{}
	for _, pod := range s.api {
		pods = append(pods, pod.DeepCopy())
	}
	updates, err := merged.Set(ctx, pods)
	if err != nil {
		return err
	}
	for _, update := range updates {
		switch update.Op {
		case kubetypes.ADD:
			kl.HandlePodAdditions(ctx, update.Pods)
		case kubetypes.UPDATE, kubetypes.DELETE:
			kl.HandlePodUpdates(ctx, update.Pods)
		case kubetypes.REMOVE:
			kl.HandlePodRemoves(ctx, update.Pods)
		case kubetypes.RECONCILE:
			kl.HandlePodReconcile(ctx, update.Pods)
		}
		workers.settle()
	}
	workers.settle()
	return nil
}

func (s *intakeScene) told(workers *podWorkers) any {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	told := map[types.UID]any{}
	for uid := range s.api {
		said := map[string]any{"stage": workers.stage(uid), "finished": s.finished[uid]}
		if kept := s.kept[uid]; workers.stage(uid) == nil && kept.Phase == v1.PodFailed {
			said["stage"], said["message"] = "refused", kept.Message
		}
		told[uid] = said
	}
	workers.podLock.Lock()
	defer workers.podLock.Unlock()
	for uid, status := range workers.podSyncStatuses {
		if s.api[uid] == nil && status.WorkType() == TerminatingPod {
			told[uid] = "ends"
		}
	}
	return told
}
