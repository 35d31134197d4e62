// Pods of files and of an API server, the pod manager, and the mirrors of static pods.
package kubelet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientset "k8s.io/client-go/kubernetes"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	kubepod "k8s.io/kubernetes/pkg/kubelet/pod"
	"k8s.io/kubernetes/pkg/kubelet/status"
	kubetypes "k8s.io/kubernetes/pkg/kubelet/types"
	"readygate.dev/testbed/kube/config"
)

type sourcesHistory struct {
	Steps []sourcesStep `json:"steps"`
}

// Files: content of each that changes, null for one that goes. Scan: the folder is read, beside what the kernel says.
type sourcesStep struct {
	Wall   float64            `json:"wall"`
	Gone   bool               `json:"gone"` // the folder
	Files  map[string]*string `json:"files"`
	Scan   bool               `json:"scan"`
	Listed bool               `json:"listed"` // the API server's pods
	Pods   []v1.Pod           `json:"pods"`   // of the API server; those of a mirror name their static pod by its file
	Node   string             `json:"node"`   // "", "there", "deleting"
	Ending []string           `json:"ending"` // namespace/name of static pods that are being ended
	Faults []string           `json:"faults"` // of the calls for mirrors, in their order
}

type sourcesScene struct {
	clientset.Interface
	corev1.CoreV1Interface
	corev1.PodInterface

	numbers map[string]string // uids of static pods, by their first sight
	hashes  map[types.UID]string // of mirrors, which nobody can change
	calls   []string
	faults  []string
}

func (s *sourcesScene) CoreV1() corev1.CoreV1Interface  { return s }
func (s *sourcesScene) Pods(string) corev1.PodInterface { return s }

func (s *sourcesScene) number(uid string) string {
	if len(uid) != 32 {
		return uid
	}
	if _, ok := s.numbers[uid]; !ok {
		s.numbers[uid] = "static-" + strconv.Itoa(len(s.numbers))
	}
	return s.numbers[uid]
}

func (s *sourcesScene) fault() error {
	if len(s.faults) == 0 {
		return nil
	}
	fault := s.faults[0]
	s.faults = s.faults[1:]
	group := schema.GroupResource{Resource: "pods"}
	switch fault {
	case "gone":
		return apierrors.NewNotFound(group, "p")
	case "conflict":
		return apierrors.NewConflict(group, "p", errors.New("another uid"))
	case "away":
		return apierrors.NewInternalError(errors.New("away"))
	}
	return nil
}

func (s *sourcesScene) Create(_ context.Context, pod *v1.Pod, _ metav1.CreateOptions) (*v1.Pod, error) {
	owner := pod.OwnerReferences[0]
	s.calls = append(s.calls, fmt.Sprintf("create %s/%s %s of %s %s %v", pod.Namespace, pod.Name,
		s.number(pod.Annotations[kubetypes.ConfigMirrorAnnotationKey]), owner.Kind, owner.UID, *owner.Controller))
	return pod, s.fault()
}

func (s *sourcesScene) Delete(_ context.Context, name string, options metav1.DeleteOptions) error {
	s.calls = append(s.calls, fmt.Sprintf("delete %s in %d", name, *options.GracePeriodSeconds))
	return s.fault()
}

