// Package hooks runs one lifecycle hook of a container as the kubelet's handlers do.
package hooks

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
	probehttp "k8s.io/kubernetes/pkg/probe/http"
	utilexec "k8s.io/utils/exec"
	"readygate.dev/testbed/kube/httpprobe"
	"readygate.dev/testbed/kube/onebyte"
)

type history struct {
	Pod       v1.Pod          `json:"pod"` // of one container, its hook is postStart
	IP        string          `json:"ip"`
	Replies   json.RawMessage `json:"replies"`
	Run       run             `json:"run"`       // what becomes of a command
	Cancelled *float64        `json:"cancelled"` // seconds after which nobody wants it any more
}

type run struct {
	Code   int    `json:"code"`
	Stdout string `json:"stdout"` // one character a byte
	Stderr string `json:"stderr"`
	Gone   bool   `json:"gone"`
}

type answered struct {
	Fails   bool     `json:"fails"`
	Message string   `json:"message"` // one character a byte
	Events  []string `json:"events"`
	Asked   []string `json:"asked"`
	Dialled []string `json:"dialled"`
	Sent    []string `json:"sent"`
}

// The runtime, told as kuberuntime's RunInContainer and the client under it tell it; and who knows the pod's address.
type runtime struct {
	history
	asked []string
}

func (r *runtime) RunInContainer(_ context.Context, _ kubecontainer.ContainerID, command []string, _ time.Duration) ([]byte, error) {
	asked, err := json.Marshal(command)
	if err != nil {
		return nil, err
	}
	r.asked = append(r.asked, string(asked))
	if r.Run.Gone {
		return nil, errors.New("the runtime is gone")
	}
	stdout, stderr := onebyte.Bytes(r.Run.Stdout), onebyte.Bytes(r.Run.Stderr)
	if r.Run.Code != 0 {
		err = utilexec.CodeExitError{
			Err:  fmt.Errorf("command '%s' exited with %d: %s", strings.Join(command, " "), r.Run.Code, stderr),
			Code: r.Run.Code,
		}
	}
	return append(stdout, stderr...), err
}

func (r *runtime) GetPod(context.Context, types.UID) (*kubecontainer.Pod, error) {
	return &kubecontainer.Pod{}, nil
}

func (r *runtime) GetPodStatus(context.Context, *kubecontainer.Pod) (*kubecontainer.PodStatus, error) {
	status := &kubecontainer.PodStatus{}
	if r.IP != "" {
		status.IPs = []string{r.IP}
	}
	return status, nil
}

// The kubelet's client for hooks (NewMainKubelet), but that each connection is used once: how long others live on is not
// the history's.
type doer struct{ client *http.Client }

func (d doer) Do(request *http.Request) (*http.Response, error) {
	if agents := request.Header["User-Agent"]; len(agents) == 1 && strings.HasPrefix(agents[0], "kube-lifecycle/") {
		request.Header["User-Agent"] = []string{"kube-lifecycle/1.36"} // the release is stamped in by a flag
	}
	return d.client.Do(request)
}

// Answer runs the hook of the pod's container.
func Answer(raw json.RawMessage) (any, error) {
	r := &runtime{asked: []string{}}
	if err := json.Unmarshal(raw, &r.history); err != nil {
		return nil, err
	}
	container := &r.Pod.Spec.Containers[0]
	hook := &v1.LifecycleHandler{}
	if container.Lifecycle != nil && container.Lifecycle.PostStart != nil {
		hook = container.Lifecycle.PostStart
	}
	if hook.HTTPGet != nil && hook.HTTPGet.Path == "" {
		hook.HTTPGet.Path = "/" // as the API server defaults it
	}
	events := record.NewFakeRecorder(10)
	said := answered{Events: []string{}}
	dialled, sent, err := httpprobe.WithServers(r.Replies, func(dial func(ctx context.Context, kind, to string) (net.Conn, error)) {
		transport := &http.Transport{
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DialContext: dial, DisableKeepAlives: true,
		}
		client := doer{&http.Client{Transport: transport, CheckRedirect: probehttp.RedirectChecker(false)}}
		ctx := context.Background()
		if r.Cancelled != nil {
			limited, cancel := context.WithTimeout(ctx, time.Duration(*r.Cancelled*float64(time.Second)))
			defer cancel()
			ctx = limited
		}
		runner := lifecycle.NewHandlerRunner(client, r, r, events)
		message, err := runner.Run(ctx, kubecontainer.ContainerID{Type: "test", ID: "1"}, &r.Pod, container, hook)
		said.Fails, said.Message = err != nil, onebyte.Text(message)
	})
	if err != nil {
		return nil, err
	}
	said.Asked, said.Dialled, said.Sent = r.asked, dialled, sent
	for len(events.Events) > 0 {
		said.Events = append(said.Events, <-events.Events)
	}
	return said, nil
}
