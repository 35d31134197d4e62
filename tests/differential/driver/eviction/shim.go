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

// Observed: signal to capacity and what of it is available. Away: nothing could be measured.
type step struct {
	Wall     float64             `json:"wall"`
	Observed map[string][2]int64 `json:"observed"`
	Away     bool                `json:"away"`
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
	node := statsapi.NodeStats{Fs: files("nodefs"), Runtime: &statsapi.RuntimeStats{ImageFs: files("imagefs")}}
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

// Images have a file system of their own; containers lie there too.
func (measured) HasDedicatedImageFs(context.Context) (bool, error)     { return true, nil }
func (measured) HasDedicatedContainerFs(context.Context) (bool, error) { return false, nil }
func (measured) DeleteUnusedImages(context.Context) error              { return nil }
func (measured) DeleteAllUnusedContainers(context.Context) error       { return nil }

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
	answers := []any{}
	for _, now = range given.Steps {
		clock.SetTime(time.UnixMilli(int64(now.Wall * 1000)).UTC())
		if _, err := manager.(*managerImpl).synchronize(context.Background(), from, func() []*v1.Pod { return nil }); err != nil {
			return nil, err
		}
		answers = append(answers, []bool{manager.IsUnderMemoryPressure(), manager.IsUnderDiskPressure(), manager.IsUnderPIDPressure()})
	}
	return answers, nil
}
