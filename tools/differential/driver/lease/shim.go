// Renewals of a node's Lease, one after the other, against an API server of a history's making.
package lease

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientset "k8s.io/client-go/kubernetes"
	coordclientset "k8s.io/client-go/kubernetes/typed/coordination/v1"
	coreclientset "k8s.io/client-go/kubernetes/typed/core/v1"
	nodelease "k8s.io/kubernetes/pkg/kubelet/util"
	testingclock "k8s.io/utils/clock/testing"
)

const nodeName = "n"

// Sleeps of a renewal after which the history goes on without it.
const sleeps = 8

type history struct {
	DurationS int32  `json:"durationS"`
	Steps     []step `json:"steps"`
}

// Lease and NodeUID: what the server holds from now on, where they are set. Faults: of the next calls of a kind.
type step struct {
	Wall    float64             `json:"wall"`
	Lease   json.RawMessage     `json:"lease"`
	NodeUID *string             `json:"nodeUID"`
	Faults  map[string][]string `json:"faults"`
}

type server struct {
	lease   *coordinationv1.Lease
	nodeUID string
	version int
	faults  map[string][]string
	asked   []string
}

var (
	pauses []float64
	over   bool // it has been stopped: what it still asks for is not told
	cancel context.CancelFunc
)

// Put in for time.After: nobody waits, and who would wait too often is stopped.
func after(pause time.Duration) <-chan time.Time {
	fired := make(chan time.Time, 1)
	if len(pauses) == sleeps {
		over = true
		cancel()
		return fired
	}
	pauses = append(pauses, pause.Seconds())
	fired <- time.Time{}
	return fired
}

func (s *server) fault(kind string) error {
	if !over {
		s.asked = append(s.asked, kind)
	}
	given := s.faults[kind]
	if len(given) == 0 {
		return nil
	}
	if given[0] != "always" {
		s.faults[kind] = given[1:]
	}
	resource := schema.GroupResource{Resource: kind}
	switch given[0] {
	case "ok":
		return nil
	case "conflict":
		return apierrors.NewConflict(resource, nodeName, nil)
	case "exists":
		return apierrors.NewAlreadyExists(resource, nodeName)
	case "missing":
		return apierrors.NewNotFound(resource, nodeName)
	default:
		return apierrors.NewInternalError(context.DeadlineExceeded)
	}
}

func (s *server) put(lease *coordinationv1.Lease) *coordinationv1.Lease {
	s.version++
	s.lease = lease.DeepCopy()
	s.lease.ResourceVersion = strconv.Itoa(s.version)
	return s.lease.DeepCopy()
}

type leases struct {
	coordclientset.LeaseInterface
	*server
}

func (l leases) Get(context.Context, string, metav1.GetOptions) (*coordinationv1.Lease, error) {
	if err := l.fault("get"); err != nil {
		return nil, err
	}
	if l.lease == nil {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "leases"}, nodeName)
	}
	return l.lease.DeepCopy(), nil
}

func (l leases) Create(_ context.Context, lease *coordinationv1.Lease, _ metav1.CreateOptions) (*coordinationv1.Lease, error) {
	if err := l.fault("create"); err != nil {
		return nil, err
	}
	if l.lease != nil {
		return nil, apierrors.NewAlreadyExists(schema.GroupResource{Resource: "leases"}, nodeName)
	}
	return l.put(lease), nil
}

func (l leases) Update(_ context.Context, lease *coordinationv1.Lease, _ metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	if err := l.fault("update"); err != nil {
		return nil, err
	}
	if l.lease == nil {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "leases"}, nodeName)
	}
	if lease.ResourceVersion == "" { // a Lease takes no update without it
		return nil, apierrors.NewBadRequest("metadata.resourceVersion: must be specified for an update")
	}
	if lease.ResourceVersion != l.lease.ResourceVersion {
		return nil, apierrors.NewConflict(schema.GroupResource{Resource: "leases"}, nodeName, nil)
	}
	return l.put(lease), nil
}

type nodes struct {
	coreclientset.NodeInterface
	*server
}

func (n nodes) Get(context.Context, string, metav1.GetOptions) (*corev1.Node, error) {
	if n.nodeUID == "" {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "nodes"}, nodeName)
	}
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName, UID: types.UID(n.nodeUID)}}, nil
}

type client struct {
	clientset.Interface
	*server
}

type core struct {
	coreclientset.CoreV1Interface
	*server
}

type coordination struct {
	coordclientset.CoordinationV1Interface
	*server
}

func (c client) CoreV1() coreclientset.CoreV1Interface { return core{server: c.server} }
func (c client) CoordinationV1() coordclientset.CoordinationV1Interface {
	return coordination{server: c.server}
}
func (c core) Nodes() coreclientset.NodeInterface { return nodes{server: c.server} }
func (c coordination) Leases(string) coordclientset.LeaseInterface {
	return leases{server: c.server}
}

// Answer renews once a step and tells what the server holds then.
func Answer(raw json.RawMessage) (any, error) {
	var given history
	if err := json.Unmarshal(raw, &given); err != nil {
		return nil, err
	}
	held := &server{}
	api := client{server: held}
	clock := testingclock.NewFakeClock(time.Time{})
	owner := nodelease.SetNodeOwnerFunc(context.Background(), api, nodeName)
	c := NewController(clock, api, nodeName, given.DurationS, nil, 0, nodeName, corev1.NamespaceNodeLease, owner).(*controller)
	answers := []any{}
	for _, step := range given.Steps {
		clock.SetTime(time.UnixMilli(int64(step.Wall * 1000)).UTC())
		if step.NodeUID != nil {
			held.nodeUID = *step.NodeUID
		}
		switch string(step.Lease) {
		case "":
		case `"deleted"`:
			held.lease = nil
		default:
			var lease coordinationv1.Lease
			if err := json.Unmarshal(step.Lease, &lease); err != nil {
				return nil, err
			}
			held.put(&lease)
		}
		held.faults, held.asked = step.Faults, []string{}
		ctx, stop := context.WithCancel(context.Background())
		pauses, over, cancel = []float64{}, false, stop
		c.sync(ctx)
		stop()
		answers = append(answers, map[string]any{"lease": held.lease.DeepCopy(), "asked": held.asked, "pauses": pauses})
	}
	return answers, nil
}
