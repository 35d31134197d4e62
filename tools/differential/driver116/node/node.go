// Registrations and reports of a node's status in 1.16, against an API server of a history's making: functions that are
// cut out of upstream's file, on a kubelet that has nothing else, and its setters.
package kubelet

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sort"
	"sync"
	"time"

	cadvisorapi "github.com/google/cadvisor/info/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/clock"
	clientset "k8s.io/client-go/kubernetes"
	cloudprovider "k8s.io/cloud-provider"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/kubelet/cm"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/nodestatus"
	"k8s.io/kubernetes/pkg/kubelet/util/sliceutils"
)

const (
	thisNode              = "n"
	nodeStatusUpdateRetry = 5 // of pkg/kubelet/kubelet.go
)

// Kubelet has what the functions ask for.
type Kubelet struct {
	nodeName                     types.NodeName
	hostname                     string
	nodeLabels                   map[string]string
	kubeClient, heartbeatClient  clientset.Interface
	clock                        clock.Clock
	nodeStatusReportFrequency    time.Duration
	lastStatusReportTime         time.Time
	containerManager             manager
	volumeManager                manager
	enableControllerAttachDetach bool
	keepTerminatedPodVolumes     bool
	registerSchedulable          bool
	registerWithTaints           []core.Taint
	externalCloudProvider        bool
	providerID                   string
	cloud                        cloudprovider.Interface
	onRepeatedHeartbeatFailure   func()
	setNodeStatusFuncs           []func(*v1.Node) error
	lastObservedNodeAddressesMux sync.RWMutex
	lastObservedNodeAddresses    []v1.NodeAddress
}

func (kl *Kubelet) providerRequiresNetworkingConfiguration() bool { return false }

// No history has blocks of pods.
func (kl *Kubelet) updatePodCIDR(string) (bool, error) { return false, nil }

type manager struct{}

func (manager) ShouldResetExtendedResourceCapacity() bool        { return false }
func (manager) MarkVolumesAsReportedInUse([]v1.UniqueVolumeName) {}

type history struct {
	Labels   map[string]string          `json:"labels"`
	Address  string                     `json:"address"`
	CPU      int                        `json:"cpu"`
	Memory   uint64                     `json:"memory"`
	Pods     int                        `json:"pods"`
	Machine  string                     `json:"machine"`
	UUID     string                     `json:"uuid"`    // of the system
	Storage  int64                      `json:"storage"` // of the file system of volumes in bytes; 0: it cannot be measured
	Attaches bool                       `json:"attaches"`
	Port     int32                      `json:"port"`
	Soft     string                     `json:"soft"`
	Taints   []core.Taint               `json:"taints"` // of a Node that is created
	System   map[v1.ResourceName]string `json:"system"` // what pods may not have
	Steps    []step                     `json:"steps"`
}

// Node: what the server holds from now on, where it is set. Faults: of the next calls of a kind.
type step struct {
	Op     string              `json:"op"` // register, report
	Wall   float64             `json:"wall"`
	Node   *v1.Node            `json:"node"`
	Causes map[string]string   `json:"causes"` // why the node is not ready, by who finds it
	Faults map[string][]string `json:"faults"`
	Info   json.RawMessage     `json:"info"` // fields of nodeInfo that somebody else has written
	Found  found               `json:"found"`
}

// What a runtime and the managers of volumes and evictions know; Volumes nil: they do not yet.
type found struct {
	Images []struct {
		ID      string   `json:"id"`
		Size    int64    `json:"size"`
		Digests []string `json:"digests"`
		Tags    []string `json:"tags"`
	} `json:"images"`
	Volumes   []v1.UniqueVolumeName `json:"volumes"`
	Pressures []string              `json:"pressures"`
}

func (f found) images() ([]kubecontainer.Image, error) {
	var images []kubecontainer.Image
	for _, i := range f.Images {
		images = append(images, kubecontainer.Image{ID: i.ID, Size: i.Size, RepoDigests: i.Digests, RepoTags: i.Tags})
	}
	sort.Sort(sliceutils.ByImageSize(images)) // as the image manager gives them
	return images, nil
}

