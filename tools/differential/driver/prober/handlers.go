// One probe by the kubelet's prober and its own handlers. Commands are answered by the history; connections go to three
// servers of ours on loopback, whose ports stand in a history as numbers that no port has.
package prober

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
	remote "k8s.io/cri-client/pkg"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	utilexec "k8s.io/utils/exec"
	"readygate.dev/testbed/kube/onebyte"
)

// Ports of histories: of a server on both families, of one on IPv4 alone, of one on IPv6 alone.
const portOfBoth, portOfFour, portOfSix = "70001", "70002", "70003"

type handlersHistory struct {
	Pod  v1.Pod `json:"pod"` // of one container
	Type string `json:"type"`
	Runs []run  `json:"runs"` // what becomes of the command, one attempt after the other
	Script *dialogue `json:"script"` // grpc
}

type run struct {
	Code   int    `json:"code"`
	Stdout string `json:"stdout"` // one character a byte
	Stderr string `json:"stderr"`
	Fault  string `json:"fault"`
}

type handlersAnswer struct {
	Result  string   `json:"result"`
	Errored bool     `json:"errored"`
	Events  []string `json:"events"` // one character a byte
	Asked   []string `json:"asked"`
}

// The runtime of a history, told as kuberuntime's RunInContainer and the client under it tell it.
type runner struct {
	runs  []run
	asked []string
}

func (r *runner) RunInContainer(_ context.Context, _ kubecontainer.ContainerID, command []string, timeout time.Duration) ([]byte, error) {
	one := r.runs[0]
	if len(r.runs) > 1 {
		r.runs = r.runs[1:]
	}
	asked, err := json.Marshal(append([]string{fmt.Sprint(timeout.Seconds())}, command...))
	if err != nil {
		return nil, err
	}
	r.asked = append(r.asked, string(asked))
	switch one.Fault {
	case "timeout":
		return nil, fmt.Errorf("%w: %q timed out after %s", remote.ErrCommandTimedOut, strings.Join(command, " "), timeout)
	case "gone":
		return nil, errors.New("the runtime is gone")
	}
	if one.Code != 0 {
		err = utilexec.CodeExitError{Err: errors.New("it exited"), Code: one.Code}
	}
	return append(onebyte.Bytes(one.Stdout), onebyte.Bytes(one.Stderr)...), err
}

// The servers answer whatever asks by HTTP; a probe that only connects finds them too. Where one does not answer nobody
// else is to: other processes have servers in this network, too.
var ports = sync.OnceValue(func() [3]string {
	return [3]string{
		paired("127.0.0.1", func(port string) bool { return serve(net.JoinHostPort("::1", port)) != "" }),
		paired("127.0.0.1", keepSix),
		paired("::1", keepFour),
	}
})

// paired is the port of a server at this address, of which take has the other family.
func paired(address string, take func(port string) bool) string {
	for range 100 {
		if port := serve(net.JoinHostPort(address, "0")); take(port) {
			return port
		}
	}
	panic("no port is free on both families")
}

// Nobody listens there from now on: it is bound, and the descriptor is never closed. False: somebody does.
func keepFour(port string) bool {
	return keep(syscall.AF_INET, &syscall.SockaddrInet4{Port: numberOf(port), Addr: [4]byte{127, 0, 0, 1}})
}

func keepSix(port string) bool {
	return keep(syscall.AF_INET6, &syscall.SockaddrInet6{Port: numberOf(port), Addr: [16]byte{15: 1}})
}

func numberOf(port string) int {
	number, err := strconv.Atoi(port)
	if err != nil {
		panic(err)
	}
	return number
}

func keep(family int, address syscall.Sockaddr) bool {
	descriptor, err := syscall.Socket(family, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		panic(err)
	}
	if syscall.Bind(descriptor, address) != nil {
		syscall.Close(descriptor)
		return false
	}
	return true
}

// Names stand in files or are none: nobody outside is asked.
func init() {
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("nobody is asked for names")
	}}
}

func serve(address string) string {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return ""
	}
	go http.Serve(listener, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	return strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
}

// AnswerHandlers makes one probe, with its retries.
func AnswerHandlers(raw json.RawMessage) (any, error) {
	names := strings.NewReplacer(ports()[0], portOfBoth, ports()[1], portOfFour, ports()[2], portOfSix)
	for place, name := range []string{portOfBoth, portOfFour, portOfSix} {
		raw = bytes.ReplaceAll(raw, []byte(name), []byte(ports()[place]))
	}
	raw = bytes.ReplaceAll(raw, []byte(portOfScript), []byte(scripted()))
	var given handlersHistory
	if err := json.Unmarshal(raw, &given); err != nil {
		return nil, err
	}
	if given.Script != nil {
		play(given.Script)
	}
	kinds := map[string]probeType{"Liveness": liveness, "Readiness": readiness, "Startup": startup}
	commands, events := &runner{runs: given.Runs}, record.NewFakeRecorder(10)
	container := given.Pod.Spec.Containers[0]
	id := kubecontainer.ContainerID{Type: "test", ID: "1"}
	result, err := newProber(commands, events).probe(context.Background(), kinds[given.Type], &given.Pod, given.Pod.Status, container, id)
	said := handlersAnswer{Result: result.String(), Errored: err != nil, Events: []string{}, Asked: append([]string{}, commands.asked...)}
	if given.Script != nil {
		given.Script.mutex.Lock()
		said.Asked = append(said.Asked, given.Script.asked...)
		given.Script.mutex.Unlock()
	}
	for len(events.Events) > 0 {
		said.Events = append(said.Events, onebyte.Text(names.Replace(<-events.Events)))
	}
	return said, nil
}
