package main

import (
	"bytes"
	"fmt"
	"strings"
)

// Objects as the API server writes them: compact JSON, Go's field order, sizes of real ones.

func nodeName(i int) string {
	return fmt.Sprintf("ip-10-0-%d-%d.eu-west-1.compute.internal", i/250, i%250)
}

func managedFields(managers, fields int) string {
	var one strings.Builder
	for i := range fields {
		if i > 0 {
			one.WriteByte(',')
		}
		fmt.Fprintf(&one, `"f:field-%02d":{".":{},"f:name":{},"f:value":{}}`, i)
	}
	entries := make([]string, managers)
	for i := range entries {
		entries[i] = fmt.Sprintf(`{"manager":"manager-%d","operation":"Update","apiVersion":"v1","time":"2026-11-01T10:00:00Z",`+
			`"fieldsType":"FieldsV1","fieldsV1":{"f:spec":{%s}}}`, i, one.String())
	}
	return "[" + strings.Join(entries, ",") + "]"
}

func containers(count, variables int) string {
	all := make([]string, count)
	for i := range all {
		env := make([]string, variables)
		for j := range env {
			env[j] = fmt.Sprintf(`{"name":"SETTING_%02d","value":"value-of-setting-%02d-in-container-%d"}`, j, j, i)
		}
		all[i] = fmt.Sprintf(`{"name":"container-%d","image":"registry.example.com/team/application-%d:1.2.3","ports":[{"name":"http",`+
			`"containerPort":80%02d,"protocol":"TCP"}],"env":[%s],"resources":{"limits":{"cpu":"500m","memory":"256Mi"},"requests":`+
			`{"cpu":"1m","memory":"1Mi"}},"volumeMounts":[{"name":"configuration","readOnly":true,"mountPath":"/etc/application"},`+
			`{"name":"kube-api-access-x7k2p","readOnly":true,"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}],`+
			`"livenessProbe":{"httpGet":{"path":"/livez","port":"http","scheme":"HTTP"},"timeoutSeconds":1,"periodSeconds":10,`+
			`"successThreshold":1,"failureThreshold":3},"readinessProbe":{"httpGet":{"path":"/readyz","port":"http","scheme":"HTTP"},`+
			`"timeoutSeconds":1,"periodSeconds":10,"successThreshold":1,"failureThreshold":3},"terminationMessagePath":`+
			`"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent","securityContext":`+
			`{"capabilities":{"drop":["ALL"]},"runAsNonRoot":true,"readOnlyRootFilesystem":true,"allowPrivilegeEscalation":false}}`,
			i, i, i, strings.Join(env, ","))
	}
	return "[" + strings.Join(all, ",") + "]"
}

// healthPod is one health pod, about 17 kB, with a gap where the resourceVersion goes.
func healthPod(i int, namespace, daemonSet string, ready bool) (head, tail []byte) {
	status := "True"
	if !ready {
		status = "False"
	}
	var conditions []string
	for _, kind := range []string{"readygate.dev/NodeHealthy", "PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"} {
		value := "True"
		if kind == "Ready" || kind == "readygate.dev/NodeHealthy" {
			value = status
		}
		conditions = append(conditions, fmt.Sprintf(`{"type":"%s","status":"%s","lastProbeTime":null,"lastTransitionTime":"2026-11-01T10:00:05Z"}`, kind, value))
	}
	var states []string
	for c := range 3 {
		states = append(states, fmt.Sprintf(`{"name":"container-%d","state":{"running":{"startedAt":"2026-11-01T10:00:03Z"}},"lastState":{},"ready":true,`+
			`"restartCount":0,"image":"registry.example.com/team/application-%d:1.2.3","imageID":"registry.example.com/team/application-%d@sha256:%064x",`+
			`"containerID":"containerd://%064x","started":true}`, c, c, c, i, i*3+c))
	}
	head = fmt.Appendf(nil, `"metadata":{"name":"%s-%05x","generateName":"%s-","namespace":"%s","uid":"00000000-0000-4000-8000-%012x","resourceVersion":"`,
		daemonSet, i, daemonSet, namespace, i)
	tail = fmt.Appendf(nil, `","creationTimestamp":"2026-11-01T10:00:00Z","labels":{"app.kubernetes.io/name":"%s","app.kubernetes.io/part-of":"readygate",`+
		`"controller-revision-hash":"6b7c9d8f5","pod-template-generation":"1"},"annotations":{"example.com/configuration-hash":"%064x"},`+
		`"ownerReferences":[{"apiVersion":"apps/v1","kind":"DaemonSet","name":"%s","uid":"d5000000-0000-4000-8000-000000000001","controller":true,`+
		`"blockOwnerDeletion":true}],"managedFields":%s},"spec":{"volumes":[{"name":"configuration","configMap":{"name":"application",`+
		`"defaultMode":420}},{"name":"kube-api-access-x7k2p","projected":{"sources":[{"serviceAccountToken":{"expirationSeconds":3607,"path":"token"}}],`+
		`"defaultMode":420}}],"containers":%s,"restartPolicy":"Always","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst",`+
		`"serviceAccountName":"readygate-agent","nodeName":"%s","hostNetwork":true,"securityContext":{},"affinity":{"nodeAffinity":`+
		`{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchFields":[{"key":"metadata.name","operator":"In","values":["%s"]}]}]}}},`+
		`"schedulerName":"default-scheduler","tolerations":[{"operator":"Exists"}],"priorityClassName":"system-node-critical","priority":2000001000,`+
		`"readinessGates":[{"conditionType":"readygate.dev/NodeHealthy"}],"enableServiceLinks":true,"preemptionPolicy":"PreemptLowerPriority"},`+
		`"status":{"phase":"Running","conditions":[%s],"hostIP":"10.0.%d.%d","podIP":"10.0.%d.%d","startTime":"2026-11-01T10:00:00Z",`+
		`"containerStatuses":[%s],"qosClass":"Burstable"}}`,
		daemonSet, i, daemonSet, managedFields(3, 38), containers(3, 24), nodeName(i), nodeName(i),
		strings.Join(conditions, ","), i/250, i%250, i/250, i%250, strings.Join(states, ","))
	return head, tail
}

