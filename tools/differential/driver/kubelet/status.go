// Statuses from what the runtime and the probes say, kept by a status manager and written to an API server in memory.
package kubelet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	clientset "k8s.io/client-go/kubernetes"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/cm"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	kubepod "k8s.io/kubernetes/pkg/kubelet/pod"
	"k8s.io/kubernetes/pkg/kubelet/prober"
	kubetypes "k8s.io/kubernetes/pkg/kubelet/types"
	"k8s.io/utils/clock"
	keptstatus "readygate.dev/testbed/kube/status"
)

type statusHistory struct {
	Pod    v1.Pod       `json:"pod"`
	Mirror *v1.Pod      `json:"mirror"` // the pod is static, and this one of the API server's stands for it
	Seen   bool         `json:"seen"`   // the mirror has been seen
	Steps []statusStep `json:"steps"`
}

type statusStep struct {
	Op       string               `json:"op"`
	Wall     float64              `json:"wall"`
	Runtime  RuntimePod           `json:"runtime"`  // sync
	Errors   map[string][2]string `json:"errors"`   // sync: why a container was not started
	Probes   map[string][2]bool   `json:"probes"`   // sync: started and ready
	Terminal bool                 `json:"terminal"` // sync
	Host     string               `json:"host"`     // sync: the node's address
	ID       string               `json:"id"`       // readiness, startup
	Value    bool                 `json:"value"`    // readiness, startup
	Pod      *v1.Pod              `json:"pod"`      // api: what somebody else has made of it; none: it is gone
	All      bool                 `json:"all"`      // batch
	CouldRun bool                 `json:"couldRun"` // batch
	Fault    string               `json:"fault"`    // batch: request and what becomes of it
	Status   v1.PodStatus         `json:"status"`   // any: whatever it says of containers
	Initialized bool              `json:"initialized"` // any
}

// One pod, in the watch and in the API server, which may be two of different age.
type statusScene struct {
	clientset.Interface
	corev1.CoreV1Interface
	corev1.PodInterface
	prober.Manager
	cm.ContainerManager

	watched  *v1.Pod
	pods     kubepod.Manager // of a static pod: it and its mirror
	mirror   *v1.Pod         // as it was seen
	api      *v1.Pod
	step     *statusStep
	requests []any
	version  uint64
}

func (s *statusScene) CoreV1() corev1.CoreV1Interface        { return s }
func (s *statusScene) Pods(string) corev1.PodInterface       { return s }
func (s *statusScene) RecordStatusUpdated(*v1.Pod)           {}
func (s *statusScene) DeletePodStartupState(types.UID)       {}
func (s *statusScene) PodCouldHaveRunningContainers(*v1.Pod) bool { return s.step.CouldRun }
func (s *statusScene) UpdateAllocatedResourcesStatus(*v1.Pod, *v1.PodStatus) {}

func (s *statusScene) GetPodByUID(uid types.UID) (*v1.Pod, bool) {
	if s.pods != nil {
		return s.pods.GetPodByUID(uid)
	}
	return s.watched, s.watched != nil
}

func (s *statusScene) GetMirrorPodByPod(pod *v1.Pod) (*v1.Pod, bool) {
	if s.pods != nil {
		return s.pods.GetMirrorPodByPod(pod)
	}
	return nil, false
}

func (s *statusScene) TranslatePodUID(uid types.UID) kubetypes.ResolvedPodUID {
	if s.pods != nil {
		return s.pods.TranslatePodUID(uid)
	}
	return kubetypes.ResolvedPodUID(uid)
}

func (s *statusScene) GetUIDTranslations() (map[kubetypes.ResolvedPodUID]kubetypes.MirrorPodUID, map[kubetypes.MirrorPodUID]kubetypes.ResolvedPodUID) {
	if s.pods != nil {
		return s.pods.GetUIDTranslations()
	}
	return nil, nil
}

// The watch has the mirror as the API server has it now.
func (s *statusScene) seeMirror() {
	if s.mirror != nil {
		s.pods.RemovePod(s.mirror)
	}
	if s.mirror = s.api.DeepCopy(); s.mirror != nil {
		s.pods.UpdatePod(s.mirror)
	}
}

// The prober's word, as the history has it.
func (s *statusScene) UpdatePodStatus(_ context.Context, _ *v1.Pod, status *v1.PodStatus) {
	for _, of := range [][]v1.ContainerStatus{status.ContainerStatuses, status.InitContainerStatuses} {
		for index := range of {
			if said, found := s.step.Probes[of[index].Name]; found {
				of[index].Started, of[index].Ready = &said[0], said[1]
			}
		}
	}
}

func (s *statusScene) fails(request string) error {
	if s.api == nil || s.step.Fault == request+" 404" {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "pod-u")
	}
	if s.step.Fault == request+" 500" {
		return errors.New("the server is not itself")
	}
	return nil
}

func (s *statusScene) Get(context.Context, string, metav1.GetOptions) (*v1.Pod, error) {
	s.requests = append(s.requests, "get")
	if err := s.fails("get"); err != nil {
		return nil, err
	}
	return s.api.DeepCopy(), nil
}

func (s *statusScene) Patch(_ context.Context, _ string, _ types.PatchType, data []byte, _ metav1.PatchOptions, _ ...string) (*v1.Pod, error) {
	s.requests = append(s.requests, json.RawMessage(data))
	if err := s.fails("patch"); err != nil {
		return nil, err
	}
	before, err := json.Marshal(s.api)
	if err != nil {
		return nil, err
	}
	after, err := strategicpatch.StrategicMergePatch(before, data, v1.Pod{})
	if err != nil {
		return nil, err
	}
	s.api = &v1.Pod{}
	if err := json.Unmarshal(after, s.api); err != nil {
		return nil, err
	}
	return s.api.DeepCopy(), nil
}

