// The cache of pod statuses alone, with what it holds in the types of the package that it is copied from.
package container

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
)

type PodStatus = kubecontainer.PodStatus

// Wait begins as GetNewerThan does; what it gives says whether GetNewerThan would have returned by now, and what.
func Wait(of Cache, uid types.UID, since time.Time) func() (*PodStatus, error, bool) {
	waiting := of.(*cache).subscribe(uid, since)
	return func() (*PodStatus, error, bool) {
		select {
		case got := <-waiting:
			return got.status, got.err, true
		default:
			return nil, nil, false
		}
	}
}
