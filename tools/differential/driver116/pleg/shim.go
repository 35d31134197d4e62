// What 1.16's generic PLEG makes of a runtime of a history's making.
package pleg

import (
	"encoding/json"
	"errors"
	"sort"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/clock"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1alpha2"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	podcache "readygate.dev/testbed/kube/podcache"
)

// plegChannelCapacity of pkg/kubelet/kubelet.go.
const capacity = 1000

type history struct {
	Room  *int   `json:"room"` // in the channel of events; none: as a kubelet has it
	Steps []step `json:"steps"`
}

// Pods: what is listed from now on, where it is set. Inspected: what the status of a pod says in its place.
type step struct {
	Op        string          `json:"op"` // relist, wait
	Wall      float64         `json:"wall"`
	Pods      *map[string]pod `json:"pods"`
	Inspected map[string]pod  `json:"inspected"`
	NoList    bool            `json:"noList"`   // lists fail in this step
	NoStatus  []string        `json:"noStatus"` // so do the statuses of these
	Keep      bool            `json:"keep"`     // the events of this step stay in the channel
	UID       string          `json:"uid"`
	Since     float64         `json:"since"` // wait
}

// In the order of the runtime: ids with their states.
type pod struct {
	Containers [][2]string `json:"c"`
	Sandboxes  [][2]string `json:"s"`
	IP         string      `json:"ip"`
}

type entry struct {
	Error bool `json:"error"`
	Pod   pod  `json:"pod"`
}

type answered struct {
	Events    [][3]string      `json:"events"`
	Cache     map[string]entry `json:"cache"`
	Freed     map[string]entry `json:"freed"` // by the number of the step that began to wait
	Inspected []string         `json:"inspected"`
	Marked    []string         `json:"marked"`
	Unhealthy string           `json:"unhealthy"`
	Discarded int              `json:"discarded,omitempty"` // events without room, since the first step
}

// Put in for the counter of discarded events.
var discarded int

func at(seconds float64) time.Time { return time.UnixMilli(int64(seconds * 1000)).UTC() }

// Put around the pods of which a relist has events: upstream's order is by chance.
func inOrder(events map[types.UID][]*PodLifecycleEvent) []types.UID {
	uids := make([]types.UID, 0, len(events))
	for uid := range events {
		uids = append(uids, uid)
	}
	sort.Slice(uids, func(i, j int) bool { return uids[i] < uids[j] })
	return uids
}

var errAway = errors.New("away")

type fake struct {
	kubecontainer.Runtime
	pods      map[string]pod
	step      *step
	inspected []string
}

func (f *fake) GetPods(bool) ([]*kubecontainer.Pod, error) {
	if f.step.NoList {
		return nil, errAway
	}
	made := []*kubecontainer.Pod{}
	for uid, given := range f.pods {
		one := &kubecontainer.Pod{ID: types.UID(uid)}
		for _, c := range given.Containers {
			one.Containers = append(one.Containers, container(c))
		}
		for _, s := range given.Sandboxes {
			one.Sandboxes = append(one.Sandboxes, container(s))
		}
		made = append(made, one)
	}
	return made, nil
}

func container(of [2]string) *kubecontainer.Container {
	id := kubecontainer.ContainerID{Type: "test", ID: of[0]}
	return &kubecontainer.Container{ID: id, State: kubecontainer.ContainerState(of[1])}
}

// GetPodStatus of a pod that has gone is asked for once more where the last look at it failed, and gives nothing: that
// look is not told.
func (f *fake) GetPodStatus(uid types.UID, _, _ string) (*kubecontainer.PodStatus, error) {
	given, listed := f.pods[string(uid)]
	made := &kubecontainer.PodStatus{ID: uid}
	if !listed {
		return made, nil
	}
	f.inspected = append(f.inspected, string(uid))
	for _, other := range f.step.NoStatus {
		if other == string(uid) {
			return nil, errAway
		}
	}
	if other, found := f.step.Inspected[string(uid)]; found {
		given = other
	}
	for _, c := range given.Containers {
		one := container(c)
		made.ContainerStatuses = append(made.ContainerStatuses, &kubecontainer.ContainerStatus{ID: one.ID, State: one.State})
	}
	for _, s := range given.Sandboxes {
		state := runtimeapi.PodSandboxState_SANDBOX_NOTREADY
		if s[1] == string(kubecontainer.ContainerStateRunning) {
			state = runtimeapi.PodSandboxState_SANDBOX_READY
		}
		made.SandboxStatuses = append(made.SandboxStatuses, &runtimeapi.PodSandboxStatus{Id: s[0], State: state})
	}
	if given.IP != "" {
		made.IPs = []string{given.IP}
	}
	return made, nil
}

