// What the generic PLEG, and the evented one, make of a runtime of a history's making.
package pleg

import (
	"context"
	"encoding/json"
	"errors"
	"sort"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"
	"readygate.dev/testbed/kube/mended"
	podcache "readygate.dev/testbed/kube/podcache"
)

type history struct {
	Evented bool   `json:"evented"` // the feature gate is on, and events come
	Room    *int   `json:"room"`    // in the channel of events; none: as a kubelet has it
	Steps   []step `json:"steps"`
}

// Pods: what is listed from now on, where it is set. Inspected: what the status of a pod says in its place.
type step struct {
	Op        string          `json:"op"` // relist, turns, request, reinspect, wait, event
	Wall      float64         `json:"wall"`
	Pods      *map[string]pod `json:"pods"`
	Inspected map[string]pod  `json:"inspected"`
	NoList    bool            `json:"noList"`   // lists fail in this step
	NoStatus  []string        `json:"noStatus"` // so do the statuses of these
	Keep      bool            `json:"keep"`     // nobody takes the events of this step
	UID       string          `json:"uid"`
	Times     int             `json:"times"` // request
	Since     float64         `json:"since"` // wait
	Kind      string          `json:"kind"`  // event
	ID        string          `json:"id"`    // event
	At        float64         `json:"at"`    // event: when it happened
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
	Full      string           `json:"full,omitempty"`      // health of the channel of events, before they are taken
	Discarded int              `json:"discarded,omitempty"` // events without room, since the first step
}

// Capacity of a kubelet's channel of events.
var Capacity int

// Put in for the counter of discarded events.
var discarded int

var wall time.Time

// Put in for time.Now.
func wallNow() time.Time { return wall }

func at(seconds float64) time.Time { return time.UnixMilli(int64(seconds * 1000)).UTC() }

// Put around the records that a relist goes through: upstream's order is by chance.
func inOrder(records podRecords) []types.UID {
	uids := make([]types.UID, 0, len(records))
	for uid := range records {
		uids = append(uids, uid)
	}
	sort.Slice(uids, func(i, j int) bool { return uids[i] < uids[j] })
	return uids
}

type alarm struct {
	due   time.Time
	fired chan time.Time
}

func (a *alarm) C() <-chan time.Time { return a.fired }
func (a *alarm) Stop() bool          { return true }

func (a *alarm) Reset(after time.Duration) bool {
	a.due = wall.Add(after)
	return true
}

func (a *alarm) look() bool {
	if a.due.After(wall) {
		return false
	}
	select {
	case a.fired <- wall:
	default:
	}
	return true
}

var _ clock.Timer = &alarm{}

var errAway = errors.New("away")

type fake struct {
	kubecontainer.Runtime
	pods      map[string]pod
	step      *step
	inspected []string
}

func (f *fake) listed(uid string) *kubecontainer.Pod {
	made := &kubecontainer.Pod{ID: types.UID(uid), Timestamp: wall}
	given := f.pods[uid]
	for _, c := range given.Containers {
		made.Containers = append(made.Containers, container(c))
	}
	for _, s := range given.Sandboxes {
		made.Sandboxes = append(made.Sandboxes, container(s))
	}
	return made
}

func container(of [2]string) *kubecontainer.Container {
	return &kubecontainer.Container{
		ID: kubecontainer.ContainerID{Type: "test", ID: of[0]}, State: kubecontainer.State(of[1]),
	}
}

func (f *fake) GetPods(context.Context, bool) ([]*kubecontainer.Pod, error) {
	if f.step.NoList {
		return nil, errAway
	}
	made := []*kubecontainer.Pod{}
	for uid := range f.pods {
		made = append(made, f.listed(uid))
	}
	return made, nil
}

func (f *fake) GetPod(_ context.Context, uid types.UID) (*kubecontainer.Pod, error) {
	if f.step.NoList {
		return nil, errAway
	}
	if _, known := f.pods[string(uid)]; !known {
		return nil, kubecontainer.ErrPodNotFound
	}
	return f.listed(string(uid)), nil
}

func (f *fake) status(uid types.UID, when time.Time) *kubecontainer.PodStatus {
	made := &kubecontainer.PodStatus{ID: uid, TimeStamp: when}
	given, other := f.step.Inspected[string(uid)]
	if !other {
		given = f.pods[string(uid)]
	}
	for _, c := range given.Containers {
		made.ContainerStatuses = append(made.ContainerStatuses, &kubecontainer.Status{
			ID: kubecontainer.ContainerID{Type: "test", ID: c[0]}, State: kubecontainer.State(c[1]),
		})
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
	return made
}

func (f *fake) GetPodStatus(_ context.Context, of *kubecontainer.Pod) (*kubecontainer.PodStatus, error) {
	f.inspected = append(f.inspected, string(of.ID))
	for _, uid := range f.step.NoStatus {
		if uid == string(of.ID) {
			return nil, errAway
		}
	}
	return f.status(of.ID, wall), nil
}

func (f *fake) GeneratePodStatus(event *runtimeapi.ContainerEventResponse) *kubecontainer.PodStatus {
	return f.status(types.UID(event.PodSandboxStatus.Metadata.Uid), time.Unix(0, event.CreatedAt))
}

// Put in where something was removed: a container goes from the cache at once.
func (e *EventedPLEG) removed(event *runtimeapi.ContainerEventResponse, uid types.UID, status *kubecontainer.PodStatus) {
	if !mended.On("fix_removed_container_stays_known") {
		return
	}
	for _, sandbox := range status.SandboxStatuses {
		if sandbox.Id == event.ContainerId {
			return // upstream's own
		}
	}
	if len(status.SandboxStatuses)+len(status.ContainerStatuses) == 0 {
		e.cache.Delete(uid)
	} else {
		e.cache.Set(uid, status, nil, time.Unix(0, event.GetCreatedAt()))
	}
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
		state := kubecontainer.ContainerStateExited
		if s.State == runtimeapi.PodSandboxState_SANDBOX_READY {
			state = kubecontainer.ContainerStateRunning
		}
		made.Pod.Sandboxes = append(made.Pod.Sandboxes, [2]string{s.Id, string(state)})
	}
	if len(status.IPs) > 0 {
		made.Pod.IP = status.IPs[0]
	}
	return made
}