// bareNode is one Node, about 11 kB, without its opening brace's kind.
func bareNode(i int) []byte {
	var labels, images, conditions []string
	for j := range 16 {
		labels = append(labels, fmt.Sprintf(`"example.com/label-%02d":"value-%02d"`, j, j))
	}
	for j := range 32 {
		images = append(images, fmt.Sprintf(`{"names":["registry.example.com/team/application-%02d@sha256:%064x","registry.example.com/team/application-%02d:1.2.%d"],"sizeBytes":%d}`,
			j, j, j, j, 10_000_000+j))
	}
	for _, kind := range []string{"NetworkUnavailable", "MemoryPressure", "DiskPressure", "PIDPressure", "KernelDeadlock", "ReadonlyFilesystem", "Ready"} {
		value := "False"
		if kind == "Ready" {
			value = "True"
		}
		conditions = append(conditions, fmt.Sprintf(`{"type":"%s","status":"%s","lastHeartbeatTime":"2026-11-01T10:00:00Z","lastTransitionTime":"2026-11-01T10:00:00Z","reason":"Kubelet%s","message":"kubelet says so"}`,
			kind, value, kind))
	}
	return fmt.Appendf(nil, `"metadata":{"name":"%s","uid":"10000000-0000-4000-8000-%012x","resourceVersion":"%d","creationTimestamp":"2026-11-01T10:00:00Z",`+
		`"labels":{%s},"managedFields":%s},"spec":{"podCIDR":"10.%d.%d.0/24"},"status":{"capacity":{"cpu":"16","memory":"64Gi","pods":"110"},`+
		`"allocatable":{"cpu":"16","memory":"64Gi","pods":"110"},"conditions":[%s],"addresses":[{"type":"InternalIP","address":"10.0.%d.%d"}],`+
		`"nodeInfo":{"machineID":"%032x","kernelVersion":"6.18.0","osImage":"Debian GNU/Linux 12","containerRuntimeVersion":"containerd://1.6.20",`+
		`"kubeletVersion":"v1.36.3","operatingSystem":"linux","architecture":"amd64"},"images":[%s]}}`,
		nodeName(i), i, 100+i, strings.Join(labels, ","), managedFields(2, 23), i/250, i%250, strings.Join(conditions, ","), i/250, i%250, i,
		strings.Join(images, ","))
}

// kubeletLease is one Lease with a gap for the resourceVersion and one for the renew time.
func kubeletLease(i int, version int64, renewed string) []byte {
	return fmt.Appendf(nil, `"metadata":{"name":"%s","namespace":"kube-node-lease","uid":"20000000-0000-4000-8000-%012x","resourceVersion":"%d",`+
		`"creationTimestamp":"2026-11-01T10:00:00Z","ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"%s","uid":"10000000-0000-4000-8000-%012x"}]},`+
		`"spec":{"holderIdentity":"%s","leaseDurationSeconds":40,"renewTime":"%s"}}`, nodeName(i), i, version, nodeName(i), i, nodeName(i), renewed)
}

// pendingPod is the pod of a filter request, about 6 kB: the scheduler drops managedFields before it asks.
func pendingPod() []byte {
	return fmt.Appendf(nil, `{"metadata":{"name":"web-7d4b9c6f5d-x7k2p","generateName":"web-7d4b9c6f5d-","namespace":"shop","uid":"30000000-0000-4000-8000-000000000001",`+
		`"resourceVersion":"123456","creationTimestamp":"2026-11-01T10:00:00Z","labels":{"app.kubernetes.io/name":"web","app.kubernetes.io/part-of":"shop",`+
		`"pod-template-hash":"7d4b9c6f5d"},"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web-7d4b9c6f5d",`+
		`"uid":"40000000-0000-4000-8000-000000000001","controller":true,"blockOwnerDeletion":true}]},"spec":{"volumes":[{"name":"configuration",`+
		`"configMap":{"name":"web","defaultMode":420}}],"containers":%s,"restartPolicy":"Always","terminationGracePeriodSeconds":30,`+
		`"dnsPolicy":"ClusterFirst","serviceAccountName":"default","securityContext":{},"schedulerName":"default-scheduler","tolerations":`+
		`[{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":300},{"key":"node.kubernetes.io/unreachable",`+
		`"operator":"Exists","effect":"NoExecute","tolerationSeconds":300}],"priority":0,"enableServiceLinks":true,"preemptionPolicy":"PreemptLowerPriority"},`+
		`"status":{"phase":"Pending","qosClass":"Burstable"}}`, containers(2, 24))
}

// filterBody is one request of kube-scheduler in names mode.
func filterBody(podJSON []byte, names []string) []byte {
	var body bytes.Buffer
	body.WriteString(`{"Pod":`)
	body.Write(podJSON)
	body.WriteString(`,"Nodes":null,"NodeNames":["`)
	body.WriteString(strings.Join(names, `","`))
	body.WriteString(`"]}`)
	return body.Bytes()
}
