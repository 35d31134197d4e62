// Registrations and reports of a node's status against an API server of a history's making.
package kubelet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"sort"
	"time"

	cadvisorapi "github.com/google/cadvisor/info/v1"
	ourcm "readygate.dev/testbed/kube/cm"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/cadvisor"
	"k8s.io/kubernetes/pkg/kubelet/cm"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/eviction"
	"k8s.io/kubernetes/pkg/kubelet/nodestatus"
	"k8s.io/kubernetes/pkg/kubelet/util"
	"k8s.io/kubernetes/pkg/kubelet/util/sliceutils"
	"k8s.io/kubernetes/pkg/kubelet/volumemanager"
	testingclock "k8s.io/utils/clock/testing"
)

const thisNode = "n"

type nodeHistory struct {
	Labels  map[string]string `json:"labels"`
	Address string            `json:"address"`
	CPU     int               `json:"cpu"`
	Memory  uint64            `json:"memory"`
	Pods    int               `json:"pods"`
	Machine string            `json:"machine"`
	UUID    string            `json:"uuid"` // of the system
	Swap    uint64            `json:"swap"`
	// Declared: features of the kubelet; nil: it declares none, not even that.
	Declared []string `json:"declared"`
	// Of the file system of volumes in bytes; 0: it cannot be measured.
	Storage  int64             `json:"storage"`
	Huge     map[uint64]uint64 `json:"huge"` // pages by their size in KiB
	Attaches bool              `json:"attaches"`
	Port     int32             `json:"port"`
	Soft     string            `json:"soft"`
	Taints   []v1.Taint        `json:"taints"` // of a Node that is created
	// What pods may not have, and hard eviction thresholds.
	System map[v1.ResourceName]string `json:"system"`
	Kube   map[v1.ResourceName]string `json:"kube"`
	Hard   map[string]string          `json:"hard"`
	Steps    []nodeStep        `json:"steps"`
}

// Node: what the server holds from now on, where it is set. Faults: of the next calls of a kind.
type nodeStep struct {
	Op     string            `json:"op"` // register, report, fast
	Wall   float64           `json:"wall"`
	Random float64           `json:"random"` // 0 to 1, for what is drawn
	Node   *v1.Node          `json:"node"`
	Causes map[string]string `json:"causes"` // why the node is not ready, by who finds it
	Looked *[]struct {       // what the runtime answers before this step, if it is asked
		Type    string `json:"type"`
		Status  bool   `json:"status"`
		Reason  string `json:"reason"`
		Message string `json:"message"`
	} `json:"looked"`
	Faults map[string][]string `json:"faults"`
	Info   json.RawMessage     `json:"info"`   // fields of nodeInfo that somebody else has written
	Status json.RawMessage     `json:"status"` // the same of the status itself
	Found  nodeFound           `json:"found"`
	CIDRs  []string            `json:"cidrs"`  // of pods, which somebody else has written
	Away   bool                `json:"away"`   // the runtime takes no addresses of pods
}

// What a runtime and the managers of volumes and evictions know; Volumes nil: they do not yet.
type nodeFound struct {
	Images []struct {
		ID      string   `json:"id"`
		Size    int64    `json:"size"`
		Digests []string `json:"digests"`
		Tags    []string `json:"tags"`
	} `json:"images"`
	Handlers []struct {
		Name   string `json:"name"`
		Mounts bool   `json:"mounts"`
		Users  bool   `json:"users"`
	} `json:"handlers"`
	Volumes   []v1.UniqueVolumeName `json:"volumes"`
	Groups    *bool                 `json:"groups"` // supplemental groups by policy; nil: it is not told
	Pressures []string              `json:"pressures"`
}

func (f nodeFound) images() ([]kubecontainer.Image, error) {
	var found []kubecontainer.Image
	for _, i := range f.Images {
		found = append(found, kubecontainer.Image{ID: i.ID, Size: i.Size, RepoDigests: i.Digests, RepoTags: i.Tags})
	}
	sort.Sort(sliceutils.ByImageSize(found)) // as the image manager gives them
	return found, nil
}

func (f nodeFound) handlers() []kubecontainer.RuntimeHandler {
	var found []kubecontainer.RuntimeHandler
	for _, h := range f.Handlers {
		found = append(found, kubecontainer.RuntimeHandler{
			Name: h.Name, SupportsRecursiveReadOnlyMounts: h.Mounts, SupportsUserNamespaces: h.Users,
		})
	}
	return found
}

func (f nodeFound) features() *kubecontainer.RuntimeFeatures {
	if f.Groups == nil {
		return nil
	}
	return &kubecontainer.RuntimeFeatures{SupplementalGroupsPolicy: *f.Groups}
}