func (s *statusScene) Delete(_ context.Context, _ string, options metav1.DeleteOptions) error {
	s.requests = append(s.requests, map[string]any{"gracePeriodSeconds": options.GracePeriodSeconds, "preconditions": options.Preconditions})
	if err := s.fails("delete"); err != nil {
		return err
	}
	s.api = nil
	return nil
}

// The clock that an active deadline is held against: the history's.
type historyClock struct {
	clock.RealClock
	scene *statusScene
}

func (c historyClock) Since(earlier time.Time) time.Duration { return at(c.scene.step.Wall).Sub(earlier) }

type silentRecorder struct{ record.EventRecorder }

func (silentRecorder) Eventf(runtime.Object, string, string, string, ...any) {}

// Put in where upstream asks the Node for its addresses.
func (kl *Kubelet) hostOf(context.Context) ([]net.IP, error) {
	if address := net.ParseIP(kl.kubeClient.(*statusScene).step.Host); address != nil {
		return []net.IP{address}, nil
	}
	return nil, errors.New("the node has no address yet")
}

// AnswerStatus takes the steps of a history and tells what is kept and sent after each of them.
func AnswerStatus(raw json.RawMessage) (any, error) {
	var given statusHistory
	if err := json.Unmarshal(raw, &given); err != nil {
		return nil, err
	}
	asCreated(&given.Pod)
	scene := &statusScene{watched: given.Pod.DeepCopy(), api: given.Pod.DeepCopy()}
	if given.Mirror != nil {
		scene.api, scene.pods = asCreated(given.Mirror).DeepCopy(), kubepod.NewBasicPodManager()
		scene.pods.AddPod(scene.watched)
		if given.Seen {
			scene.seeMirror()
		}
	}
	manager := keptstatus.NewKept(scene, scene, scene, scene)
	kl := &Kubelet{statusManager: manager, probeManager: scene, containerManager: scene, kubeClient: scene}
	kl.AddPodSyncHandler(&activeDeadlineHandler{historyClock{scene: scene}, manager, silentRecorder{}})
	answers := []any{}
	for index := range given.Steps {
		step := &given.Steps[index]
		scene.step, scene.requests = step, nil
		keptstatus.Set(at(step.Wall))
		said, err := scene.take(kl, manager, given.Pod.UID)
		if err != nil {
			return nil, err
		}
		if scene.requests != nil {
			said["requests"] = scene.requests
		}
		kept, version, finished, found := manager.Seen(given.Pod.UID)
		if found && version != scene.version {
			// Told at once: what is kept may be changed by what comes later.
			told, err := json.Marshal(kept)
			if err != nil {
				return nil, err
			}
			said["version"], said["finished"], said["kept"] = version, finished, json.RawMessage(told)
		}
		scene.version = version
		answers = append(answers, said)
	}
	return answers, nil
}

func (s *statusScene) take(kl *Kubelet, manager keptstatus.Kept, uid types.UID) (map[string]any, error) {
	ctx, logger, said := context.Background(), klog.Background(), map[string]any{}
	step := s.step
	switch step.Op {
	case "sync":
		if s.watched == nil {
			break
		}
		kl.reasonCache = NewReasonCache()
		for name, why := range step.Errors {
			kl.reasonCache.add(uid, name, errors.New(why[0]), why[1])
		}
		status := kl.generateAPIPodStatus(ctx, s.watched, step.Runtime.Status(s.watched), step.Terminal)
		withoutResources(&status)
		_, said["changed"] = manager.SetPodStatus(logger, s.watched, status)
	case "readiness":
		manager.SetContainerReadiness(logger, uid, kubecontainer.ParseContainerID(step.ID), step.Value)
	case "startup":
		manager.SetContainerStartup(logger, uid, kubecontainer.ParseContainerID(step.ID), step.Value)
	case "terminate":
		if s.watched != nil {
			manager.TerminatePod(logger, s.watched)
		}
	case "forget":
		manager.RemoveOrphanedStatuses(logger, map[types.UID]bool{})
	case "api":
		s.api = asCreated(step.Pod)
	case "watch":
		if s.pods != nil {
			s.seeMirror()
			break
		}
		s.watched = s.api.DeepCopy()
		if s.watched != nil {
			said["reconcile"] = keptstatus.NeedToReconcilePodReadiness(s.watched)
		}
	case "any":
		if s.watched != nil {
			every := append(append([]v1.ContainerStatus(nil), step.Status.ContainerStatuses...), step.Status.InitContainerStatuses...)
			said["phase"] = getPhase(logger, s.watched, every, step.Terminal, step.Initialized)
			old, phase := &s.watched.Status, step.Status.Phase
			said["conditions"] = []v1.PodCondition{
				keptstatus.GenerateContainersReadyCondition(s.watched, old, every, phase),
				keptstatus.GeneratePodReadyCondition(s.watched, old, step.Status.Conditions, every, phase),
				keptstatus.GeneratePodInitializedCondition(s.watched, old, every, phase),
			}
		}
	case "batch":
		said["tried"] = manager.Batch(ctx, step.All)
	default:
		return nil, fmt.Errorf("no step %q", step.Op)
	}
	return said, nil
}

// What the API server puts into every pod.
func asCreated(pod *v1.Pod) *v1.Pod {
	if pod != nil {
		pod.Status.QOSClass = v1.PodQOSBestEffort
	}
	return pod
}

// What the agent does not model.
func withoutResources(status *v1.PodStatus) {
	status.Resources, status.AllocatedResources = nil, nil
	for _, of := range [][]v1.ContainerStatus{status.ContainerStatuses, status.InitContainerStatuses} {
		for index := range of {
			of[index].Resources, of[index].AllocatedResources = nil, nil
		}
	}
}
