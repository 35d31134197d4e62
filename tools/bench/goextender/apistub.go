package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"flag"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// apistub answers list and watch of nodes, pods and leases from memory, so that the reader under test is what is slow.
//
//	POST /bench/rate?pods=N&leases=N&silent=N   how many updates a second it streams from now on; the first so many kubelets are silent
//	POST /bench/ready?from=N&to=N&ready=BOOL    turns these health pods over, all at once
//	POST /bench/away?for=DURATION&break=N       no listener and no connection for so long; meanwhile health pod N breaks
//	GET  /bench/events                          updates streamed and patches taken so far
type stub struct {
	namespace, daemonSet string
	version              atomic.Int64
	podRate, leaseRate   atomic.Int64
	silent               atomic.Int64
	sent, patches        atomic.Int64
	away                 chan time.Duration
	pods                 []stubPod
	nodes                [][]byte

	mu       sync.Mutex
	watchers map[string]map[chan []byte]bool
}

// stubPod is a pod in both its states; ready says which one is in force.
type stubPod struct {
	head, readyTail, brokenTail []byte
	ready                       bool
}

func (p *stubPod) tail() []byte {
	if p.ready {
		return p.readyTail
	}
	return p.brokenTail
}

func (p *stubPod) write(into []byte, version int64) []byte {
	into = append(into, p.head...)
	into = strconv.AppendInt(into, version, 10)
	return append(into, p.tail()...)
}

func (s *stub) items(resource string, from, to int) [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	page := make([][]byte, 0, to-from)
	for i := from; i < to; i++ {
		item := []byte{'{'}
		switch resource {
		case "pods":
			item = s.pods[i].write(item, int64(1000+i))
		case "nodes":
			item = append(item, s.nodes[i]...)
		case "leases":
			item = append(item, kubeletLease(i, int64(1000+i), stamp())...)
		}
		page = append(page, item)
	}
	return page
}

// kinds by resource; there is no DaemonSet and no ConfigMap.
var kinds = map[string]string{"pods": "Pod", "nodes": "Node", "leases": "Lease", "daemonsets": "DaemonSet", "configmaps": "ConfigMap"}

func stamp() string { return time.Now().UTC().Format("2006-01-02T15:04:05.000000Z") }

func (s *stub) list(w http.ResponseWriter, r *http.Request, resource string) {
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
	total := len(s.nodes)
	if resource == "daemonsets" || resource == "configmaps" {
		total = 0
	}
	to := total
	if limit > 0 && from+limit < total {
		to = from + limit
	}
	next := ""
	if to < total {
		next = fmt.Sprintf(`,"continue":"%d","remainingItemCount":%d`, to, total-to)
	}
	kind := kinds[resource] + "List"
	apiVersion := "v1"
	if resource == "leases" {
		apiVersion = "coordination.k8s.io/v1"
	}
	body := fmt.Appendf(nil, `{"kind":"%s","apiVersion":"%s","metadata":{"resourceVersion":"%d"%s},"items":[`, kind, apiVersion, s.version.Load(), next)
	for i, item := range s.items(resource, from, to) {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, item...)
	}
	body = append(body, ']', '}', '\n')
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body)
}

func (s *stub) watch(w http.ResponseWriter, r *http.Request, resource string) {
	events := make(chan []byte, 4096)
	s.mu.Lock()
	s.watchers[resource][events] = true
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.watchers[resource], events)
		s.mu.Unlock()
	}()
	seconds, _ := strconv.Atoi(r.URL.Query().Get("timeoutSeconds"))
	if seconds <= 0 {
		seconds = 300
	}
	end := time.After(time.Duration(seconds) * time.Second)
	bookmark := time.NewTicker(20 * time.Second)
	defer bookmark.Stop()
	w.Header().Set("Content-Type", "application/json")
	flush := w.(http.Flusher).Flush
	flush()
	kind := kinds[resource]
	for {
		select {
		case line := <-events:
			if line == nil { // fell too far behind, as the API server's watch cache ends such a stream
				return
			}
			if _, err := w.Write(line); err != nil {
				return
			}
		case <-bookmark.C:
			fmt.Fprintf(w, `{"type":"BOOKMARK","object":{"kind":"%s","metadata":{"resourceVersion":"%d"}}}`+"\n", kind, s.version.Load())
		case <-end:
			return
		case <-r.Context().Done():
			return
		}
		flush()
	}
}

func (s *stub) broadcast(resource string, line []byte) {
	for events := range s.watchers[resource] {
		select {
		case events <- line:
		default:
			delete(s.watchers[resource], events)
			close(events)
		}
	}
	s.sent.Add(1)
}

func (s *stub) broadcastPod(p *stubPod) {
	line := append(make([]byte, 0, 18_500), `{"type":"MODIFIED","object":{"kind":"Pod","apiVersion":"v1",`...)
	s.broadcast("pods", append(p.write(line, s.version.Add(1)), '}', '\n'))
}

// turn makes these health pods ready or not, in one go.
func (s *stub) turn(from, to int, ready bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := max(from, 0); i < min(to, len(s.pods)); i++ {
		s.pods[i].ready = ready
		s.broadcastPod(&s.pods[i])
	}
}

