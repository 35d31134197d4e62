// The probe handler for httpGet, over connections in memory: replies are bytes of the history, one a connection. Time is
// that of a bubble, where a timeout costs none: it passes when nobody there has anything to do.
package httpprobe

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	_ "unsafe" // for the bubble

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/probe"
	"readygate.dev/testbed/kube/onebyte"
)

// What testing/synctest has for tests alone: runs a function, with a clock that none but its own goroutines wait for.
//
//go:linkname bubble internal/synctest.Run
func bubble(func())

type history struct {
	Get            v1.HTTPGetAction `json:"get"`
	PodIP          string           `json:"podIP"`
	TimeoutSeconds int              `json:"timeoutSeconds"`
	Replies        []reply          `json:"replies"`
}

type answered struct {
	Result  probe.Result `json:"result"`
	Output  string       `json:"output"`
	Errored bool         `json:"errored"`
	Dialled []string     `json:"dialled"`
	Sent    []string     `json:"sent"`
}

// A server that has its whole answer ready once the request is there, and then ends.
type connection struct {
	mutex   sync.Mutex
	wake    *sync.Cond
	request bytes.Buffer
	reply   *bytes.Reader
	closed  bool
}

// asked: whether a request is there, or a ClientHello, which is one to a server that speaks no TLS.
func asked(data []byte) bool {
	return bytes.HasSuffix(data, []byte("\r\n\r\n")) || isHello(data)
}

func isHello(data []byte) bool { return len(data) > 0 && data[0] == 0x16 }

type address struct{}

func (address) Network() string { return "tcp" }
func (address) String() string  { return "127.0.0.1:1" }

func (c *connection) Read(to []byte) (int, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for !c.closed && !asked(c.request.Bytes()) {
		c.wake.Wait()
	}
	if c.closed {
		return 0, net.ErrClosed
	}
	if c.reply.Len() == 0 {
		return 0, io.EOF
	}
	return c.reply.Read(to)
}

func (c *connection) Write(data []byte) (int, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	defer c.wake.Broadcast()
	return c.request.Write(data)
}

func (c *connection) Close() error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.closed = true
	c.wake.Broadcast()
	return nil
}

func (c *connection) LocalAddr() net.Addr              { return address{} }
func (c *connection) RemoteAddr() net.Addr             { return address{} }
func (c *connection) SetDeadline(time.Time) error      { return nil }
func (c *connection) SetReadDeadline(time.Time) error  { return nil }
func (c *connection) SetWriteDeadline(time.Time) error { return nil }

type network struct {
	mutex       sync.Mutex
	replies     []reply
	dialled     []string
	connections []interface{ sent() string }
	servers     sync.WaitGroup
}

func (c *connection) sent() string {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return shown(c.request.Bytes())
}

// A ClientHello is each library's own.
func shown(request []byte) string {
	if isHello(request) {
		return "ClientHello"
	}
	return onebyte.Text(request)
}

func (n *network) dial(_ context.Context, _, to string) (net.Conn, error) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.dialled = append(n.dialled, to)
	if len(n.replies) == 0 {
		return nil, errors.New("connect: connection refused")
	}
	next := n.replies[0]
	n.replies = n.replies[1:]
	if next.Ending != "" {
		made := &server{reply: next}
		n.connections = append(n.connections, made)
		return made.start(), nil
	}
	made := &connection{reply: bytes.NewReader(onebyte.Bytes(next.Text))}
	made.wake = sync.NewCond(&made.mutex)
	n.connections = append(n.connections, made)
	return made, nil
}

// Put in where upstream says how connections are opened.
var memory *network

func memoryDial(ctx context.Context, kind, to string) (net.Conn, error) { return memory.dial(ctx, kind, to) }

// WithServers lets somebody else ask servers of a history, and tells whom it dialled and what it sent.
func WithServers(replies json.RawMessage, do func(dial func(ctx context.Context, kind, to string) (net.Conn, error))) (dialled, sent []string, err error) {
	served := &network{}
	memory = served
	if err := json.Unmarshal(replies, &served.replies); err != nil {
		return nil, nil, err
	}
	bubble(func() {
		do(served.dial)
		served.servers.Wait()
	})
	dialled, sent = append([]string{}, served.dialled...), []string{}
	for _, made := range served.connections {
		sent = append(sent, made.sent())
	}
	return dialled, sent, nil
}

// Answer makes one probe.
func Answer(given json.RawMessage) (any, error) {
	var h history
	if err := json.Unmarshal(given, &h); err != nil {
		return nil, err
	}
	if h.Get.Path == "" {
		h.Get.Path = "/" // as the API server defaults it
	}
	said := answered{Dialled: []string{}, Sent: []string{}}
	request, err := NewRequestForHTTPGetAction(&h.Get, &v1.Container{}, h.PodIP, "probe")
	if err != nil {
		said.Result, said.Errored, said.Output = probe.Unknown, true, onebyte.Text(err.Error())
		return said, nil
	}
	if agents := request.Header["User-Agent"]; len(agents) == 1 && len(agents[0]) > 10 && agents[0][:10] == "kube-probe" {
		request.Header["User-Agent"] = []string{"kube-probe/1.36"} // the release is stamped in by a flag
	}
	if h.TimeoutSeconds == 0 {
		h.TimeoutSeconds = 20
	}
	memory = &network{replies: h.Replies}
	bubble(func() {
		prober := New(false)
		result, output, err := prober.Probe(request, time.Duration(h.TimeoutSeconds)*time.Second)
		prober.(httpProber).transport.CloseIdleConnections()
		said.Result, said.Errored = result, err != nil
		if said.Output = onebyte.Text(output); err != nil {
			said.Output = onebyte.Text(err.Error())
		}
		memory.servers.Wait() // what they sleep for passes only as long as somebody waits
	})
	said.Dialled = append(said.Dialled, memory.dialled...)
	for _, made := range memory.connections {
		said.Sent = append(said.Sent, made.sent())
	}
	return said, nil
}

var _ http.Handler