var kinds = map[string]runtimeapi.ContainerEventType{
	"created": runtimeapi.ContainerEventType_CONTAINER_CREATED_EVENT,
	"started": runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT,
	"stopped": runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT,
	"deleted": runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT,
}

type scene struct {
	runtime *fake
	cache   podcache.Cache
	generic *GenericPLEG
	evented *EventedPLEG
	timer   *alarm
	events  chan *PodLifecycleEvent
	waiting map[string]func() (*kubecontainer.PodStatus, error, bool)
}

// Answer takes the steps and tells after each what there is to see.
func Answer(raw json.RawMessage) (any, error) {
	var given history
	if err := json.Unmarshal(raw, &given); err != nil {
		return nil, err
	}
	if given.Evented {
		if err := withEvents(true); err != nil {
			return nil, err
		}
		defer withEvents(false)
	}
	room := Capacity
	if given.Room != nil {
		room = *given.Room
	}
	discarded = 0
	now := testingclock.NewFakeClock(time.Time{})
	s := &scene{
		runtime: &fake{pods: map[string]pod{}},
		cache:   podcache.NewCache(),
		events:  make(chan *PodLifecycleEvent, room),
		waiting: map[string]func() (*kubecontainer.PodStatus, error, bool){},
		timer:   &alarm{fired: make(chan time.Time, 1)},
	}
	duration := &RelistDuration{RelistPeriod: time.Second, RelistThreshold: 3 * time.Minute}
	if given.Evented {
		duration = &RelistDuration{RelistPeriod: 300 * time.Second, RelistThreshold: 10 * time.Minute}
	}
	s.generic = NewGenericPLEG(logr.Discard(), s.runtime, s.events, duration, s.cache, now).(*GenericPLEG)
	s.generic.globalRelistTimer = s.timer
	s.generic.stopCh = make(chan struct{})
	made, err := NewEventedPLEG(logr.Discard(), s.runtime, nil, s.events, s.cache, s.generic, 5, duration, now)
	if err != nil {
		return nil, err
	}
	s.evented = made.(*EventedPLEG)
	answers := []any{}
	for index := range given.Steps {
		wall = at(given.Steps[index].Wall)
		now.SetTime(wall)
		s.take(&given.Steps[index], index)
		answers = append(answers, s.tell(&given.Steps[index]))
	}
	return answers, nil
}

func withEvents(on bool) error {
	setEventedPLEGUsage(on)
	return utilfeature.DefaultMutableFeatureGate.SetFromMap(map[string]bool{"EventedPLEG": on})
}

func (s *scene) take(step *step, number int) {
	s.runtime.step, s.runtime.inspected = step, []string{}
	if step.Pods != nil {
		s.runtime.pods = *step.Pods
	}
	uid := types.UID(step.UID)
	switch step.Op {
	case "relist":
		s.generic.Relist()
	case "turns":
		for s.timer.look() || len(s.generic.relistRequests) > 0 {
			s.generic.workerLoopIteration()
		}
	case "request":
		for range step.Times {
			s.generic.RequestRelist(uid)
		}
	case "reinspect":
		s.generic.RequestReinspect(uid)
	case "wait":
		s.waiting[strconv.Itoa(number)] = podcache.Wait(s.cache, uid, at(step.Since))
	case "event":
		one := make(chan *runtimeapi.ContainerEventResponse, 1)
		one <- &runtimeapi.ContainerEventResponse{
			ContainerId: step.ID, ContainerEventType: kinds[step.Kind], CreatedAt: at(step.At).UnixNano(),
			PodSandboxStatus: &runtimeapi.PodSandboxStatus{Metadata: &runtimeapi.PodSandboxMetadata{Uid: step.UID}},
		}
		close(one)
		s.evented.processCRIEvents(one)
	}
}

func (s *scene) tell(step *step) answered {
	said := answered{
		Events: [][3]string{}, Cache: map[string]entry{}, Freed: map[string]entry{}, Inspected: s.runtime.inspected, Marked: []string{},
		Discarded: discarded,
	}
	if _, err := s.evented.Healthy(); err != nil {
		said.Full = err.Error()
	}
	for !step.Keep && len(s.events) > 0 {
		event := <-s.events
		id, _ := event.Data.(string)
		said.Events = append(said.Events, [3]string{string(event.ID), string(event.Type), id})
	}
	for _, uid := range []string{"p", "q", "r"} {
		// Of an empty entry there is nothing to tell.
		if made := entryOf(s.cache.Get(types.UID(uid))); made.Error || len(made.Pod.Containers)+len(made.Pod.Sandboxes) > 0 || made.Pod.IP != "" {
			said.Cache[uid] = made
		}
	}
	s.generic.podsToReinspect.Range(func(uid, _ any) bool {
		said.Marked = append(said.Marked, string(uid.(types.UID)))
		return true
	})
	sort.Strings(said.Marked)
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
