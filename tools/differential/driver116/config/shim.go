// What 1.16's configuration makes of a folder of manifests and of the pods that the API server has.
package config

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	_ "k8s.io/kubernetes/pkg/apis/core/install" // manifests are decoded by it
	kubetypes "k8s.io/kubernetes/pkg/kubelet/types"
)

// Sources are a folder and the API server.
type Sources struct {
	storage *podStorage
	folder  *sourceFile
	listed  chan interface{}
	updates chan kubetypes.PodUpdate
}

// NewSources has seen nothing yet.
func NewSources(path, node string) *Sources {
	listed, updates := make(chan interface{}, 50), make(chan kubetypes.PodUpdate, 50)
	return &Sources{
		storage: newPodStorage(updates, PodConfigNotificationIncremental, &record.FakeRecorder{}),
		folder:  newSourceFile(path, types.NodeName(node), time.Hour, listed),
		listed:  listed,
		updates: updates,
	}
}

// Files reads the folder and tells what follows.
func (s *Sources) Files() ([]kubetypes.PodUpdate, error) {
	if err := s.folder.listConfig(); err != nil {
		return nil, err
	}
	return s.merged(kubetypes.FileSource, <-s.listed)
}

// API takes all the pods that are there now, and tells what follows.
func (s *Sources) API(pods []*v1.Pod) ([]kubetypes.PodUpdate, error) {
	source := kubetypes.ApiserverSource
	return s.merged(source, kubetypes.PodUpdate{Pods: pods, Op: kubetypes.SET, Source: source})
}

func (s *Sources) merged(source string, change interface{}) ([]kubetypes.PodUpdate, error) {
	if err := s.storage.Merge(source, change); err != nil {
		return nil, err
	}
	found := []kubetypes.PodUpdate{}
	for len(s.updates) > 0 {
		found = append(found, <-s.updates)
	}
	return found, nil
}