// AnswerSources takes the steps of a history and tells what is known after each of them.
func AnswerSources(raw json.RawMessage) (any, error) {
	var given sourcesHistory
	if err := json.Unmarshal(raw, &given); err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "readygate-manifests-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "manifests")
	ctx := context.Background()
	scene := &sourcesScene{numbers: map[string]string{}, hashes: map[types.UID]string{}}
	nodes := &nodeServer{}
	workers := &podWorkers{}
	kl := &Kubelet{
		nodeName:   thisNode,
		kubeClient: scene,
		nodeLister: lister{nodeServer: nodes},
		podManager: kubepod.NewBasicPodManager(),
	}
	kl.mirrorPodClient = kubepod.NewBasicMirrorClient(scene, thisNode, lister{nodeServer: nodes})
	sources := config.NewSources(path, thisNode)
	answers := []any{}
	for _, step := range given.Steps {
		if err := step.write(path, sources); err != nil {
			return nil, err
		}
		touched := map[string]bool{}
		updates, err := sources.Files(ctx)
		if err != nil {
			return nil, err
		}
		before := known(kl.podManager)
		scene.apply(kl.podManager, updates, touched)
		after := known(kl.podManager)
		for uid := range touched { // one that came and went within the step
			if before[uid] == after[uid] && !(before[uid] && updated(updates, uid)) {
				delete(touched, uid)
			}
		}
		if step.Listed {
			updates, err = sources.API(ctx, step.pods(kl.podManager, scene.hashes))
			if err != nil {
				return nil, err
			}
			scene.apply(kl.podManager, updates, touched)
		}
		nodes.node = nil
		if step.Node != "" {
			nodes.node = &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: thisNode, UID: "node-uid"}}
			if step.Node == "deleting" {
				nodes.node.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
			}
		}
		scene.calls, scene.faults = []string{}, step.Faults
		workers.startedStaticPodsByFullname = map[string]types.UID{}
		workers.podSyncStatuses = map[types.UID]*podSyncStatus{}
		for _, name := range step.Ending {
			namespace, short, _ := strings.Cut(name, "/")
			uid := types.UID(name)
			workers.startedStaticPodsByFullname[kubecontainer.BuildPodFullName(short, namespace)] = uid
			workers.podSyncStatuses[uid] = &podSyncStatus{terminatingAt: time.Unix(1, 0)}
		}
		scene.mirror(ctx, kl, workers)
		answers = append(answers, scene.known(kl.podManager, touched))
	}
	return answers, nil
}

func known(manager kubepod.Manager) map[string]bool {
	found := map[string]bool{}
	for _, pod := range manager.GetPods() {
		found[string(pod.UID)] = true
	}
	return found
}

func updated(updates []kubetypes.PodUpdate, uid string) bool {
	for _, update := range updates {
		for _, pod := range update.Pods {
			if update.Op == kubetypes.UPDATE && string(pod.UID) == uid {
				return true
			}
		}
	}
	return false
}

func (step sourcesStep) write(path string, sources *config.Sources) error {
	if step.Gone {
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	} else if err := os.MkdirAll(path, 0o755); err != nil {
		return err
	}
	names := make([]string, 0, len(step.Files))
	for name := range step.Files {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		if step.Gone {
			continue
		}
		file, content, op := filepath.Join(path, name), step.Files[name], fsnotify.Write
		if content == nil {
			op = fsnotify.Remove
			if err := os.Remove(file); err != nil && !os.IsNotExist(err) {
				return err
			}
		} else if err := os.WriteFile(file, []byte(*content), 0o644); err != nil {
			return err
		}
		if err := sources.Event(file, op); err != nil {
			return err
		}
	}
	if step.Scan || step.Gone {
		sources.List(at(step.Wall))
	}
	return nil
}

// A mirror's hash `@` is that of the static pod of its name.
func (step sourcesStep) pods(manager kubepod.Manager, hashes map[types.UID]string) []*v1.Pod {
	found := []*v1.Pod{}
	for i := range step.Pods {
		pod := step.Pods[i].DeepCopy()
		if hash, ok := pod.Annotations[kubetypes.ConfigMirrorAnnotationKey]; ok && hash == "@" {
			if static, ok := manager.GetPodByName(pod.Namespace, pod.Name); ok && hashes[pod.UID] == "" {
				hashes[pod.UID] = string(static.UID)
			}
			if hashes[pod.UID] == "" {
				hashes[pod.UID] = hash
			}
			pod.Annotations[kubetypes.ConfigMirrorAnnotationKey] = hashes[pod.UID]
		}
		found = append(found, pod)
	}
	return found
}

