// The status manager under a clock that the history moves, and what it keeps. Its thread is never started.
package status

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientset "k8s.io/client-go/kubernetes"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	upstream "k8s.io/kubernetes/pkg/kubelet/status"
	"readygate.dev/testbed/kube/mended"
)

type podUpdateNotifier = upstream.PodUpdateNotifier

var wall time.Time

func wallNow() time.Time                        { return wall }
func wallSince(earlier time.Time) time.Duration { return wall.Sub(earlier) }

// Set moves the clock.
func Set(to time.Time) { wall = to }

// Upstream's takes the time itself, in a package that is not copied: what it took is put right.
func updatePodCondition(status *v1.PodStatus, condition *v1.PodCondition) bool {
	began := time.Now().Add(-time.Second)
	changed := podutil.UpdatePodCondition(status, condition)
	if _, updated := podutil.GetPodCondition(status, condition.Type); updated.LastTransitionTime.After(began) {
		updated.LastTransitionTime = metav1.NewTime(wall)
	}
	return changed
}

// Put in for the statuses of containers that readiness is compared with.
func compared(pod *v1.Pod) []v1.ContainerStatus {
	statuses := pod.Status.ContainerStatuses
	if statuses == nil || !mended.On("fix_readiness_without_sidecars") {
		return statuses
	}
	return append(append([]v1.ContainerStatus{}, pod.Status.InitContainerStatuses...), statuses...)
}

// Kept is the manager, and a look into it.
type Kept struct{ *manager }

// NewKept makes a manager.
func NewKept(client clientset.Interface, pods PodManager, safety PodDeletionSafetyProvider, latency PodStartupLatencyStateHelper) Kept {
	return Kept{NewManager(client, pods, safety, latency).(*manager)}
}

// Seen is what is kept of a pod.
func (k Kept) Seen(uid types.UID) (status v1.PodStatus, version uint64, finished, found bool) {
	kept, found := k.podStatuses[uid]
	return kept.status, kept.version, kept.podIsFinished, found
}

// Batch makes one.
func (k Kept) Batch(ctx context.Context, all bool) int { return k.syncBatch(ctx, all) }
