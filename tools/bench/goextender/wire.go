package main

import "encoding/json"

// The scheduler's words, as k8s.io/kube-scheduler/extender/v1 has them: no tags, every key is present on the wire.

type extenderArgs struct {
	Pod       *pod
	Nodes     json.RawMessage
	NodeNames *[]string
}

type filterResult struct {
	Nodes                      *struct{}
	NodeNames                  *[]string
	FailedNodes                map[string]string
	FailedAndUnresolvableNodes map[string]string
	Error                      string
}

// The parts of Kubernetes objects that a hand-written peer declares.

type objectMeta struct {
	Name              string            `json:"name"`
	Namespace         string            `json:"namespace"`
	UID               string            `json:"uid"`
	ResourceVersion   string            `json:"resourceVersion"`
	Labels            map[string]string `json:"labels"`
	Annotations       map[string]string `json:"annotations"`
	OwnerReferences   []ownerReference  `json:"ownerReferences"`
	CreationTimestamp string            `json:"creationTimestamp"`
	DeletionTimestamp *string           `json:"deletionTimestamp"`
}

type ownerReference struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	UID        string `json:"uid"`
	Controller *bool  `json:"controller"`
}

type condition struct {
	Type               string `json:"type"`
	Status             string `json:"status"`
	Reason             string `json:"reason"`
	Message            string `json:"message"`
	LastTransitionTime string `json:"lastTransitionTime"`
}

type pod struct {
	Metadata objectMeta `json:"metadata"`
	Spec     podSpec    `json:"spec"`
	Status   podStatus  `json:"status"`
}

type podSpec struct {
	NodeName          string            `json:"nodeName"`
	NodeSelector      map[string]string `json:"nodeSelector"`
	PriorityClassName string            `json:"priorityClassName"`
	Priority          *int32            `json:"priority"`
	SchedulerName     string            `json:"schedulerName"`
	InitContainers    []container       `json:"initContainers"`
	Containers        []container       `json:"containers"`
	Tolerations       []toleration      `json:"tolerations"`
}

type container struct {
	Name      string    `json:"name"`
	Image     string    `json:"image"`
	Resources resources `json:"resources"`
}

type resources struct {
	Limits   map[string]string `json:"limits"`
	Requests map[string]string `json:"requests"`
}

type toleration struct {
	Key               string `json:"key"`
	Operator          string `json:"operator"`
	Value             string `json:"value"`
	Effect            string `json:"effect"`
	TolerationSeconds *int64 `json:"tolerationSeconds"`
}

type podStatus struct {
	Phase      string      `json:"phase"`
	Conditions []condition `json:"conditions"`
	HostIP     string      `json:"hostIP"`
	PodIP      string      `json:"podIP"`
}

type node struct {
	Metadata objectMeta `json:"metadata"`
	Status   struct {
		Conditions []condition `json:"conditions"`
	} `json:"status"`
}

type lease struct {
	Metadata objectMeta `json:"metadata"`
	Spec     struct {
		RenewTime string `json:"renewTime"`
	} `json:"spec"`
}

func (p pod) meta() objectMeta   { return p.Metadata }
func (n node) meta() objectMeta  { return n.Metadata }
func (l lease) meta() objectMeta { return l.Metadata }

func (p pod) conditionStatus(kind string) string {
	for _, c := range p.Status.Conditions {
		if c.Type == kind {
			return c.Status
		}
	}
	return ""
}
