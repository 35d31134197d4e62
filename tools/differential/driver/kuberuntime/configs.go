// What a container runtime is asked to make: the sandbox of a pod, and a container in it.
package kuberuntime

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	v1 "k8s.io/api/core/v1"
	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/klog/v2"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"readygate.dev/testbed/kube/kubelet"
)

type configsHistory struct {
	Pod     v1.Pod      `json:"pod"`
	Init    bool        `json:"init"` // of its first init container, else of its first container
	Attempt int         `json:"attempt"`
	Env     [][2]string `json:"env"`
	Image   string      `json:"image"` // as the runtime calls it
	Logs    []string    `json:"logs"`  // files in the container's folder of logs; what ends with / is a folder
}

// What is asked of the kubelet, of the runtime and of the system for it.
type surroundings struct {
	kubecontainer.RuntimeHelper
	internalapi.ImageManagerService
	kubecontainer.OSInterface
	env [][2]string
}

func (s surroundings) GenerateRunContainerOptions(context.Context, *v1.Pod, *v1.Container, string, []string, kubecontainer.ImageVolumes) (*kubecontainer.RunContainerOptions, func(), error) {
	options := &kubecontainer.RunContainerOptions{}
	for _, variable := range s.env {
		options.Envs = append(options.Envs, kubecontainer.EnvVar{Name: variable[0], Value: variable[1]})
	}
	return options, func() {}, nil
}

func (surroundings) GetPodDNS(context.Context, *v1.Pod) (*runtimeapi.DNSConfig, error) { return nil, nil }

func (surroundings) GetPodCgroupParent(*v1.Pod) string { return "" }

func (surroundings) GeneratePodHostNameAndDomain(logger klog.Logger, pod *v1.Pod) (string, string, error) {
	return kubelet.HostNameOf(logger, pod)
}

func (surroundings) GetExtraSupplementalGroupsForPod(*v1.Pod) []int64 { return nil }

func (surroundings) GetOrCreateUserNamespaceMappings(klog.Logger, *v1.Pod, string) (*runtimeapi.UserNamespace, error) {
	return nil, nil
}

func (surroundings) ImageStatus(context.Context, *runtimeapi.ImageSpec, bool) (*runtimeapi.ImageStatusResponse, error) {
	return &runtimeapi.ImageStatusResponse{}, nil
}

func (surroundings) MkdirAll(string, os.FileMode) error { return nil }

// Put in for the resources of a container, which the agent does not model.
func noResources(bool) *runtimeapi.LinuxContainerResources { return nil }

// AnswerConfigs makes both.
func AnswerConfigs(raw json.RawMessage) (any, error) {
	var given configsHistory
	if err := json.Unmarshal(raw, &given); err != nil {
		return nil, err
	}
	around := surroundings{env: given.Env}
	m := &kubeGenericRuntimeManager{
		runtimeHelper: around, imageService: around, osInterface: around, podLogsDirectory: "/logs",
	}
	if given.Pod.Spec.SecurityContext == nil {
		given.Pod.Spec.SecurityContext = &v1.PodSecurityContext{} // as the API server defaults it
	}
	ctx, pod := context.Background(), &given.Pod
	container := &pod.Spec.Containers[0]
	if given.Init {
		container = &pod.Spec.InitContainers[0]
	}
	sandbox, err := m.generatePodSandboxConfig(ctx, pod, uint32(given.Attempt))
	if err != nil {
		return nil, err
	}
	made, _, err := m.generateContainerConfig(ctx, container, pod, given.Attempt, "10.0.0.1", given.Image, []string{"10.0.0.1"}, nil, nil)
	if err != nil {
		return nil, err
	}
	restarts, err := restartsBy(given.Logs)
	if err != nil {
		return nil, err
	}
	said := map[string]any{"restarts": restarts}
	for name, one := range map[string]proto.Message{"sandbox": sandbox, "container": made} {
		text, err := protojson.Marshal(one)
		if err != nil {
			return nil, err
		}
		said[name] = json.RawMessage(text)
	}
	return said, nil
}

func restartsBy(logs []string) (int, error) {
	if len(logs) == 0 {
		return calcRestartCountByLogDir("/nowhere")
	}
	folder, err := os.MkdirTemp("", "readygate-logs-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(folder)
	for _, name := range logs {
		path := filepath.Join(folder, name)
		if name[len(name)-1] == '/' {
			err = os.Mkdir(path, 0o755)
		} else {
			err = os.WriteFile(path, nil, 0o644)
		}
		if err != nil {
			return 0, err
		}
	}
	return calcRestartCountByLogDir(folder)
}
