// A folder of manifests and the lists of an API server, merged as a history says. No goroutine is started.
//
// Mended in the copy, as docs/kubelet-parity.md says: a broken file keeps its last good version, a folder that is gone
// keeps its pods until it has been gone for 20 seconds, and one without a good file has no pods.
package config

import (
	"context"
	"os"
	"time"

	"github.com/fsnotify/fsnotify"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	kubetypes "k8s.io/kubernetes/pkg/kubelet/types"
)

const goneAfter = 20 * time.Second

var (
	good      map[string]*v1.Pod // by file
	goneSince time.Time
	wall      time.Time
)

func (s *sourceFile) keep(filename, key string, pod *v1.Pod) {
	s.fileKeyMapping[filename] = key
	good[filename] = pod.DeepCopy()
}

func lastGood(filename string) []*v1.Pod {
	if pod, ok := good[filename]; ok {
		return []*v1.Pod{pod.DeepCopy()}
	}
	return nil
}

func (s *sourceFile) gone() {
	if goneSince.IsZero() {
		goneSince = wall
	}
	if wall.Sub(goneSince) >= goneAfter {
		clear(good)
		_ = s.replaceStore()
	}
}

func there() { goneSince = time.Time{} }

type noObserver struct{}

func (noObserver) ObservedPodOnWatch(*v1.Pod, time.Time) {}

// Sources are those of one kubelet.
type Sources struct {
	files   *sourceFile
	updates chan sourceUpdate
	merged  *PodConfig
}

// NewSources has a folder at the path, which may not be there.
func NewSources(path string, node types.NodeName) *Sources {
	good, goneSince = map[string]*v1.Pod{}, time.Time{}
	updates := make(chan sourceUpdate, 100)
	return &Sources{
		files:   newSourceFile(path, node, goneAfter, updates),
		updates: updates,
		merged:  NewPodConfig(record.NewFakeRecorder(100), noObserver{}),
	}
}

// Event is one of the kernel's.
func (s *Sources) Event(path string, op fsnotify.Op) error {
	logger := klog.Background()
	if op == fsnotify.Remove {
		delete(good, path)
	}
	if err := s.files.produceWatchEvent(logger, &fsnotify.Event{Name: path, Op: op}); err != nil {
		return err
	}
	_ = s.files.consumeWatchEvent(logger, <-s.files.watchEvents) // what is wrong with a file is logged
	return nil
}

// List is what comes every 20 seconds.
func (s *Sources) List(at time.Time) {
	wall = at
	_ = s.files.listConfig(klog.Background())
	for path := range good {
		if _, err := os.Stat(path); err != nil && goneSince.IsZero() {
			delete(good, path)
		}
	}
}

// API is a list of the API server's pods.
func (s *Sources) API(ctx context.Context, pods []*v1.Pod) ([]kubetypes.PodUpdate, error) {
	return s.merge(ctx, kubetypes.ApiserverSource, sourceUpdate{Pods: pods})
}

// Files are the changes that came of events and lists.
func (s *Sources) Files(ctx context.Context) ([]kubetypes.PodUpdate, error) {
	var found []kubetypes.PodUpdate
	for {
		select {
		case update := <-s.updates:
			updates, err := s.merge(ctx, kubetypes.FileSource, update)
			if err != nil {
				return nil, err
			}
			found = append(found, updates...)
		default:
			return found, nil
		}
	}
}

func (s *Sources) merge(ctx context.Context, source string, update sourceUpdate) ([]kubetypes.PodUpdate, error) {
	if err := s.merged.pods.Merge(ctx, source, update); err != nil {
		return nil, err
	}
	var found []kubetypes.PodUpdate
	for {
		select {
		case update := <-s.merged.updates:
			found = append(found, update)
		default:
			return found, nil
		}
	}
}
