package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

const maxBodyBytes = 8 << 20

type extender struct {
	index             *index
	synced            func() bool
	namespace         string
	exemptNamespaces  map[string]bool
	exemptLabel       string
	daemonSetsAreFree bool
}

// exempt says whether a pod is never gated: health pods, DaemonSet pods, kube-system, system-critical, opted out.
func (e *extender) exempt(p *pod) bool {
	if p.Metadata.Namespace == e.namespace || e.exemptNamespaces[p.Metadata.Namespace] {
		return true
	}
	if p.Spec.PriorityClassName == "system-node-critical" || p.Spec.PriorityClassName == "system-cluster-critical" {
		return true
	}
	if p.Metadata.Labels[e.exemptLabel] == "true" {
		return true
	}
	if e.daemonSetsAreFree {
		for _, owner := range p.Metadata.OwnerReferences {
			if owner.Controller != nil && *owner.Controller && owner.Kind == "DaemonSet" && owner.APIVersion == "apps/v1" {
				return true
			}
		}
	}
	return false
}

func (e *extender) filter(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "only POST", http.StatusMethodNotAllowed)
		return
	}
	var args extenderArgs
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBodyBytes)).Decode(&args); err != nil {
		http.Error(w, "the body is not a filter request", http.StatusBadRequest)
		return
	}
	var result filterResult
	switch {
	case args.Pod == nil:
		result.Error = "the request has no Pod"
	case args.NodeNames == nil:
		result.Error = "the request has no NodeNames: set nodeCacheCapable to true"
	case e.exempt(args.Pod):
		result.NodeNames = args.NodeNames
	case !e.synced():
		result.Error = "cache not synced"
	default:
		survivors, refused := e.index.split(*args.NodeNames)
		result.NodeNames, result.FailedAndUnresolvableNodes = &survivors, refused
	}
	body, err := json.Marshal(&result)
	if err != nil {
		http.Error(w, "cannot encode the answer", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body)
}

func serve(arguments []string) error {
	flags := flag.NewFlagSet("serve", flag.ExitOnError)
	listen := flags.String("listen", "127.0.0.1:0", "address to answer the scheduler on")
	server := flags.String("server", "", "URL of the API server")
	tokenFile := flags.String("token-file", "", "bearer token")
	caFile := flags.String("ca-file", "", "certificate authority of the API server")
	certFile := flags.String("cert-file", "", "client certificate")
	keyFile := flags.String("key-file", "", "client key")
	namespace := flags.String("namespace", "readygate-system", "namespace of the health pods")
	selector := flags.String("selector", "app.kubernetes.io/name=readygate-agent", "labels of the health pods")
	daemonSet := flags.String("daemon-set", "readygate-agent", "owner of the health pods")
	leaseLimit := flags.Duration("lease-limit", 0, "age of a kubelet Lease beyond which a node is lost; 0 does not follow Leases")
	exemptNamespaces := flags.String("exempt-namespaces", "kube-system", "namespaces whose pods are never held back")
	_ = flags.Parse(arguments)
	exitWithParent()

	transport := &http.Transport{}
	configuration := &tls.Config{MinVersion: tls.VersionTLS12}
	if *caFile != "" {
		pem, err := os.ReadFile(*caFile)
		if err != nil {
			return err
		}
		configuration.RootCAs = x509.NewCertPool()
		configuration.RootCAs.AppendCertsFromPEM(pem)
	}
	if *certFile != "" {
		pair, err := tls.LoadX509KeyPair(*certFile, *keyFile)
		if err != nil {
			return err
		}
		configuration.Certificates = []tls.Certificate{pair}
	}
	transport.TLSClientConfig = configuration
	client := &http.Client{Transport: transport}
	token := ""
	if *tokenFile != "" {
		text, err := os.ReadFile(*tokenFile)
		if err != nil {
			return err
		}
		token = strings.TrimSpace(string(text))
	}

	ctx := context.Background()
	x := newIndex(*daemonSet, 30*time.Second, *leaseLimit)
	nodes := &follower[node]{client: client, server: *server, token: token, path: "/api/v1/nodes", store: nodeStore{x}}
	pods := &follower[pod]{client: client, server: *server, token: token, labelSelector: *selector,
		path: "/api/v1/namespaces/" + url.PathEscape(*namespace) + "/pods", store: podStore{x}}
	leases := &follower[lease]{client: client, server: *server, token: token,
		path: "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases", store: leaseStore{x}}
	go nodes.run(ctx)
	go pods.run(ctx)
	if *leaseLimit > 0 {
		go leases.run(ctx)
	} else {
		leases.synced.Store(true)
	}
	synced := func() bool { return nodes.synced.Load() && pods.synced.Load() && leases.synced.Load() }
	go func() {
		for now := range time.Tick(time.Second) {
			x.tick(now)
		}
	}()

	e := &extender{index: x, synced: synced, namespace: *namespace, exemptNamespaces: map[string]bool{},
		exemptLabel: "readygate.dev/exempt", daemonSetsAreFree: true}
	for _, name := range strings.Split(*exemptNamespaces, ",") {
		e.exemptNamespaces[name] = true
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/filter", e.filter)
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !synced() {
			http.Error(w, "cache not synced", http.StatusServiceUnavailable)
		}
	})
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		return err
	}
	fmt.Printf("listening on %s\n", listener.Addr())
	log.SetFlags(log.LstdFlags | log.Lmicroseconds)
	return http.Serve(listener, mux)
}
