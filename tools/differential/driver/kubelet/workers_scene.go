// What the pod workers of a history stand on: a runtime, probes, statuses and a queue of waits that tell what is done.
package kubelet

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	oteltrace "go.opentelemetry.io/otel/trace/noop"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	versionutil "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/util/flowcontrol"
	ndf "k8s.io/component-helpers/nodedeclaredfeatures"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/cm"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/pleg"
	kubepod "k8s.io/kubernetes/pkg/kubelet/pod"
	kubetypes "k8s.io/kubernetes/pkg/kubelet/types"
	"k8s.io/kubernetes/pkg/kubelet/volumemanager"
	volumetypes "k8s.io/kubernetes/pkg/volume/util/types"
	testingclock "k8s.io/utils/clock/testing"
	config "readygate.dev/testbed/kube/podconfig"
	keptstatus "readygate.dev/testbed/kube/status"
)

var errNoNetwork = errors.New("container runtime network not ready")

// Outlives the kubelets of a history.
type workersWorld struct {
	mutex     sync.Mutex
	changed   *sync.Cond
	clock     *testingclock.FakeClock
	capacity  int
	config    map[types.UID]*v1.Pod
	runs      map[types.UID]*workersRun
	faults    map[string]map[types.UID]bool
	noNetwork bool
	does      map[types.UID][]any
}

// A pod in the runtime. `ready`: of its sandbox. `containers`: newest first. `killed`: when the newest is, at the latest.
type workersRun struct {
	ready      bool
	containers []*kubecontainer.Status
	killed     *time.Time
}

func newWorkersWorld(capacity int) *workersWorld {
	w := &workersWorld{
		clock:    testingclock.NewFakeClock(at(1_000_000)),
		capacity: capacity,
		config:   map[types.UID]*v1.Pod{},
		runs:     map[types.UID]*workersRun{},
		faults:   map[string]map[types.UID]bool{"blind": {}, "broken": {}, "slow": {}, "stuck": {}},
		does:     map[types.UID][]any{},
	}
	w.changed = sync.NewCond(&w.mutex)
	return w
}

// One kubelet.
type workersScene struct {
	*workersWorld
	kl       *Kubelet
	workers  *podWorkers
	merged   *config.Merged
	queue    *workersQueue
	kind     map[types.UID]string          // of the sync that goes on
	parked   map[types.UID]context.Context // workers that wait for the runtime
	shown    map[types.UID]string          // the last status
	probed   map[types.UID]bool
	asked    map[types.UID]bool // to end, by this kubelet
	lessened map[types.UID]bool
	relists  []types.UID
	started  []types.UID
	cleaned  []string
	housed   []string
	over     bool
}

// As upstream's, but what is due is done at that moment and not with the next second's look.
type workersQueue struct {
	mutex sync.Mutex
	clock *testingclock.FakeClock
	due   map[types.UID]time.Time
}

func (q *workersQueue) Enqueue(uid types.UID, delay time.Duration) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	q.due[uid] = q.clock.Now().Add(delay)
}

func (q *workersQueue) GetWork() (found []types.UID) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	for uid, due := range q.due {
		if !due.After(q.clock.Now()) {
			found = append(found, uid)
			delete(q.due, uid)
		}
	}
	return found
}

func (q *workersQueue) next() (first time.Time, found bool) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	for _, due := range q.due {
		if !found || due.Before(first) {
			first, found = due, true
		}
	}
	return first, found
}

