package prober

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"readygate.dev/testbed/kube/mended"
)

// Put in where AddPod ends at the first worker that it finds.
func goesOn() bool { return mended.On("fix_add_pod_ends_at_first_worker") }

// By how much the clock was set ahead since the manager was made.
var ahead time.Duration

func aheadMended() time.Duration {
	if mended.On("fix_clock_that_is_set") {
		return ahead
	}
	return 0
}

// When a container has begun, by the clock as it was when the manager was made.
type beginning struct{ told, was time.Time }

var beginnings = map[*worker]beginning{}

// Put in where a worker has seen a new container.
func (w *worker) forgets() { delete(beginnings, w) }

// Put in for the time since a container has started.
func (w *worker) age(started time.Time) time.Duration {
	if !mended.On("fix_clock_that_is_set") {
		return wallSince(started)
	}
	now := wallNow().Add(-ahead)
	known, found := beginnings[w]
	if !found || !known.told.Equal(started) {
		known = beginning{started, started.Add(-ahead)}
		if known.was.After(now) {
			known.was = now
		}
		beginnings[w] = known
	}
	return now.Sub(known.was)
}

// Put in for whether a container was there before the manager.
func (m *manager) older(pod *v1.Pod, container string, started time.Time) bool {
	if w, found := m.getWorker(pod.UID, container, readiness); found {
		if known, found := beginnings[w]; found && known.told.Equal(started) {
			return known.was.Before(kubeletRestartGracePeriod(m.start))
		}
	}
	return started.Before(kubeletRestartGracePeriod(m.start.Add(aheadMended())))
}
