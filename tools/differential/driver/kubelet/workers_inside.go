// What histories ask the pod workers that no other part of the kubelet asks them.
package kubelet

import (
	"runtime"

	"k8s.io/apimachinery/pkg/types"
)

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
	for p.busy() {
		runtime.Gosched()
	}
}

func (p *podWorkers) busy() bool {
	p.podLock.Lock()
	defer p.podLock.Unlock()
	for _, status := range p.podSyncStatuses {
		if status.working {
			return true
		}
	}
	return false
}

// Ends the goroutines of the workers.
func (p *podWorkers) stop() {
	p.podLock.Lock()
	defer p.podLock.Unlock()
	for uid := range p.podUpdates {
		p.cleanupPodUpdates(uid)
	}
}

// wantRestart tells whether a pod has ended of which another of the same uid is there: upstream housekeeping sees it.
func (p *podWorkers) wantRestart() bool {
	p.podLock.Lock()
	defer p.podLock.Unlock()
	for _, status := range p.podSyncStatuses {
		if status.restartRequested && status.finished {
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
