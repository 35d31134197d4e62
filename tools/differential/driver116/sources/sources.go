// Pods of files and of an API server, the pod manager, and the mirrors of static pods, as in 1.16.
package sources

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strconv"

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

const thisNode = "n"

type history struct {
	Steps []step `json:"steps"`
}

type step struct {
	Files  map[string]*string `json:"files"`  // content of each that changes, null for one that goes
	Listed bool               `json:"listed"` // the API server's pods
	Pods   []v1.Pod           `json:"pods"`   // of the API server; the hash @ of a mirror is its static pod's
	Node   string             `json:"node"`   // "", "there", "deleting"
	Faults []string           `json:"faults"` // of the calls for mirrors, in their order
}

type scene struct {
	clientset.Interface
	corev1.CoreV1Interface
	corev1.PodInterface

	manager kubepod.Manager
	numbers map[string]string    // uids of static pods, by their first sight
	hashes  map[types.UID]string // of mirrors, which nobody can change
	calls   []string
	faults  []string
}

func (s *scene) CoreV1() corev1.CoreV1Interface  { return s }
func (s *scene) Pods(string) corev1.PodInterface { return s }

func (s *scene) number(uid string) string {
	if len(uid) != 32 {
		return uid
	}
	if _, ok := s.numbers[uid]; !ok {
		s.numbers[uid] = "static-" + strconv.Itoa(len(s.numbers))
	}
	return s.numbers[uid]
}

func (s *scene) fault() error {
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

func (s *scene) Create(pod *v1.Pod) (*v1.Pod, error) {
	hash := s.number(pod.Annotations[kubetypes.ConfigMirrorAnnotationKey])
	s.calls = append(s.calls, fmt.Sprintf("create %s/%s %s", pod.Namespace, pod.Name, hash))
	return pod, s.fault()
}

func (s *scene) Delete(name string, options *metav1.DeleteOptions) error {
	s.calls = append(s.calls, fmt.Sprintf("delete %s in %d", name, *options.GracePeriodSeconds))
	return s.fault()
}

// Answer takes the steps of a history and tells what is known after each of them.
func Answer(raw json.RawMessage) (any, error) {
	var given history
	if err := json.Unmarshal(raw, &given); err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "readygate-manifests-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	s := &scene{numbers: map[string]string{}, hashes: map[types.UID]string{}}
	s.manager = kubepod.NewBasicPodManager(kubepod.NewBasicMirrorClient(s), nil, nil, nil)
	sources := config.NewSources(folder, thisNode)
	answers := []any{}
	for _, step := range given.Steps {
		if err := step.write(folder); err != nil {
			return nil, err
		}
		touched := map[string]bool{}
		updates, err := sources.Files()
		if err != nil {
			return nil, err
		}
		s.apply(updates, touched)
		if step.Listed {
			if updates, err = sources.API(step.pods(s)); err != nil {
				return nil, err
			}
			s.apply(updates, touched)
		}
		s.calls, s.faults = []string{}, step.Faults
		s.mirror(step.Node == "there")
		answers = append(answers, s.known(touched))
	}
	return answers, nil
}

func (step step) write(folder string) error {
	for name, content := range step.Files {
		file := filepath.Join(folder, name)
		if content == nil {
			if err := os.Remove(file); err != nil && !os.IsNotExist(err) {
				return err
			}
		} else if err := os.WriteFile(file, []byte(*content), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (step step) pods(s *scene) []*v1.Pod {
	found := []*v1.Pod{}
	for i := range step.Pods {
		pod := step.Pods[i].DeepCopy()
		if hash, ok := pod.Annotations[kubetypes.ConfigMirrorAnnotationKey]; ok && hash == "@" {
			if static, ok := s.manager.GetPodByName(pod.Namespace, pod.Name); ok && s.hashes[pod.UID] == "" {
				s.hashes[pod.UID] = string(static.UID)
			}
			if s.hashes[pod.UID] == "" {
				s.hashes[pod.UID] = hash
			}
			pod.Annotations[kubetypes.ConfigMirrorAnnotationKey] = s.hashes[pod.UID]
		}
		found = append(found, pod)
	}
	return found
}

// As the HandlePod functions do, without workers and admission.
func (s *scene) apply(updates []kubetypes.PodUpdate, touched map[string]bool) {
	for _, update := range updates {
		for _, pod := range update.Pods {
			switch update.Op {
			case kubetypes.REMOVE:
				s.manager.DeletePod(pod)
			case kubetypes.ADD:
				s.manager.AddPod(pod)
			default:
				s.manager.UpdatePod(pod)
			}
			concerns := update.Op != kubetypes.RECONCILE || status.NeedToReconcilePodReadiness(pod)
			if concerns && !kubepod.IsMirrorPod(pod) {
				touched[string(pod.UID)] = true
			}
		}
	}
}

// What syncPod does about mirrors, which is no function of its own there, and the clean-up of orphans, in an order.
func (s *scene) mirror(registered bool) {
	pods := s.manager.GetPods()
	byName(pods)
	for _, pod := range pods {
		if !kubepod.IsStaticPod(pod) {
			continue
		}
		mirror, found := s.manager.GetMirrorPodByPod(pod)
		deleted := false
		if found && (mirror.DeletionTimestamp != nil || !s.manager.IsMirrorPodOf(mirror, pod)) {
			deleted, _ = s.manager.DeleteMirrorPod(kubecontainer.GetPodFullName(pod), &mirror.UID)
		}
		if registered && (!found || deleted) {
			_ = s.manager.CreateMirrorPod(pod)
		}
	}
	before := len(s.calls)
	s.manager.DeleteOrphanedMirrorPods()
	sort.Strings(s.calls[before:])
}

func (s *scene) known(touched map[string]bool) any {
	pods, mirrors := s.manager.GetPodsAndMirrorPods()
	byName(pods)
	found, resolved := map[string]any{}, map[string]any{}
	for _, pod := range pods {
		uid := s.number(string(pod.UID))
		found[uid] = s.shown(pod)
		resolved[uid] = s.number(string(s.manager.TranslatePodUID(pod.UID)))
	}
	toMirror, _ := s.manager.GetUIDTranslations()
	statuses := map[string]string{}
	for uid, mirror := range toMirror {
		if _, ok := s.manager.GetPodByUID(types.UID(uid)); ok {
			statuses[s.number(string(uid))] = string(mirror)
		}
	}
	for _, mirror := range mirrors {
		resolved[string(mirror.UID)] = s.number(string(s.manager.TranslatePodUID(mirror.UID)))
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

func (s *scene) shown(pod *v1.Pod) any {
	annotations, labels, names := map[string]string{}, map[string]string{}, []string{}
	for key, value := range pod.Annotations {
		own := key == kubetypes.ConfigSourceAnnotationKey && !kubepod.IsStaticPod(pod)
		if key != kubetypes.ConfigFirstSeenAnnotationKey && !own {
			annotations[key] = s.number(value)
		}
	}
	for key, value := range pod.Labels {
		labels[key] = value
	}
	for _, container := range pod.Spec.Containers {
		names = append(names, container.Name+" "+container.Image)
	}
	return map[string]any{
		"name": pod.Namespace + "/" + pod.Name, "node": pod.Spec.NodeName, "annotations": annotations, "labels": labels,
		"containers": names, "policy": pod.Spec.RestartPolicy, "grace": pod.Spec.TerminationGracePeriodSeconds,
		"hostNetwork": pod.Spec.HostNetwork, "static": kubepod.IsStaticPod(pod), "ends": pod.DeletionTimestamp != nil,
	}
}
