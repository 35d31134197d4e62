// A server that speaks as much HTTP/2 as a history has bytes for.
package prober

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"

	"readygate.dev/testbed/kube/onebyte"
)

// Port of histories: of the server that answers by script.
const portOfScript = "70004"

const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// What is sent at once, and when the request is there; and what was asked.
type dialogue struct {
	Greeting string   `json:"greeting"` // one character a byte
	Reply    []string `json:"reply"`    // frame by frame

	mutex sync.Mutex
	asked []string
}

var (
	playing      *dialogue
	playingMutex sync.Mutex
)

func play(one *dialogue) {
	playingMutex.Lock()
	defer playingMutex.Unlock()
	playing = one
}

var scripted = sync.OnceValue(func() string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			playingMutex.Lock()
			one := playing
			playingMutex.Unlock()
			go one.serve(connection.(*net.TCPConn))
		}
	}()
	return strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
})

// It reads on until the other side ends: nothing that was sent is lost.
func (s *dialogue) serve(connection *net.TCPConn) {
	defer connection.Close()
	connection.Write(onebyte.Bytes(s.Greeting))
	if _, err := io.CopyN(io.Discard, connection, int64(len(preface))); err != nil {
		return
	}
	asked := []byte{}
	for {
		head := make([]byte, 9)
		if _, err := io.ReadFull(connection, head); err != nil {
			return
		}
		payload := make([]byte, binary.BigEndian.Uint32(append([]byte{0}, head[:3]...)))
		if _, err := io.ReadFull(connection, payload); err != nil {
			return
		}
		kind, flags := head[3], head[4]
		if kind == 0 {
			asked = append(asked, payload...)
		}
		if kind == 4 && flags&1 == 0 {
			connection.Write([]byte{0, 0, 0, 4, 1, 0, 0, 0, 0})
		}
		if kind <= 1 && flags&1 != 0 {
			s.mutex.Lock()
			s.asked = append(s.asked, fmt.Sprintf("%x", asked))
			s.mutex.Unlock()
			connection.Write(onebyte.Bytes(strings.Join(s.Reply, "")))
		}
	}
}
