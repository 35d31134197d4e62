// The plugin manager's reconciler, turn by turn, over sockets and plugins of a history's making.
package reconciler

import (
	"context"
	"encoding/json"
	"errors"
	"sort"
	"strings"
	"time"

	"google.golang.org/grpc"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
	"k8s.io/kubernetes/pkg/kubelet/pluginmanager/cache"
	"readygate.dev/testbed/kube/exponentialbackoff"
	"readygate.dev/testbed/kube/goroutinemap"
	"readygate.dev/testbed/kube/operationexecutor"
)

// So often one step is looked at again, which each that started something is.
const turns = 4

type history struct {
	Steps []step `json:"steps"`
}

// Sockets: what lies there, the number of its making each. Slow: sockets whose registration is not over yet.
type step struct {
	Wall    float64           `json:"wall"`
	Sockets map[string]int    `json:"sockets"`
	Plugins map[string]plugin `json:"plugins"`
	Slow    []string          `json:"slow"`
}

// Fails: connect, info, notify, or nothing.
type plugin struct {
	Type  string `json:"type"`
	Name  string `json:"name"`
	Fails string `json:"fails"`
}

type scene struct {
	now   step
	calls map[string][][]string
}

func (s *scene) call(socket string, words ...string) {
	s.calls[socket] = append(s.calls[socket], words)
}

type asked struct {
	*scene
	socket string
}

func (a asked) GetInfo(context.Context, *registerapi.InfoRequest, ...grpc.CallOption) (*registerapi.PluginInfo, error) {
	found := a.now.Plugins[a.socket]
	if found.Fails == "info" {
		return nil, errors.New("no answer")
	}
	return &registerapi.PluginInfo{Type: found.Type, Name: found.Name, SupportedVersions: []string{a.socket}}, nil
}

func (a asked) NotifyRegistrationStatus(_ context.Context, said *registerapi.RegistrationStatus, _ ...grpc.CallOption) (*registerapi.RegistrationStatusResponse, error) {
	word := "refused"
	if said.PluginRegistered && said.Error == "" {
		word = "registered"
	}
	a.call(a.socket, "told", word)
	if a.now.Plugins[a.socket].Fails == "notify" {
		return nil, errors.New("no answer")
	}
	return &registerapi.RegistrationStatusResponse{}, nil
}

// The consumer of all plugins of one type. Its endpoint is the socket, as plugins here have none of their own.
type consumer struct{ *scene }

func (c consumer) ValidatePlugin(name, endpoint string, _ []string) error {
	c.call(endpoint, "validate", name)
	if strings.HasPrefix(name, "bad") {
		return errors.New("not valid")
	}
	return nil
}

func (c consumer) RegisterPlugin(name, endpoint string, _ []string, _ *time.Duration) error {
	c.call(endpoint, "register", name)
	if strings.HasPrefix(name, "no") {
		return errors.New("not taken")
	}
	return nil
}

func (c consumer) DeRegisterPlugin(name, endpoint string) { c.call(endpoint, "deregister", name) }

// Answer tells what was done with each socket, and which plugins are registered after each step.
func Answer(raw json.RawMessage) (any, error) {
	var given history
	if err := json.Unmarshal(raw, &given); err != nil {
		return nil, err
	}
	s := &scene{}
	desired, actual := cache.NewDesiredStateOfWorld(), cache.NewActualStateOfWorld()
	operationexecutor.Answering = func(socket string) (registerapi.RegistrationClient, error) {
		if found, is := s.now.Plugins[socket]; !is || found.Fails == "connect" {
			return nil, errors.New("nobody listens")
		}
		return asked{s, socket}, nil
	}
	goroutinemap.Take()
	rc := NewReconciler(operationexecutor.NewOperationExecutor(operationexecutor.NewOperationGenerator(nil)), 0, desired, actual).(*reconciler)
	rc.AddHandler("A", consumer{s})
	ctx := context.Background()
	seen, waiting, answers := map[string]int{}, []goroutinemap.Started{}, []any{}
	for _, s.now = range given.Steps {
		s.calls = map[string][][]string{}
		exponentialbackoff.Set(time.UnixMilli(int64(s.now.Wall * 1000)).UTC())
		for socket := range seen {
			if _, is := s.now.Sockets[socket]; !is {
				desired.RemovePlugin(socket)
				delete(seen, socket)
			}
		}
		for socket, number := range s.now.Sockets {
			if before, is := seen[socket]; !is || before != number {
				if err := desired.AddOrUpdatePlugin(ctx, socket); err != nil {
					return nil, err
				}
				seen[socket] = number
			}
		}
		for turn := 0; turn < turns; turn++ {
			if turn > 0 || len(waiting) == 0 {
				rc.reconcile(ctx)
			}
			waiting = append(waiting, goroutinemap.Take()...)
			waiting = s.run(waiting, actual)
		}
		registered := []string{}
		for _, found := range actual.GetRegisteredPlugins() {
			registered = append(registered, found.SocketPath+" "+found.Name)
		}
		sort.Strings(registered)
		answers = append(answers, map[string]any{"calls": s.calls, "registered": registered})
	}
	return answers, nil
}

// Of a slow socket nothing is run but the end of one that is registered. It gives what still waits.
func (s *scene) run(waiting []goroutinemap.Started, actual cache.ActualStateOfWorld) []goroutinemap.Started {
	var left []goroutinemap.Started
	for _, one := range waiting {
		if s.slow(one.Name) && !registered(actual, one.Name) {
			left = append(left, one)
			continue
		}
		_ = one.Run()
	}
	return left
}

func (s *scene) slow(socket string) bool {
	for _, name := range s.now.Slow {
		if name == socket {
			return true
		}
	}
	return false
}

func registered(actual cache.ActualStateOfWorld, socket string) bool {
	for _, found := range actual.GetRegisteredPlugins() {
		if found.SocketPath == socket {
			return true
		}
	}
	return false
}
