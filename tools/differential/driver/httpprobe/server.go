// Servers of a history that take their time, or speak TLS.
package httpprobe

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"math/big"
	"net"
	"sync"
	"syscall"
	"time"

	"readygate.dev/testbed/kube/onebyte"
)

// A reply is a text, of a server that has it ready and ends, or what a server does in time.
type reply struct {
	Text string `json:"-"` // one character a byte

	TLS       string  `json:"tls"`       // what kind of it; "" for none
	Handshake float64 `json:"handshake"` // seconds before it reads a ClientHello
	Parts     []part  `json:"parts"`
	Ending    string  `json:"ending"` // close, silent, reset; with TLS drop: without a word
}

type part struct {
	After float64 `json:"after"` // seconds
	Text  string  `json:"text"`  // one character a byte
}

func (r *reply) UnmarshalJSON(data []byte) error {
	if data[0] == '"' {
		return json.Unmarshal(data, &r.Text)
	}
	type plain reply
	return json.Unmarshal(data, (*plain)(r))
}

func pass(seconds float64) { time.Sleep(time.Duration(seconds * float64(time.Second))) }

type server struct {
	reply
	mutex   sync.Mutex
	told    string // sent() of it
	isReset bool
}

func (s *server) sent() string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.told
}

// The client's end.
type end struct {
	net.Conn
	server *server
}

func (e end) Read(to []byte) (int, error) {
	count, err := e.Conn.Read(to)
	if err == io.EOF {
		e.server.mutex.Lock()
		defer e.server.mutex.Unlock()
		if e.server.isReset {
			err = syscall.ECONNRESET
		}
	}
	return count, err
}

// The server's end: what a client sends is taken at once, as a kernel takes it, so a client never waits for that.
type buffered struct {
	net.Conn
	mutex sync.Mutex
	wake  *sync.Cond
	data  []byte
	err   error
}

func (b *buffered) take() {
	block := make([]byte, 16*1024)
	for b.err == nil {
		count, err := b.Conn.Read(block)
		b.mutex.Lock()
		b.data, b.err = append(b.data, block[:count]...), err
		b.wake.Broadcast()
		b.mutex.Unlock()
	}
}

func (b *buffered) Read(to []byte) (int, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	for len(b.data) == 0 && b.err == nil {
		b.wake.Wait()
	}
	if len(b.data) == 0 {
		return 0, b.err
	}
	count := copy(to, b.data)
	b.data = b.data[count:]
	return count, nil
}

func (s *server) start() net.Conn {
	client, piped := net.Pipe()
	own := &buffered{Conn: piped}
	own.wake = sync.NewCond(&own.mutex)
	memory.servers.Go(own.take)
	memory.servers.Go(func() {
		defer own.Close()
		if s.Ending == "silent" {
			defer io.Copy(io.Discard, own) // a client's goodbye is not answered
		}
		if s.TLS == "" {
			s.serve(own)
			return
		}
		pass(s.Handshake)
		secure := tls.Server(own, configs()[s.TLS].Clone())
		if secure.Handshake() == nil {
			s.mutex.Lock()
			s.told = "TLS for " + secure.ConnectionState().ServerName + "\n"
			s.mutex.Unlock()
			s.serve(secure)
		}
	})
	return end{client, s}
}

// Reads the request, writes the parts, and ends.
func (s *server) serve(connection net.Conn) {
	var request []byte
	block := make([]byte, 16*1024)
	for !asked(request) {
		count, err := connection.Read(block)
		request = append(request, block[:count]...)
		s.mutex.Lock()
		s.told += shown(block[:count])
		s.mutex.Unlock()
		if err != nil {
			return
		}
	}
	memory.servers.Go(func() { io.Copy(io.Discard, connection) }) // what a client says at its end
	for _, part := range s.Parts {
		pass(part.After)
		if _, err := connection.Write(onebyte.Bytes(part.Text)); err != nil {
			return
		}
	}
	switch s.Ending {
	case "close":
		connection.Close()
	case "reset":
		s.mutex.Lock()
		s.isReset = true
		s.mutex.Unlock()
	}
}

// By kind of TLS.
var configs = sync.OnceValue(func() map[string]*tls.Config {
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	short, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		panic(err)
	}
	year := 365 * 24 * time.Hour
	good := certificate(curve, time.Now().Add(year))
	rsaOnly := certificate(short, time.Now().Add(year))
	return map[string]*tls.Config{
		"self-signed": {Certificates: good},
		"expired":     {Certificates: certificate(curve, time.Now().Add(-year))},
		"short key":   {Certificates: rsaOnly},
		"1.2":         {Certificates: good, MaxVersion: tls.VersionTLS12},
		"1.1":         {Certificates: good, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11},
		"without forward secrecy": {
			Certificates: rsaOnly, MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_RSA_WITH_AES_128_GCM_SHA256},
		},
		"CBC": {
			Certificates: rsaOnly, MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA},
		},
		"asks who it is": {Certificates: good, ClientAuth: tls.RequireAnyClientCert},
	}
})

func certificate(key crypto.Signer, notAfter time.Time) []tls.Certificate {
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: notAfter.Add(-100 * 24 * time.Hour), NotAfter: notAfter}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		panic(err)
	}
	return []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}
}