// As the HandlePod functions do, without workers and admission.
func (s *sourcesScene) apply(manager kubepod.Manager, updates []kubetypes.PodUpdate, touched map[string]bool) {
	for _, update := range updates {
		for _, pod := range update.Pods {
			switch update.Op {
			case kubetypes.REMOVE:
				manager.RemovePod(pod)
			case kubetypes.ADD:
				manager.AddPod(pod)
			default:
				manager.UpdatePod(pod)
			}
			concerns := update.Op != kubetypes.RECONCILE || status.NeedToReconcilePodReadiness(pod)
			if concerns && !kubetypes.IsMirrorPod(pod) {
				touched[string(pod.UID)] = true
			}
		}
	}
}

func (s *sourcesScene) mirror(ctx context.Context, kl *Kubelet, workers *podWorkers) {
	pods := kl.podManager.GetPods()
	byName(pods)
	for _, pod := range pods {
		mirror, _ := kl.podManager.GetMirrorPodByPod(pod)
		kl.tryReconcileMirrorPods(ctx, pod, mirror)
	}
	_, _, orphans := kl.podManager.GetPodsAndMirrorPods()
	sort.Strings(orphans)
	for _, name := range orphans {
		if !workers.IsPodForMirrorPodTerminatingByFullName(name) {
			_, _ = kl.mirrorPodClient.DeleteMirrorPod(ctx, name, nil)
		}
	}
}

func (s *sourcesScene) known(manager kubepod.Manager, touched map[string]bool) any {
	pods, mirrors, _ := manager.GetPodsAndMirrorPods()
	byName(pods)
	found, resolved := map[string]any{}, map[string]any{}
	for _, pod := range pods {
		uid := s.number(string(pod.UID))
		found[uid] = s.shown(pod)
		resolved[uid] = s.number(string(manager.TranslatePodUID(pod.UID)))
	}
	toMirror, _ := manager.GetUIDTranslations()
	statuses := map[string]string{}
	for uid, mirror := range toMirror {
		if _, ok := manager.GetPodByUID(types.UID(uid)); ok {
			statuses[s.number(string(uid))] = string(mirror)
		}
	}
	for _, mirror := range mirrors {
		resolved[string(mirror.UID)] = s.number(string(manager.TranslatePodUID(mirror.UID)))
	}
	uids := []string{}
	for uid := range touched {
		uids = append(uids, s.number(uid))
	}
	sort.Strings(uids)
	return map[string]any{"pods": found, "resolved": resolved, "statuses": statuses, "touched": uids, "calls": s.calls}
}

func byName(pods []*v1.Pod) {
	name := func(pod *v1.Pod) string { return pod.Namespace + "/" + pod.Name }
	sort.Slice(pods, func(i, j int) bool { return name(pods[i]) < name(pods[j]) })
}

func (s *sourcesScene) shown(pod *v1.Pod) any {
	annotations := map[string]string{}
	for key, value := range pod.Annotations {
		own := key == kubetypes.ConfigSourceAnnotationKey && !kubetypes.IsStaticPod(pod)
		if key != kubetypes.ConfigFirstSeenAnnotationKey && !own {
			annotations[key] = s.number(value)
		}
	}
	names := []string{}
	for _, container := range pod.Spec.Containers {
		names = append(names, container.Name+" "+container.Image)
	}
	labels := pod.Labels
	if labels == nil {
		labels = map[string]string{}
	}
	return map[string]any{
		"name": pod.Namespace + "/" + pod.Name, "node": pod.Spec.NodeName, "annotations": annotations, "labels": labels,
		"containers": names, "policy": pod.Spec.RestartPolicy, "grace": pod.Spec.TerminationGracePeriodSeconds,
		"hostNetwork": pod.Spec.HostNetwork, "static": kubetypes.IsStaticPod(pod),
		"ends": pod.DeletionTimestamp != nil,
	}
}
