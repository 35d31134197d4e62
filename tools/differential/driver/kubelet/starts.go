// What a container is started with: its environment and its command line.
package kubelet

import (
	"context"
	"encoding/json"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
	kubeletconfiginternal "k8s.io/kubernetes/pkg/kubelet/apis/config"
	"k8s.io/kubernetes/pkg/kubelet/configmap"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/network/dns"
)

type startsHistory struct {
	Pod    v1.Pod `json:"pod"`
	PodIP  string `json:"podIP"`
	HostIP string `json:"hostIP"`
}

// No configuration is there, as the agent can read none.
type noConfigMaps struct{ configmap.Manager }

func (noConfigMaps) GetConfigMap(_, name string) (*v1.ConfigMap, error) {
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, name)
}

// AnswerStarts tells of the pod's first container.
func AnswerStarts(raw json.RawMessage) (any, error) {
	var given startsHistory
	if err := json.Unmarshal(raw, &given); err != nil {
		return nil, err
	}
	links := false
	given.Pod.Spec.EnableServiceLinks = &links
	kl := &Kubelet{
		kubeClient:       &statusScene{step: &statusStep{Host: given.HostIP}},
		configMapManager: noConfigMaps{},
		serviceHasSynced: func() bool { return true },
	}
	container, ips := &given.Pod.Spec.Containers[0], []string{}
	if given.PodIP != "" {
		ips = append(ips, given.PodIP)
	}
	made, err := kl.makeEnvironmentVariables(context.Background(), &given.Pod, container, given.PodIP, ips, nil)
	if err != nil {
		return map[string]any{"fails": true}, nil
	}
	env := map[string]string{}
	for _, variable := range made {
		env[variable.Name] = variable.Value
	}
	command, args := kubecontainer.ExpandContainerCommandAndArgs(container, made)
	return map[string]any{"env": env, "line": append(append([]string{}, command...), args...)}, nil
}

// HostNameOf is the host name of a pod, and its domain.
func HostNameOf(logger klog.Logger, pod *v1.Pod) (string, string, error) {
	kl := &Kubelet{dnsConfigurer: &dns.Configurer{ClusterDomain: "cluster.local"}}
	return kl.GeneratePodHostNameAndDomain(logger, pod)
}

// LimitsOfBackOff are the longest wait of a container that keeps ending, and the first one.
func LimitsOfBackOff(longest time.Duration) (time.Duration, time.Duration) {
	config := &kubeletconfiginternal.KubeletConfiguration{}
	config.CrashLoopBackOff.MaxContainerRestartPeriod = &metav1.Duration{Duration: longest}
	return newCrashLoopBackOff(config)
}

// LimitsOfImageBackOff are the first wait of a pod whose image cannot be pulled, and the longest one.
func LimitsOfImageBackOff() (time.Duration, time.Duration) { return imageBackOffPeriod, MaxImageBackOff }

// EffectiveGrace is what each container of a pod gets that is to end, in seconds.
func EffectiveGrace(pod *v1.Pod) int64 {
	grace, _ := calculateEffectiveGracePeriod(&podSyncStatus{}, pod, nil)
	return grace
}