func newWorkersScene(world *workersWorld) *workersScene {
	s := &workersScene{
		workersWorld: world,
		merged:       config.NewMerged(),
		kind:         map[types.UID]string{},
		parked:       map[types.UID]context.Context{},
		shown:        map[types.UID]string{},
		probed:       map[types.UID]bool{},
		asked:        map[types.UID]bool{},
		lessened:     map[types.UID]bool{},
	}
	s.queue = &workersQueue{clock: world.clock, due: map[types.UID]time.Time{}}
	cache := workersCache{workersScene: s}
	pods := kubepod.NewBasicPodManager()
	safety := workersSafety{scene: s}
	keptstatus.Set(world.clock.Now())
	s.kl = &Kubelet{
		tracer:                        oteltrace.NewTracerProvider().Tracer(""),
		kubeClient:                    &statusScene{step: &statusStep{Host: "192.168.0.1"}},
		podManager:                    pods,
		statusManager:                 workersStatuses{Kept: keptstatus.NewKept(nil, pods, safety, safety), scene: s},
		allocationManager:             intakeAllocation{intakeScene: &intakeScene{capacity: world.capacity}},
		probeManager:                  workersProbes{workersScene: s},
		podCertificateManager:         intakeCertificates{},
		containerManager:              cm.NewStubContainerManager(),
		containerRuntime:              workersRuntime{workersScene: s},
		volumeManager:                 workersVolumes{},
		sourcesReady:                  allReady{},
		podCache:                      cache,
		runtimeCache:                  cache,
		reasonCache:                   NewReasonCache(),
		runtimeState:                  newRuntimeState(time.Minute),
		recorder:                      workersRecorder{scene: s},
		workQueue:                     s.queue,
		clock:                         world.clock,
		pleg:                          workersEvents{scene: s},
		crashLoopBackOff:              flowcontrol.NewFakeBackOff(10*time.Second, 300*time.Second, world.clock),
		nodeDeclaredFeaturesFramework: ndf.DefaultFramework,
		version:                       versionutil.MustParse("1.36.3"),
	}
	s.kl.crashLoopBackOff.HasExpiredFunc = func(event, last time.Time, _ time.Duration) bool {
		return event.Sub(last) > 600*time.Second
	}
	s.kl.runtimeState.setNetworkState(s.networkError())
	s.workers = newPodWorkers(s, s.kl.recorder, s.queue, time.Minute, backOffPeriod, cache, s.kl.allocationManager).(*podWorkers)
	s.workers.clock = world.clock
	s.kl.podWorkers = s.workers
	return s
}

func (s *workersScene) networkError() error {
	if s.noNetwork {
		return errNoNetwork
	}
	return nil
}

// tell is called with the lock held.
func (s *workersScene) tell(uid types.UID, what ...any) {
	if !s.over {
		s.does[uid] = append(s.does[uid], what)
	}
}

// The kubelet is the syncer; which of its calls goes on shows in what is told.

func (s *workersScene) as(uid types.UID, kind string) { s.locked(func() { s.kind[uid] = kind }) }

func (s *workersScene) SyncPod(ctx context.Context, kind kubetypes.SyncPodType, pod, mirror *v1.Pod, status *kubecontainer.PodStatus) (bool, func(), error) {
	s.as(pod.UID, "sync")
	over, after, err := s.kl.SyncPod(ctx, kind, pod, mirror, status)
	s.mutex.Lock()
	failed := s.runs[pod.UID] != nil && err != nil && !strings.Contains(err.Error(), NetworkNotReadyErrorMsg)
	s.mutex.Unlock()
	known, unknown := s.kl.podCache.Get(pod.UID)
	if failed && unknown == nil { // as in the agent, why it could not be started shows at once
		s.kl.statusManager.SetPodStatus(klog.Background(), pod, s.kl.generateAPIPodStatus(ctx, pod, known, false))
	}
	return over, after, err
}

func (s *workersScene) SyncTerminatingPod(ctx context.Context, pod *v1.Pod, status *kubecontainer.PodStatus, grace *int64, also func(*v1.PodStatus)) error {
	s.as(pod.UID, "end")
	s.kl.reasonCache.Remove(pod.UID, pod.Spec.Containers[0].Name)
	err := s.kl.SyncTerminatingPod(ctx, pod, status, grace, also)
	if err != nil && ctx.Err() == nil {
		s.workers.waitForRetry(pod.UID)
	}
	return err
}

func (s *workersScene) SyncTerminatingRuntimePod(ctx context.Context, running *kubecontainer.Pod) error {
	s.as(running.ID, "orphan")
	return s.kl.SyncTerminatingRuntimePod(ctx, running)
}

