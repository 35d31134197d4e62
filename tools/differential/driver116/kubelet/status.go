// Statuses as 1.16's status manager keeps them and writes them to an API server in memory, and what it makes of them.
package kubelet

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	clientset "k8s.io/client-go/kubernetes"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	kubepod "k8s.io/kubernetes/pkg/kubelet/pod"
	kubetypes "k8s.io/kubernetes/pkg/kubelet/types"
	keptstatus "readygate.dev/testbed/kube/status"
)

type statusHistory struct {
	Pod    v1.Pod       `json:"pod"`
	Mirror *v1.Pod      `json:"mirror"` // the pod is static, and this one of the API server's stands for it
	Seen   bool         `json:"seen"`   // the mirror has been seen
	Steps  []statusStep `json:"steps"`
}

type statusStep struct {
	Op      string             `json:"op"`
	Wall    float64            `json:"wall"`
	Status  v1.PodStatus       `json:"status"`  // set, any
	Runtime runtimePod         `json:"runtime"` // sync
	Errors  reasons            `json:"errors"`  // sync: why a container was not started
	Probes  map[string][2]bool `json:"probes"`  // sync: started and ready
	Host    string             `json:"host"`    // sync: the node's address
	ID      string             `json:"id"`      // readiness, startup
	Value   bool               `json:"value"`   // readiness, startup
	Pod     *v1.Pod            `json:"pod"`     // api: what somebody else has made of it; none: it is gone
	Fault   string             `json:"fault"`   // batch: request and what becomes of it
}

// One pod, in the watch and in the API server, which may be two of different age.
type statusScene struct {
	clientset.Interface
	corev1.CoreV1Interface
	corev1.PodInterface
	kubepod.Manager

	watched  *v1.Pod
	pods     kubepod.Manager // of a static pod: it and its mirror
	mirror   *v1.Pod         // as it was seen
	api      *v1.Pod
	step     *statusStep
	requests []any
	version  uint64
	finished bool // TerminatePod was called since a status is kept
}

func at(seconds float64) time.Time { return time.UnixMilli(int64(seconds * 1000)).UTC() }

func (s *statusScene) CoreV1() corev1.CoreV1Interface  { return s }
func (s *statusScene) Pods(string) corev1.PodInterface { return s }

// The agent's pod worker has its containers gone when it calls TerminatePod, so they are here, too.
func (s *statusScene) PodResourcesAreReclaimed(*v1.Pod, v1.PodStatus) bool { return s.finished }

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
		s.pods.DeletePod(s.mirror)
	}
	if s.mirror = s.api.DeepCopy(); s.mirror != nil {
		s.pods.UpdatePod(s.mirror)
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

func (s *statusScene) Get(string, metav1.GetOptions) (*v1.Pod, error) {
	s.requests = append(s.requests, "get")
	if err := s.fails("get"); err != nil {
		return nil, err
	}
	return s.api.DeepCopy(), nil
}

func (s *statusScene) Patch(_ string, _ types.PatchType, data []byte, _ ...string) (*v1.Pod, error) {
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

func (s *statusScene) Delete(_ string, options *metav1.DeleteOptions) error {
	s.requests = append(s.requests, map[string]any{"gracePeriodSeconds": options.GracePeriodSeconds, "preconditions": options.Preconditions})
	if err := s.fails("delete"); err != nil {
		return err
	}
	s.api = nil
	return nil
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
		scene.api, scene.pods = asCreated(given.Mirror).DeepCopy(), kubepod.NewBasicPodManager(nil, nil, nil, nil)
		scene.pods.AddPod(scene.watched)
		if given.Seen {
			scene.seeMirror()
		}
	}
	manager := keptstatus.NewKept(scene, scene, scene)
	answers := []any{}
	for index := range given.Steps {
		step := &given.Steps[index]
		scene.step, scene.requests = step, nil
		keptstatus.Set(at(step.Wall))
		said, err := scene.take(manager, given.Pod.UID)
		if err != nil {
			return nil, err
		}
		if scene.requests != nil {
			said["requests"] = scene.requests
		}
		kept, version, found := manager.Seen(given.Pod.UID)
		if found && version != scene.version {
			// Told at once: what is kept may be changed by what comes later.
			told, err := json.Marshal(kept)
			if err != nil {
				return nil, err
			}
			said["version"], said["kept"] = version, json.RawMessage(told)
		}
		scene.version, scene.finished = version, scene.finished && found
		answers = append(answers, said)
	}
	return answers, nil
}

func (s *statusScene) take(manager keptstatus.Kept, uid types.UID) (map[string]any, error) {
	said := map[string]any{}
	step := s.step
	switch step.Op {
	case "sync":
		if s.watched != nil {
			kl := &Kubelet{kubeClient: s, probeManager: s, statusManager: manager, reasonCache: step.Errors}
			status := kl.generateAPIPodStatus(s.watched, step.Runtime.status(s.watched))
			manager.SetPodStatus(s.watched, *addressed(&status))
		}
	case "set":
		if s.watched != nil {
			manager.SetPodStatus(s.watched, *addressed(&step.Status))
		}
	case "readiness":
		manager.SetContainerReadiness(uid, kubecontainer.ParseContainerID(step.ID), step.Value)
	case "startup":
		manager.SetContainerStartup(uid, kubecontainer.ParseContainerID(step.ID), step.Value)
	case "terminate":
		if s.watched != nil {
			manager.TerminatePod(s.watched)
			s.finished = true
		}
	case "forget":
		manager.RemoveOrphanedStatuses(map[types.UID]bool{})
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
			spec, status, phase := &s.watched.Spec, &step.Status, step.Status.Phase
			every := append(append([]v1.ContainerStatus(nil), status.ContainerStatuses...), status.InitContainerStatuses...)
			said["phase"] = getPhase(spec, every)
			said["conditions"] = []v1.PodCondition{
				keptstatus.GenerateContainersReadyCondition(spec, status.ContainerStatuses, phase),
				keptstatus.GeneratePodReadyCondition(spec, status.Conditions, status.ContainerStatuses, phase),
				keptstatus.GeneratePodInitializedCondition(spec, status.InitContainerStatuses, phase),
			}
		}
	case "batch":
		manager.Batch()
	default:
		return nil, fmt.Errorf("no step %q", step.Op)
	}
	return said, nil
}

// What the API server puts into every pod.
func asCreated(pod *v1.Pod) *v1.Pod {
	if pod != nil {
		pod.Status.QOSClass = v1.PodQOSBestEffort
		addressed(&pod.Status)
	}
	return pod
}

// The list of addresses has the one, as in any pod of one address.
func addressed(status *v1.PodStatus) *v1.PodStatus {
	if status.PodIPs = nil; status.PodIP != "" {
		status.PodIPs = []v1.PodIP{{IP: status.PodIP}}
	}
	return status
}
