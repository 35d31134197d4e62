package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/http"
	"strconv"
)

// null answers /filter with the names that it was asked for. It follows no API server and looks nothing up: what net/http
// and encoding/json cost by themselves, which no Go extender can go below.
func null(arguments []string) error {
	flags := flag.NewFlagSet("null", flag.ExitOnError)
	listen := flags.String("listen", "127.0.0.1:0", "address to answer the scheduler on")
	_ = flags.Parse(arguments)
	exitWithParent()
	mux := http.NewServeMux()
	mux.HandleFunc("/filter", echoNames)
	mux.HandleFunc("/readyz", func(http.ResponseWriter, *http.Request) {})
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		return err
	}
	fmt.Printf("listening on %s\n", listener.Addr())
	return http.Serve(listener, mux)
}

func echoNames(w http.ResponseWriter, r *http.Request) {
	// The Pod is passed over, not decoded: only the names are wanted.
	var args struct{ NodeNames *[]string }
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBodyBytes)).Decode(&args); err != nil {
		http.Error(w, "the body is not a filter request", http.StatusBadRequest)
		return
	}
	body, err := json.Marshal(&filterResult{NodeNames: args.NodeNames})
	if err != nil {
		http.Error(w, "cannot encode the answer", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body)
}