func (s *workersScene) SyncTerminatedPod(ctx context.Context, pod *v1.Pod, status *kubecontainer.PodStatus) error {
	s.as(pod.UID, "end")
	err := s.kl.SyncTerminatedPod(ctx, pod, status)
	_, known := s.kl.podManager.GetPodByUID(pod.UID)
	s.workers.podLock.Lock()
	another := s.workers.podSyncStatuses[pod.UID].restartRequested
	s.workers.podLock.Unlock()
	if !known || another { // as the garbage collection, which comes later
		s.locked(func() {
			if !s.over {
				delete(s.runs, pod.UID)
			}
		})
	}
	return err
}

type workersSafety struct{ scene *workersScene }

func (w workersSafety) PodCouldHaveRunningContainers(pod *v1.Pod) bool {
	return w.scene.workers.CouldHaveRunningContainers(pod.UID)
}
func (workersSafety) RecordStatusUpdated(*v1.Pod)     {}
func (workersSafety) DeletePodStartupState(types.UID) {}

type workersEvents struct {
	pleg.PodLifecycleEventGenerator
	scene *workersScene
}

func (e workersEvents) RequestRelist(uid types.UID) {
	e.scene.locked(func() { e.scene.started = append(e.scene.started, uid) })
}

// made are the pods of which the next list shows something new.
func (s *workersScene) made() []types.UID {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	found := s.started
	s.started = nil
	return found
}

type workersVolumes struct{ volumemanager.VolumeManager }

func (workersVolumes) WaitForAttachAndMount(context.Context, *v1.Pod) error           { return nil }
func (workersVolumes) WaitForUnmount(context.Context, *v1.Pod) error                  { return nil }
func (workersVolumes) HasPossiblyMountedVolumesForPod(volumetypes.UniquePodName) bool { return false }

// The cache of the runtime.
type workersCache struct {
	kubecontainer.ROCache
	*workersScene
}

func (workersCache) ForceUpdateIfOlder(context.Context, time.Time) error { return nil }

func (c workersCache) GetPods(context.Context) ([]*kubecontainer.Pod, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	found := []*kubecontainer.Pod{}
	for uid, run := range c.runs {
		if run.running() != nil {
			found = append(found, &kubecontainer.Pod{ID: uid, Name: string(uid), Namespace: "default"})
		}
	}
	return found, nil
}

func (c workersCache) Get(uid types.UID) (*kubecontainer.PodStatus, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.faults["blind"][uid] {
		return &kubecontainer.PodStatus{ID: uid}, errors.New("not to be inspected")
	}
	return c.statusOf(uid), nil
}

func (c workersCache) GetNewerThan(uid types.UID, _ time.Time) (*kubecontainer.PodStatus, error) {
	return c.Get(uid)
}

func (r *workersRun) running() *kubecontainer.Status {
	if r == nil || len(r.containers) == 0 || r.containers[0].State != kubecontainer.ContainerStateRunning {
		return nil
	}
	return r.containers[0]
}

func (s *workersScene) statusOf(uid types.UID) *kubecontainer.PodStatus {
	made := &kubecontainer.PodStatus{ID: uid, Name: string(uid), Namespace: "default"}
	run := s.runs[uid]
	if run == nil {
		return made
	}
	state := runtimeapi.PodSandboxState_SANDBOX_NOTREADY
	if run.ready {
		state, made.IPs = runtimeapi.PodSandboxState_SANDBOX_READY, []string{"127.0.1.2"}
	}
	made.SandboxStatuses = []*runtimeapi.PodSandboxStatus{{
		Id: "s", State: state, Metadata: &runtimeapi.PodSandboxMetadata{},
		Network: &runtimeapi.PodSandboxNetworkStatus{Ip: "127.0.1.2"},
	}}
	for _, container := range run.containers {
		copied := *container
		made.ContainerStatuses = append(made.ContainerStatuses, &copied)
	}
	if run.ready {
		made.ActiveContainerStatuses = made.ContainerStatuses
	}
	return made
}