// stream sends updates evenly. Every flipEvery-th pod update turns a node's verdict over, the others change nothing that matters.
func (s *stub) stream(flipEvery int) {
	const beat = 2 * time.Millisecond
	var owedPods, owedLeases float64
	nextPod, nextLease, updates := 0, 0, 0
	for range time.Tick(beat) {
		owedPods = min(owedPods+float64(s.podRate.Load())*beat.Seconds(), 100)
		owedLeases = min(owedLeases+float64(s.leaseRate.Load())*beat.Seconds(), 100)
		s.mu.Lock()
		for ; owedPods >= 1; owedPods-- {
			p := &s.pods[nextPod]
			updates++
			if flipEvery > 0 && updates%flipEvery == 0 {
				p.ready = !p.ready
			}
			s.broadcastPod(p)
			nextPod = (nextPod + 1) % len(s.pods)
		}
		for ; owedLeases >= 1; owedLeases-- {
			nextLease = max(nextLease, int(s.silent.Load()))
			line := append([]byte(nil), `{"type":"MODIFIED","object":{"kind":"Lease","apiVersion":"coordination.k8s.io/v1",`...)
			line = append(append(line, kubeletLease(nextLease, s.version.Add(1), stamp())...), '}', '\n')
			s.broadcast("leases", line)
			nextLease = (nextLease + 1) % len(s.nodes)
		}
		s.mu.Unlock()
	}
}

func (s *stub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.Trim(r.URL.Path, "/")
	resource := path[strings.LastIndex(path, "/")+1:]
	switch {
	case path == "bench/rate":
		pods, _ := strconv.ParseInt(r.URL.Query().Get("pods"), 10, 64)
		leases, _ := strconv.ParseInt(r.URL.Query().Get("leases"), 10, 64)
		silent, _ := strconv.ParseInt(r.URL.Query().Get("silent"), 10, 64)
		s.silent.Store(min(silent, int64(len(s.nodes)-1)))
		s.podRate.Store(pods)
		s.leaseRate.Store(leases)
	case path == "bench/ready":
		from, _ := strconv.Atoi(r.URL.Query().Get("from"))
		to, _ := strconv.Atoi(r.URL.Query().Get("to"))
		s.turn(from, to, r.URL.Query().Get("ready") == "true")
	case path == "bench/away":
		how, err := time.ParseDuration(r.URL.Query().Get("for"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		broken, _ := strconv.Atoi(r.URL.Query().Get("break"))
		time.AfterFunc(how/2, func() { s.turn(broken, broken+1, false) })
		s.away <- how
	case path == "bench/events":
		fmt.Fprintf(w, `{"sent":%d,"patches":%d}`, s.sent.Load(), s.patches.Load())
	case r.Method == http.MethodPatch:
		s.patches.Add(1)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"kind":"Node","apiVersion":"v1","metadata":{"name":"%s","resourceVersion":"%d"}}`, resource, s.version.Load())
	case r.Method == http.MethodGet && s.watchers[resource] != nil:
		if r.URL.Query().Get("watch") == "true" || r.URL.Query().Get("watch") == "1" {
			s.watch(w, r, resource)
		} else {
			s.list(w, r, resource)
		}
	default:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
	}
}

func apistub(arguments []string) error {
	flags := flag.NewFlagSet("apistub", flag.ExitOnError)
	listen := flags.String("listen", "127.0.0.1:0", "address")
	nodes := flags.Int("nodes", 5000, "nodes, each with one health pod and one Lease")
	broken := flags.Int("broken-every", 50, "each so many-th health pod is not Ready")
	flip := flags.Int("flip-every", 250, "each so many-th pod update turns its pod's readiness over; 0: none")
	namespace := flags.String("namespace", "readygate-system", "of the health pods")
	daemonSet := flags.String("daemon-set", "readygate-agent", "owner of the health pods")
	caFile := flags.String("ca-file", "", "speak TLS with a certificate made at start and written here")
	_ = flags.Parse(arguments)
	exitWithParent()
	s := &stub{namespace: *namespace, daemonSet: *daemonSet,
		away:     make(chan time.Duration, 1),
		watchers: map[string]map[chan []byte]bool{}}
	for resource := range kinds {
		s.watchers[resource] = map[chan []byte]bool{}
	}
	s.version.Store(int64(2000 + *nodes))
	for i := range *nodes {
		head, ready := healthPod(i, *namespace, *daemonSet, true)
		_, unready := healthPod(i, *namespace, *daemonSet, false)
		s.pods = append(s.pods, stubPod{head: head, readyTail: ready, brokenTail: unready, ready: *broken == 0 || i%*broken != *broken-1})
		s.nodes = append(s.nodes, bareNode(i))
	}
	var configuration *tls.Config
	if *caFile != "" {
		certificate, err := selfSigned(*caFile)
		if err != nil {
			return err
		}
		configuration = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	}
	go s.stream(*flip)
	address := *listen
	for {
		listener, err := net.Listen("tcp", address)
		if err != nil {
			return err
		}
		address = listener.Addr().String() // the same one after an outage
		fmt.Printf("listening on %s\n", address)
		if configuration != nil {
			listener = tls.NewListener(listener, configuration)
		}
		if err := s.serveUntilAway(listener); err != nil {
			return err
		}
	}
}

// serveUntilAway serves until it is to be away, and returns when it is to be back.
func (s *stub) serveUntilAway(listener net.Listener) error {
	server := &http.Server{Handler: s}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return err
	case how := <-s.away:
		time.Sleep(50 * time.Millisecond) // who asked for it gets an answer
		_ = server.Close()
		time.Sleep(how)
		return nil
	}
}

// selfSigned makes a certificate for the loopback address and writes it, as its own authority, to path.
func selfSigned(path string) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "apistub"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}, nil
}