func entryOf(status *kubecontainer.PodStatus, err error) entry {
	made := entry{Error: err != nil, Pod: pod{Containers: [][2]string{}, Sandboxes: [][2]string{}}}
	if status == nil {
		return made
	}
	for _, c := range status.ContainerStatuses {
		made.Pod.Containers = append(made.Pod.Containers, [2]string{c.ID.ID, string(c.State)})
	}
	for _, s := range status.SandboxStatuses {
		state := string(kubecontainer.SandboxToContainerState(s.State))
		made.Pod.Sandboxes = append(made.Pod.Sandboxes, [2]string{s.Id, state})
	}
	if len(status.IPs) > 0 {
		made.Pod.IP = status.IPs[0]
	}
	return made
}

type scene struct {
	runtime *fake
	cache   podcache.Cache
	generic *GenericPLEG
	waiting map[string]func() (*kubecontainer.PodStatus, error, bool)
}

// Answer takes the steps and tells after each what there is to see.
func Answer(raw json.RawMessage) (any, error) {
	var given history
	if err := json.Unmarshal(raw, &given); err != nil {
		return nil, err
	}
	room, now := capacity, clock.NewFakeClock(time.Time{})
	if given.Room != nil {
		room = *given.Room
	}
	discarded = 0
	s := &scene{
		runtime: &fake{pods: map[string]pod{}},
		cache:   podcache.NewCache(),
		waiting: map[string]func() (*kubecontainer.PodStatus, error, bool){},
	}
	s.generic = NewGenericPLEG(s.runtime, room, time.Second, s.cache, now).(*GenericPLEG)
	answers := []any{}
	for index := range given.Steps {
		step := &given.Steps[index]
		now.SetTime(at(step.Wall))
		s.runtime.step, s.runtime.inspected = step, []string{}
		if step.Pods != nil {
			s.runtime.pods = *step.Pods
		}
		switch step.Op {
		case "relist":
			s.generic.relist()
		case "wait":
			s.waiting[strconv.Itoa(index)] = podcache.Wait(s.cache, types.UID(step.UID), at(step.Since))
		}
		answers = append(answers, s.tell(step))
	}
	return answers, nil
}

func (s *scene) tell(step *step) answered {
	said := answered{
		Events: [][3]string{}, Cache: map[string]entry{}, Freed: map[string]entry{}, Inspected: s.runtime.inspected,
		Marked: []string{}, Discarded: discarded,
	}
	for events := s.generic.Watch(); !step.Keep && len(events) > 0; {
		event := <-events
		id, _ := event.Data.(string)
		said.Events = append(said.Events, [3]string{string(event.ID), string(event.Type), id})
	}
	for _, uid := range []string{"p", "q", "r"} {
		// Of an empty entry there is nothing to tell.
		if made := entryOf(s.cache.Get(types.UID(uid))); made.Error || len(made.Pod.Containers)+len(made.Pod.Sandboxes) > 0 || made.Pod.IP != "" {
			said.Cache[uid] = made
		}
	}
	for uid := range s.generic.podsToReinspect {
		said.Marked = append(said.Marked, string(uid))
	}
	sort.Strings(said.Marked)
	sort.Strings(said.Inspected)
	for number, look := range s.waiting {
		if status, err, came := look(); came {
			said.Freed[number] = entryOf(status, err)
			delete(s.waiting, number)
		}
	}
	if _, err := s.generic.Healthy(); err != nil {
		said.Unhealthy = err.Error()
	}
	return said
}
