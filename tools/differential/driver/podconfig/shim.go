// What a kubelet's configuration makes of the pods that the API server has: which were added, changed, removed.
package config

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	kubetypes "k8s.io/kubernetes/pkg/kubelet/types"
)

type nobody struct{}

func (nobody) ObservedPodOnWatch(*v1.Pod, time.Time) {}

// Merged has two sources, the API server and files.
type Merged struct {
	storage *podStorage
	updates chan kubetypes.PodUpdate
}

// NewMerged has seen nothing yet.
func NewMerged() *Merged {
	updates := make(chan kubetypes.PodUpdate, 50)
	return &Merged{newPodStorage(updates, nil, nobody{}), updates}
}

// Set takes all the pods that the API server has now, and tells what follows.
func (m *Merged) Set(ctx context.Context, pods []*v1.Pod) ([]kubetypes.PodUpdate, error) {
	return m.SetOf(ctx, kubetypes.ApiserverSource, pods)
}

// SetOf is Set of a source.
func (m *Merged) SetOf(ctx context.Context, source string, pods []*v1.Pod) ([]kubetypes.PodUpdate, error) {
	if err := m.storage.Merge(ctx, source, sourceUpdate{Pods: pods}); err != nil {
		return nil, err
	}
	found := []kubetypes.PodUpdate{}
	for len(m.updates) > 0 {
		found = append(found, <-m.updates)
	}
	return found, nil
}
