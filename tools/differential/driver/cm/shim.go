// What is reserved of a node's capacity.
package cm

import (
	v1 "k8s.io/api/core/v1"
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"
)

// Reservation is what pods may not have of the capacity. An error: more is reserved than there is.
func Reservation(capacity, system, kube v1.ResourceList, hard []evictionapi.Threshold) (v1.ResourceList, error) {
	manager := &containerManagerImpl{capacity: capacity}
	manager.NodeConfig.SystemReserved, manager.NodeConfig.KubeReserved = system, kube
	manager.NodeConfig.HardEvictionThresholds = hard
	if err := manager.validateNodeAllocatable(); err != nil {
		return nil, err
	}
	return manager.GetNodeAllocatableReservation(), nil
}
