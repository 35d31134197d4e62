// What is made of the answers of a container runtime, which a history has as messages of the CRI.
package kuberuntime

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/kubernetes/pkg/kubelet/allocation/state"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/component-base/logs/logreduction"
)

// Messages are in base64. A status that is not there is of what has gone since it was listed.
type podsHistory struct {
	Sandboxes  []string          `json:"sandboxes"`
	Containers []string          `json:"containers"`
	Statuses   map[string]string `json:"statuses"` // by id, of both
	Fails      []string          `json:"fails"`    // ids whose statuses cannot be had
}

type podsRuntime struct {
	internalapi.RuntimeService
	history *podsHistory
}

func message(text string, into proto.Message) error {
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return err
	}
	return proto.Unmarshal(raw, into)
}

func (r podsRuntime) ListPodSandbox(context.Context, *runtimeapi.PodSandboxFilter) ([]*runtimeapi.PodSandbox, error) {
	var found []*runtimeapi.PodSandbox
	for _, text := range r.history.Sandboxes {
		one := &runtimeapi.PodSandbox{}
		if err := message(text, one); err != nil {
			return nil, err
		}
		found = append(found, one)
	}
	return found, nil
}

func (r podsRuntime) ListContainers(context.Context, *runtimeapi.ContainerFilter) ([]*runtimeapi.Container, error) {
	var found []*runtimeapi.Container
	for _, text := range r.history.Containers {
		one := &runtimeapi.Container{}
		if err := message(text, one); err != nil {
			return nil, err
		}
		found = append(found, one)
	}
	return found, nil
}

func (r podsRuntime) status(id string, into proto.Message) error {
	for _, failing := range r.history.Fails {
		if failing == id {
			return errors.New("away")
		}
	}
	text, found := r.history.Statuses[id]
	if !found {
		return status.Error(codes.NotFound, id)
	}
	return message(text, into)
}

func (r podsRuntime) PodSandboxStatus(_ context.Context, id string, _ bool) (*runtimeapi.PodSandboxStatusResponse, error) {
	answer := &runtimeapi.PodSandboxStatusResponse{}
	return answer, r.status(id, answer)
}

func (r podsRuntime) ContainerStatus(_ context.Context, id string, _ bool) (*runtimeapi.ContainerStatusResponse, error) {
	answer := &runtimeapi.ContainerStatusResponse{}
	return answer, r.status(id, answer)
}

type listedPod struct {
	Name       string      `json:"name"`
	Namespace  string      `json:"namespace"`
	Sandboxes  [][2]string `json:"sandboxes"` // id and state
	Containers [][5]string `json:"containers"`
	Status     any         `json:"status"` // nil: it cannot be told
}

type seenContainer struct {
	ID, Name, State, Reason, Message, Image, ImageRef string
	Created, Started, Finished                        *float64
	ExitCode, Restarts                                int
}

type seenSandbox struct {
	ID      string
	Ready   bool
	Host    bool
	Attempt uint32
}

type seenPod struct {
	IP         string
	Sandboxes  []seenSandbox
	Containers []seenContainer
	Active     []string
}

func since(at time.Time) *float64 {
	if at.IsZero() {
		return nil
	}
	seconds := float64(at.UnixNano()) / 1e9
	return &seconds
}

// AnswerPods lists all pods, and asks for the status of each.
func AnswerPods(raw json.RawMessage) (any, error) {
	given := &podsHistory{}
	if err := json.Unmarshal(raw, given); err != nil {
		return nil, err
	}
	m := &kubeGenericRuntimeManager{
		runtimeName:    "r",
		runtimeService: podsRuntime{history: given},
		actuatedState:  state.NewStateMemory(nil),
		logReduction:   logreduction.NewLogReduction(time.Minute),
	}
	ctx := context.Background()
	pods, err := m.GetPods(ctx, true)
	if err != nil {
		return nil, err
	}
	said := map[string]listedPod{}
	for _, pod := range pods {
		one := listedPod{Name: pod.Name, Namespace: pod.Namespace, Sandboxes: [][2]string{}, Containers: [][5]string{}}
		for _, s := range pod.Sandboxes {
			one.Sandboxes = append(one.Sandboxes, [2]string{s.ID.String(), string(s.State)})
		}
		for _, c := range pod.Containers {
			one.Containers = append(one.Containers, [5]string{c.ID.String(), c.Name, string(c.State), c.Image, c.PodSandboxID})
		}
		if found, err := m.GetPodStatus(ctx, pod); err == nil {
			one.Status = seen(found)
		}
		said[string(pod.ID)] = one
	}
	return said, nil
}

func seen(found *kubecontainer.PodStatus) seenPod {
	said := seenPod{Sandboxes: []seenSandbox{}, Containers: []seenContainer{}, Active: []string{}}
	if len(found.IPs) > 0 {
		said.IP = found.IPs[0]
	}
	for _, s := range found.SandboxStatuses {
		ready := s.State == runtimeapi.PodSandboxState_SANDBOX_READY
		host := s.GetLinux().GetNamespaces().GetOptions().GetNetwork() == runtimeapi.NamespaceMode_NODE
		said.Sandboxes = append(said.Sandboxes, seenSandbox{s.Id, ready, host, s.Metadata.GetAttempt()})
	}
	for _, c := range found.ContainerStatuses {
		said.Containers = append(said.Containers, seenContainer{
			c.ID.String(), c.Name, string(c.State), c.Reason, c.Message, c.Image, c.ImageRef,
			since(c.CreatedAt), since(c.StartedAt), since(c.FinishedAt), c.ExitCode, c.RestartCount,
		})
	}
	for _, c := range found.ActiveContainerStatuses {
		said.Active = append(said.Active, c.ID.String())
	}
	return said
}
