// 1.16's status manager under a clock that the history moves, and what it keeps. Its thread is never started.
package status

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	clientset "k8s.io/client-go/kubernetes"
	kubepod "k8s.io/kubernetes/pkg/kubelet/pod"
)

var wall time.Time

func wallNow() time.Time { return wall }

// Set moves the clock.
func Set(to time.Time) { wall = to }

// Kept is the manager, and a look into it.
type Kept struct{ *manager }

// NewKept makes a manager.
func NewKept(client clientset.Interface, pods kubepod.Manager, safety PodDeletionSafetyProvider) Kept {
	return Kept{NewManager(client, pods, safety).(*manager)}
}

// Seen is what is kept of a pod.
func (k Kept) Seen(uid types.UID) (status v1.PodStatus, version uint64, found bool) {
	kept, found := k.podStatuses[uid]
	return kept.status, kept.version, found
}

// Batch makes the one of each ten seconds. What its thread would have been handed one by one is in there.
func (k Kept) Batch() {
	for len(k.podStatusChannel) > 0 {
		<-k.podStatusChannel
	}
	k.syncBatch()
}
