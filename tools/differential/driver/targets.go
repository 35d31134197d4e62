package main

import (
	"readygate.dev/testbed/kube/cni"
	"readygate.dev/testbed/kube/drivers"
	"readygate.dev/testbed/kube/eviction"
	"readygate.dev/testbed/kube/hooks"
	"readygate.dev/testbed/kube/httpprobe"
	"readygate.dev/testbed/kube/images"
	"readygate.dev/testbed/kube/kubelet"
	"readygate.dev/testbed/kube/kuberuntime"
	"readygate.dev/testbed/kube/lease"
	"readygate.dev/testbed/kube/pleg"
	"readygate.dev/testbed/kube/prober"
	"readygate.dev/testbed/kube/reconciler"
	"readygate.dev/testbed/kube/record"
)

func init() { pleg.Capacity = kubelet.EventCapacity }

var targets = map[string]target{
	"admission": kubelet.AnswerAdmission,
	"actions": kuberuntime.AnswerActions,
	"backoff": kuberuntime.AnswerBackOff,
	"cni": cni.Answer,
	"configs": kuberuntime.AnswerConfigs,
	"drivers": drivers.Answer,
	"events": record.Answer,
	"eviction": eviction.Answer,
	"grpc": prober.AnswerHandlers,
	"handlers": prober.AnswerHandlers,
	"hooks": hooks.Answer,
	"http":   httpprobe.Answer,
	"images": images.Answer,
	"intake": kubelet.AnswerIntake,
	"lease":  lease.Answer,
	"loops":  prober.AnswerLoops,
	"node":   kubelet.AnswerNode,
	"pleg":   pleg.Answer,
	"plugins": reconciler.Answer,
	"pods": kuberuntime.AnswerPods,
	"prober": prober.Answer,
	"sources": kubelet.AnswerSources,
	"starts": kubelet.AnswerStarts,
	"status": kubelet.AnswerStatus,
	"workers": kubelet.AnswerWorkers,
}
