package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// begun is a context that ends after `limit`, or when our standard input is closed: then the caller wants what there is.
func begun(limit time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	return ctx
}

// cause is a word for why a request failed, the same for all of a kind.
func cause(err error) string {
	var timeout net.Error
	switch {
	case errors.As(err, &timeout) && timeout.Timeout():
		return "timeout"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "reset"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "closed"
	}
	return err.Error()
}

// answered is what a caller saw: the time of each good answer in order, and how many were none, by cause.
type answered struct {
	LatencyUS []float64      `json:"latency_us"`
	Failed    map[string]int `json:"failed"`
}

// ask sends one request as kube-scheduler does: not 200, or 200 with an Error, is a failure. good is an answer that was
// read before: one with the same bytes is not read again, as that may take us longer than it took to be given.
func ask(client *http.Client, url string, body []byte, reply *bytes.Buffer, good []byte) (time.Duration, error) {
	start := time.Now()
	response, err := client.Post(url, "application/json", bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	reply.Reset()
	_, err = reply.ReadFrom(response.Body)
	response.Body.Close()
	took := time.Since(start)
	if err != nil {
		return 0, err
	}
	if response.StatusCode != http.StatusOK {
		return 0, errors.New("status " + strconv.Itoa(response.StatusCode))
	}
	if bytes.Equal(reply.Bytes(), good) {
		return took, nil
	}
	var result filterResult
	if err := json.Unmarshal(reply.Bytes(), &result); err != nil {
		return 0, errors.New("not a filter result")
	}
	if result.Error != "" {
		return 0, errors.New(result.Error)
	}
	return took, nil
}

// call asks one filter over kept-alive connections, usually one, on each one request after the other, with kube-scheduler's
// timeout. A request that fails is counted, and the next one is sent.
func call(arguments []string) error {
	flags := flag.NewFlagSet("call", flag.ExitOnError)
	url := flags.String("url", "", "of the filter")
	names := flags.Int("names", 812, "node names in a request")
	nodes := flags.Int("nodes", 5000, "nodes to take the names from")
	timeout := flags.Duration("timeout", time.Second, "of a request, kube-scheduler's httpTimeout")
	connections := flags.Int("connections", 1, "that ask at the same time")
	pause := flags.Duration("pause", 3*time.Millisecond, "rest after each request, as a scheduler that does its own work")
	limit := flags.Duration("for", 10*time.Second, "how long; it ends earlier when its standard input does")
	_ = flags.Parse(arguments)
	ctx := begun(*limit)
	bodies, _ := requestBodies(*names, *nodes)
	reports := make([]answered, *connections)
	var callers sync.WaitGroup
	for i := range reports {
		callers.Add(1)
		go func() {
			defer callers.Done()
			reports[i] = callUntil(ctx, *url, bodies, *timeout, *pause)
		}()
	}
	callers.Wait()
	all := answered{LatencyUS: []float64{}, Failed: map[string]int{}}
	for _, report := range reports {
		all.LatencyUS = append(all.LatencyUS, report.LatencyUS...)
		for word, number := range report.Failed {
			all.Failed[word] += number
		}
	}
	return json.NewEncoder(os.Stdout).Encode(all)
}

// callUntil asks over one connection of its own until ctx ends.
func callUntil(ctx context.Context, url string, bodies [][]byte, timeout, pause time.Duration) answered {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1}, Timeout: timeout}
	report := answered{LatencyUS: []float64{}, Failed: map[string]int{}}
	var reply bytes.Buffer
	good := make([][]byte, len(bodies))
	for i := 0; ctx.Err() == nil; i++ {
		of := i % len(bodies)
		took, err := ask(client, url, bodies[of], &reply, good[of])
		if err != nil {
			report.Failed[cause(err)]++
		} else {
			good[of] = append(good[of][:0], reply.Bytes()...)
			report.LatencyUS = append(report.LatencyUS, float64(took.Nanoseconds())/1000)
		}
		time.Sleep(pause)
	}
	return report
}

// fetch reads one page again and again with several clients and no pause, and throws it away.
func fetch(arguments []string) error {
	flags := flag.NewFlagSet("fetch", flag.ExitOnError)
	url := flags.String("url", "", "of the page")
	clients := flags.Int("clients", 4, "at once")
	limit := flags.Duration("for", 10*time.Second, "how long; it ends earlier when its standard input does")
	_ = flags.Parse(arguments)
	ctx := begun(*limit)
	var fetched, failed atomic.Int64
	var all sync.WaitGroup
	for range *clients {
		all.Go(func() {
			client := &http.Client{Transport: &http.Transport{}, Timeout: 10 * time.Second}
			for ctx.Err() == nil {
				if fetchOnce(client, *url) == nil {
					fetched.Add(1)
				} else {
					failed.Add(1)
					time.Sleep(10 * time.Millisecond)
				}
			}
		})
	}
	all.Wait()
	return json.NewEncoder(os.Stdout).Encode(map[string]int64{"fetched": fetched.Load(), "failed": failed.Load()})
}

func fetchOnce(client *http.Client, url string) error {
	response, err := client.Get(url)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return errors.New(strings.ToLower(response.Status))
	}
	_, err = io.Copy(io.Discard, response.Body)
	return err
}
