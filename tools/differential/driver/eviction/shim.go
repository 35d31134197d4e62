// The manager of evictions, look by look, over what a history measures; no pod is there that it could evict.
package eviction

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	"k8s.io/kubernetes/pkg/kubelet/server/stats"
	testingclock "k8s.io/utils/clock/testing"
)

type history struct {
	Hard       map[string]string `json:"hard"`
	Soft       map[string]string `json:"soft"`
	Grace      map[string]string `json:"grace"`
	Reclaim    map[string]string `json:"reclaim"`
	Transition float64           `json:"transition"`
	Steps      []step            `json:"steps"`
}

// Observed: signal to capacity and what of it is available. Away: nothing could be measured. ImagesApart, ContainersApart:
// images, or containers, have another file system than volumes; containers have another one than images.
type step struct {
	Wall            float64             `json:"wall"`
	Observed        map[string][2]int64 `json:"observed"`
	Away            bool                `json:"away"`
	ImagesApart     bool                `json:"imagesApart"`
	ContainersApart bool                `json:"containersApart"`
}

type measured struct {
	stats.SummaryProvider
	now *step
}

func (m measured) Get(context.Context, bool) (*statsapi.Summary, error) {
	if m.now.Away {
		return nil, errors.New("away")
	}
	files := func(name string) *statsapi.FsStats {
		made := &statsapi.FsStats{}
		made.CapacityBytes, made.AvailableBytes = m.of(name + ".available")
		made.Inodes, made.InodesFree = m.of(name + ".inodesFree")
		return made
	}
	node := statsapi.NodeStats{Fs: files("nodefs"), Runtime: &statsapi.RuntimeStats{ImageFs: files("imagefs"), ContainerFs: files("containerfs")}}
	if capacity, available := m.of("memory.available"); capacity != nil {
		used := *capacity - *available
		node.Memory = &statsapi.MemoryStats{AvailableBytes: available, WorkingSetBytes: &used}
	}
	if found, is := m.now.Observed["pid.available"]; is {
		running := found[0] - found[1]
		node.Rlimit = &statsapi.RlimitStats{MaxPID: &found[0], NumOfRunningProcesses: &running}
	}
	return &statsapi.Summary{Node: node}, nil
}

func (m measured) of(signal string) (*uint64, *uint64) {
	found, is := m.now.Observed[signal]
	if !is {
		return nil, nil
	}
	capacity, available := uint64(found[0]), uint64(found[1])
	return &capacity, &available
}

func (m measured) HasDedicatedImageFs(context.Context) (bool, error) {
	if m.now.Away {
		return false, errors.New("away")
	}
	return m.now.ImagesApart, nil
}

func (m measured) HasDedicatedContainerFs(context.Context) (bool, error) {
	return m.now.ContainersApart, nil
}
func (measured) DeleteUnusedImages(context.Context) error        { return nil }
func (measured) DeleteAllUnusedContainers(context.Context) error { return nil }

// Answer tells the node's conditions after each look, or that the settings are refused.
func Answer(raw json.RawMessage) (any, error) {
	var given history
	if err := json.Unmarshal(raw, &given); err != nil {
		return nil, err
	}
	thresholds, err := ParseThresholdConfig(nil, given.Hard, given.Soft, given.Grace, given.Reclaim)
	if err != nil {
		return "refused", nil
	}
	var now step
	clock := testingclock.NewFakeClock(time.Time{})
	config := Config{Thresholds: thresholds, PressureTransitionPeriod: time.Duration(given.Transition * float64(time.Second))}
	from := measured{now: &now}
	manager, _ := NewManager(from, config, nil, from, from, &record.FakeRecorder{}, nil, clock, false)
	look := func() error {
		clock.SetTime(time.UnixMilli(int64(now.Wall * 1000)).UTC())
		_, err := manager.(*managerImpl).synchronize(context.Background(), from, func() []*v1.Pod { return nil })
		return err
	}
	// By its first look a manager still goes by the thresholds of containers that it is to ignore, or by some of them.
	for _, first := range given.Steps {
		if first.Away {
			continue
		}
		now = first
		now.Observed = nil
		if err := look(); err != nil {
			return nil, err
		}
		break
	}
	answers := []any{}
	for _, now = range given.Steps {
		if err := look(); err != nil && !now.Away {
			return nil, err
		}
		answers = append(answers, []bool{manager.IsUnderMemoryPressure(), manager.IsUnderDiskPressure(), manager.IsUnderPIDPressure()})
	}
	return answers, nil
}