// Answer takes the steps of a history and tells what the server holds after each of them.
func Answer(raw json.RawMessage) (any, error) {
	var given history
	if err := json.Unmarshal(raw, &given); err != nil {
		return nil, err
	}
	held, now := &server{}, &step{}
	api, fake := client{server: held}, clock.NewFakeClock(time.Time{})
	kl := &Kubelet{
		nodeName:                     thisNode,
		hostname:                     thisNode,
		nodeLabels:                   given.Labels,
		kubeClient:                   api,
		heartbeatClient:              api,
		clock:                        fake,
		nodeStatusReportFrequency:    5 * time.Minute,
		enableControllerAttachDetach: given.Attaches,
		registerSchedulable:          true,
		registerWithTaints:           given.Taints,
	}
	kl.setNodeStatusFuncs = given.setters(fake.Now, now)
	answers := []any{}
	for _, *now = range given.Steps {
		fake.SetTime(time.UnixMilli(int64(now.Wall * 1000)).UTC())
		if now.Node != nil {
			held.node = now.Node.DeepCopy()
		}
		if now.Info != nil && held.node != nil {
			held.node = held.node.DeepCopy()
			if err := json.Unmarshal(now.Info, &held.node.Status.NodeInfo); err != nil {
				return nil, err
			}
		}
		held.faults, held.patches = now.Faults, 0
		said := false
		switch now.Op {
		case "register":
			node, err := kl.initialNode()
			if err != nil {
				return nil, err
			}
			said = kl.tryRegisterWithAPIServer(node)
		case "report":
			said = kl.updateNodeStatus() == nil
		default:
			return nil, fmt.Errorf("no step %q", now.Op)
		}
		var written *v1.Node // where nothing was written it is as the history made it
		if held.patches > 0 || len(answers) == 0 {
			written = held.node
		}
		answers = append(answers, map[string]any{"said": said, "writes": held.patches, "node": written, "cidrs": 0})
	}
	return append(answers, map[string]any{"cidrs": []string{}}), nil
}

func (h history) setters(now func() time.Time, step *step) []func(*v1.Node) error {
	machine := &cadvisorapi.MachineInfo{NumCores: h.CPU, MemoryCapacity: h.Memory, MachineID: h.Machine, SystemUUID: h.UUID, BootID: "boot"}
	reserved, storage := v1.ResourceList{}, v1.ResourceList{}
	for name, quantity := range h.System {
		reserved[name] = resource.MustParse(quantity)
	}
	if h.Storage > 0 {
		storage[v1.ResourceEphemeralStorage] = *resource.NewQuantity(h.Storage, resource.BinarySI)
	}
	managed := cm.Status{}
	if h.Soft != "" {
		managed.SoftRequirements = errors.New(h.Soft)
	}
	under := func(kind string) func() bool {
		return func() bool {
			for _, one := range step.Found.Pressures {
				if one == kind {
					return true
				}
			}
			return false
		}
	}
	cause := func(kind string) func() error {
		return func() error {
			if text := step.Causes[kind]; text != "" {
				return errors.New(text)
			}
			return nil
		}
	}
	record := func(string, string) {}
	setters := []nodestatus.Setter{
		nodestatus.NodeAddress(net.ParseIP(h.Address), func(net.IP) error { return nil }, thisNode, false, false, nil, nil),
		nodestatus.MachineInfo(thisNode, h.Pods, 0, func() (*cadvisorapi.MachineInfo, error) { return machine, nil },
			func() v1.ResourceList { return storage }, func() (v1.ResourceList, v1.ResourceList, []string) { return nil, nil, nil },
			func() v1.ResourceList { return reserved }, func(string, string, string) {}),
		nodestatus.VersionInfo(func() (*cadvisorapi.VersionInfo, error) {
			return &cadvisorapi.VersionInfo{KernelVersion: "6.1", ContainerOsVersion: "os"}, nil
		}, func() string { return "readygate-process" }, func() (kubecontainer.Version, error) { return one{}, nil }),
		nodestatus.DaemonEndpoints(&v1.NodeDaemonEndpoints{KubeletEndpoint: v1.DaemonEndpoint{Port: h.Port}}),
		nodestatus.Images(50, func() ([]kubecontainer.Image, error) { return step.Found.images() }),
		nodestatus.GoRuntime(),
		nodestatus.MemoryPressureCondition(now, under("MemoryPressure"), record),
		nodestatus.DiskPressureCondition(now, under("DiskPressure"), record),
		nodestatus.PIDPressureCondition(now, under("PIDPressure"), record),
		nodestatus.ReadyCondition(now, cause("runtime"), cause("network"), cause("storage"), nil,
			func() cm.Status { return managed }, record),
		nodestatus.VolumesInUse(func() bool { return step.Found.Volumes != nil },
			func() []v1.UniqueVolumeName { return step.Found.Volumes }),
	}
	made := []func(*v1.Node) error{}
	for _, setter := range setters {
		made = append(made, setter)
	}
	return made
}

type one struct{}

func (one) String() string              { return "1" }
func (one) Compare(string) (int, error) { return 0, nil }