var random float64

// Put around rand.Float64.
func drawn(func() float64) float64 { return random }

// Put in for looks at the runtime: the history says when there are some.
func (kl *Kubelet) runtimeIsKnown() {}

var runtimeNow = time.Now

type said struct {
	kubecontainer.Runtime
	step  *nodeStep
	cidrs *[]string // that it was given
}

func (s said) UpdatePodCIDR(_ context.Context, cidr string) error {
	*s.cidrs = append(*s.cidrs, cidr)
	if s.step.Away {
		return errors.New("away")
	}
	return nil
}

func (s said) Status(context.Context) (*kubecontainer.RuntimeStatus, error) {
	status := &kubecontainer.RuntimeStatus{}
	for _, c := range *s.step.Looked {
		status.Conditions = append(status.Conditions, kubecontainer.RuntimeCondition{
			Type: kubecontainer.RuntimeConditionType(c.Type), Status: c.Status, Reason: c.Reason, Message: c.Message,
		})
	}
	return status, nil
}

type noVolumes struct{ volumemanager.VolumeManager }

func (noVolumes) MarkVolumesAsReportedInUse([]v1.UniqueVolumeName) {}

// AnswerNode takes the steps of a history and tells what the server holds after each of them.
func AnswerNode(raw json.RawMessage) (any, error) {
	var given nodeHistory
	if err := json.Unmarshal(raw, &given); err != nil {
		return nil, err
	}
	held := &nodeServer{}
	clock := testingclock.NewFakeClock(time.Time{})
	var now nodeStep
	cidrs := []string{}
	machine := given.machine()
	reserved, err := given.reserved(machine)
	if err != nil {
		return "refused", nil
	}
	api := nodeClient{nodeServer: held}
	kl := &Kubelet{
		nodeName:                     thisNode,
		hostname:                     thisNode,
		nodeLabels:                   given.Labels,
		kubeClient:                   api,
		heartbeatClient:              api,
		nodeLister:                   lister{nodeServer: held},
		clock:                        clock,
		nodeStatusReportFrequency:    5 * time.Minute,
		nodeStartupLatencyTracker:    util.NewNodeStartupLatencyTracker(),
		containerManager:             cm.NewStubContainerManager(),
		volumeManager:                noVolumes{},
		nodeDeclaredFeatures:         given.Declared,
		enableControllerAttachDetach: given.Attaches,
		runtimeState:                 newRuntimeState(maxWaitForContainerRuntime),
		containerRuntime:             said{step: &now, cidrs: &cidrs},
		registerWithTaints:           given.Taints,
	}
	kl.oneTimeInitializer.Do(func() {})
	kl.runtimeState.addHealthCheck("PLEG", func() (bool, error) {
		if text := now.Causes["pleg"]; text != "" {
			return false, errors.New(text)
		}
		return true, nil
	})
	runtimeNow = clock.Now
	kl.setNodeStatusFuncs = given.setters(kl, clock.Now, &now, machine, reserved)
	ctx := context.Background()
	answers := []any{}
	for _, now = range given.Steps {
		clock.SetTime(time.UnixMilli(int64(now.Wall * 1000)).UTC())
		if now.Node != nil {
			held.put(now.Node.DeepCopy())
		}
		if now.Info != nil && held.node != nil {
			held.put(held.node.DeepCopy())
			if err := json.Unmarshal(now.Info, &held.node.Status.NodeInfo); err != nil {
				return nil, err
			}
		}
		if now.Status != nil && held.node != nil {
			held.put(held.node.DeepCopy())
			if err := json.Unmarshal(now.Status, &held.node.Status); err != nil {
				return nil, err
			}
		}
		if now.CIDRs != nil && held.node != nil {
			held.put(held.node.DeepCopy())
			held.node.Spec.PodCIDR, held.node.Spec.PodCIDRs = now.CIDRs[0], now.CIDRs
		}
		random, held.faults, held.patches = now.Random, now.Faults, 0
		if now.Looked != nil {
			kl.updateRuntimeUp(ctx)
		}
		said := false
		switch now.Op {
		case "register":
			node, err := kl.initialNode(ctx)
			if err != nil {
				return nil, err
			}
			said = kl.tryRegisterWithAPIServer(ctx, node)
		case "report":
			said = kl.updateNodeStatus(ctx) == nil
		case "fast":
			said = kl.fastNodeStatusUpdate(ctx, false)
		default:
			return nil, fmt.Errorf("no step %q", now.Op)
		}
		var written *v1.Node // where nothing was written it is as the history made it
		if held.patches > 0 || len(answers) == 0 {
			written = held.node
		}
		answers = append(answers, map[string]any{"said": said, "writes": held.patches, "node": written, "cidrs": len(cidrs)})
	}
	return append(answers, map[string]any{"cidrs": cidrs}), nil
}

