// What histories ask the pod workers that no other part of the kubelet asks them.
package kubelet

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// A worker waits for nothing but the history, so it works for milliseconds.
const workersLimit = time.Minute

// The last panic of a worker. Upstream's HandleCrash recovers from it, and the worker's status says "working" for ever.
// A shrunk history brings one about easily: by a pod without containers.
var workerPanic atomic.Pointer[string]

func init() {
	utilruntime.PanicHandlers = append(utilruntime.PanicHandlers, func(_ context.Context, cause any) {
		text := fmt.Sprint(cause)
		workerPanic.Store(&text)
	})
}

// waitForWorkers waits until no pod is worked on. It panics where a worker has, or where one does not end. The workers have
// many turns before that: on a busy machine the limit may pass between two of them.
func waitForWorkers(working func() []types.UID) {
	began := time.Now()
	for turns := 1; ; turns++ {
		uids := working()
		if len(uids) == 0 {
			return
		}
		if cause := workerPanic.Load(); cause != nil {
			panic("a worker panicked: " + *cause)
		}
		if turns%10_000 == 0 && time.Since(began) > workersLimit {
			slices.Sort(uids)
			panic(fmt.Sprintf("the workers of %v do not end within %s", uids, workersLimit))
		}
		runtime.Gosched()
	}
}

func (p *podWorkers) stage(uid types.UID) any {
	p.podLock.Lock()
	defer p.podLock.Unlock()
	if status, found := p.podSyncStatuses[uid]; found {
		switch status.WorkType() {
		case TerminatingPod:
			return "terminating"
		case TerminatedPod:
			return "terminated"
		}
		return "syncing"
	}
	return nil
}

// Waits until no worker works.
func (p *podWorkers) settle() {
	waitForWorkers(p.working)
}

func (p *podWorkers) working() (uids []types.UID) {
	p.podLock.Lock()
	defer p.podLock.Unlock()
	for uid, status := range p.podSyncStatuses {
		if status.working {
			uids = append(uids, uid)
		}
	}
	return uids
}

// Ends the goroutines of the workers.
func (p *podWorkers) stop() {
	p.podLock.Lock()
	defer p.podLock.Unlock()
	for uid := range p.podUpdates {
		p.cleanupPodUpdates(uid)
	}
}

// wantRestart reports whether a pod has ended and another pod of its uid is there: upstream housekeeping sees that pod.
// A pod that came and went while the first one ended wants no restart, and housekeeping comes when the history says so.
func (p *podWorkers) wantRestart(isThere func(types.UID) bool) bool {
	p.podLock.Lock()
	defer p.podLock.Unlock()
	for uid, status := range p.podSyncStatuses {
		if status.restartRequested && status.finished && isThere(uid) {
			return true
		}
	}
	return false
}

func (p *podWorkers) hasStarted(uid types.UID) bool {
	p.podLock.Lock()
	defer p.podLock.Unlock()
	status, found := p.podSyncStatuses[uid]
	return found && status.IsStarted()
}

// What came for the pod in the meantime waits for the next attempt, as in the agent: upstream makes that at once.
func (p *podWorkers) waitForRetry(uid types.UID) {
	p.podLock.Lock()
	defer p.podLock.Unlock()
	if status := p.podSyncStatuses[uid]; status.pendingUpdate != nil {
		status.mergeLastUpdate(*status.pendingUpdate)
		status.pendingUpdate = nil
		select {
		case <-p.podUpdates[uid]:
		default:
		}
	}
}