func (h nodeHistory) machine() *cadvisorapi.MachineInfo {
	machine := &cadvisorapi.MachineInfo{NumCores: h.CPU, MemoryCapacity: h.Memory, MachineID: h.Machine, SystemUUID: h.UUID, BootID: "boot", SwapCapacity: h.Swap}
	for size, pages := range h.Huge {
		machine.HugePages = append(machine.HugePages, cadvisorapi.HugePagesInfo{PageSize: size, NumPages: pages})
	}
	return machine
}

func (h nodeHistory) storage() v1.ResourceList {
	if h.Storage == 0 {
		return v1.ResourceList{}
	}
	return v1.ResourceList{v1.ResourceEphemeralStorage: *resource.NewQuantity(h.Storage, resource.BinarySI)}
}

// An error: more is reserved than there is.
func (h nodeHistory) reserved(machine *cadvisorapi.MachineInfo) (v1.ResourceList, error) {
	hard, err := eviction.ParseThresholdConfig(nil, h.Hard, nil, nil, nil)
	if err != nil {
		return nil, err
	}
	capacity := cadvisor.CapacityFromMachineInfo(machine)
	for name, quantity := range h.storage() {
		capacity[name] = quantity
	}
	amounts := func(given map[v1.ResourceName]string) v1.ResourceList {
		list := v1.ResourceList{}
		for name, quantity := range given {
			list[name] = resource.MustParse(quantity)
		}
		return list
	}
	return ourcm.Reservation(capacity, amounts(h.System), amounts(h.Kube), hard)
}

func (h nodeHistory) setters(kl *Kubelet, now func() time.Time, step *nodeStep, machine *cadvisorapi.MachineInfo, reserved v1.ResourceList) []func(context.Context, *v1.Node) error {
	record := func(klog.Logger, string, string) {}
	under := func(kind string) func() bool {
		return func() bool { return slices.Contains(step.Found.Pressures, kind) }
	}
	cause := func(kind string) func() error {
		return func() error {
			if text := step.Causes[kind]; text != "" {
				return errors.New(text)
			}
			return nil
		}
	}
	managed := cm.Status{}
	if h.Soft != "" {
		managed.SoftRequirements = errors.New(h.Soft)
	}
	storage := h.storage()
	return []func(context.Context, *v1.Node) error{
		nodestatus.NodeAddress([]net.IP{net.ParseIP(h.Address)}, func(net.IP) error { return nil }, thisNode, false, nil),
		nodestatus.MachineInfo(thisNode, h.Pods, 0, func() (*cadvisorapi.MachineInfo, error) { return machine, nil },
			func(bool) v1.ResourceList { return storage }, func() (v1.ResourceList, v1.ResourceList, []string) { return nil, nil, nil },
			func() v1.ResourceList { return reserved }, func(string, string, string) {}, true),
		nodestatus.VersionInfo(func() (*cadvisorapi.VersionInfo, error) {
			return &cadvisorapi.VersionInfo{KernelVersion: "6.1", ContainerOsVersion: "os"}, nil
		}, func() string { return "readygate-process" }, func(context.Context) (kubecontainer.Version, error) { return one{}, nil }),
		nodestatus.DaemonEndpoints(&v1.NodeDaemonEndpoints{KubeletEndpoint: v1.DaemonEndpoint{Port: h.Port}}),
		nodestatus.Images(50, func() ([]kubecontainer.Image, error) { return step.Found.images() }),
		nodestatus.GoRuntime(),
		nodestatus.RuntimeHandlers(func() []kubecontainer.RuntimeHandler { return step.Found.handlers() }),
		nodestatus.NodeFeatures(func() *kubecontainer.RuntimeFeatures { return step.Found.features() }),
		nodestatus.VolumesInUse(func() bool { return step.Found.Volumes != nil },
			func() []v1.UniqueVolumeName { return step.Found.Volumes }),
		nodestatus.MemoryPressureCondition(now, under("MemoryPressure"), record),
		nodestatus.DiskPressureCondition(now, under("DiskPressure"), record),
		nodestatus.PIDPressureCondition(now, under("PIDPressure"), record),
		nodestatus.ReadyCondition(now, kl.runtimeState.runtimeErrors, kl.runtimeState.networkErrors, cause("storage"),
			func() cm.Status { return managed }, cause("shutdown"), record, true),
	}
}

type one struct{}

func (one) String() string              { return "1" }
func (one) Compare(string) (int, error) { return 0, nil }
