package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"sort"
	"strings"
	"time"
)

// report is what one target answered: how long each request took, in the order sent, and what the checked replies said.
type report struct {
	LatencyUS []float64 `json:"latency_us"`
	Survivors int       `json:"survivors"`
	Refused   int       `json:"refused"`
}

type target struct {
	name, url string
	compared  bool // its answers are checked against the other targets'
	client    *http.Client
	report    report
	scratch   []byte
}

func (t *target) post(body []byte) (time.Duration, error) {
	start := time.Now()
	response, err := t.client.Post(t.url, "application/json", bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	reader := bytes.NewBuffer(t.scratch[:0])
	_, err = reader.ReadFrom(response.Body)
	response.Body.Close()
	took := time.Since(start)
	t.scratch = reader.Bytes()
	if err != nil {
		return 0, err
	}
	if response.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("%s answered %d: %.200s", t.name, response.StatusCode, t.scratch)
	}
	return took, nil
}

// check reads the last reply as kube-scheduler does and insists that every name came back exactly once.
func (t *target) check(names []string) (string, error) {
	var result filterResult
	if err := json.Unmarshal(t.scratch, &result); err != nil {
		return "", fmt.Errorf("%s: %w", t.name, err)
	}
	if result.Error != "" || result.NodeNames == nil {
		return "", fmt.Errorf("%s: no names, error %q", t.name, result.Error)
	}
	survivors := *result.NodeNames
	t.report.Survivors, t.report.Refused = len(survivors), len(result.FailedAndUnresolvableNodes)
	if len(survivors)+len(result.FailedAndUnresolvableNodes) != len(names) {
		return "", fmt.Errorf("%s: %d survivors and %d refused of %d names", t.name, len(survivors), len(result.FailedAndUnresolvableNodes), len(names))
	}
	refused := make([]string, 0, len(result.FailedAndUnresolvableNodes))
	for name, reason := range result.FailedAndUnresolvableNodes {
		refused = append(refused, name+"="+reason)
	}
	sort.Strings(refused)
	return strings.Join(survivors, ",") + "|" + strings.Join(refused, ","), nil
}

// requestBodies are eight requests for so many names of the first so many nodes, each in an order of its own.
func requestBodies(names, nodes int) (bodies [][]byte, asked [][]string) {
	random := rand.New(rand.NewSource(1))
	podJSON := pendingPod()
	for i := range 8 {
		asked = append(asked, nil)
		for _, at := range random.Perm(nodes)[:names] {
			asked[i] = append(asked[i], nodeName(at))
		}
		bodies = append(bodies, filterBody(podJSON, asked[i]))
	}
	return bodies, asked
}

// printBody writes the first request that load would send.
func printBody(arguments []string) error {
	flags := flag.NewFlagSet("body", flag.ExitOnError)
	names := flags.Int("names", 812, "node names in the request")
	nodes := flags.Int("nodes", 5000, "nodes to take the names from")
	_ = flags.Parse(arguments)
	bodies, _ := requestBodies(*names, *nodes)
	_, err := os.Stdout.Write(bodies[0])
	return err
}

// load sends the same bodies to every target over one kept-alive connection each, in turns of -turn requests.
func load(arguments []string) error {
	flags := flag.NewFlagSet("load", flag.ExitOnError)
	var targets []*target
	adding := func(compared bool) func(string) error {
		return func(text string) error {
			name, url, found := strings.Cut(text, "=")
			if !found {
				return errors.New("not name=URL")
			}
			client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1}, Timeout: 5 * time.Second}
			targets = append(targets, &target{name: name, url: url, compared: compared, client: client})
			return nil
		}
	}
	flags.Func("target", "name=URL of a filter; may be repeated", adding(true))
	flags.Func("null", "the same for one that decides nothing, so that its answers are not compared", adding(false))
	names := flags.Int("names", 812, "node names in a request")
	nodes := flags.Int("nodes", 5000, "nodes to take the names from")
	requests := flags.Int("requests", 1000, "measured requests to each target")
	turn := flags.Int("turn", 50, "requests to one target before it is the next one's turn")
	warm := flags.Int("warm", 100, "requests to each target before the measurement")
	pause := flags.Duration("pause", 0, "rest after each request, as a scheduler that does its own work")
	limit := flags.Duration("limit", 2*time.Minute, "give up after this time")
	same := flags.Bool("same", true, "the targets must give equal answers before the measurement")
	_ = flags.Parse(arguments)
	if len(targets) == 0 {
		return errors.New("no -target")
	}
	deadline := time.Now().Add(*limit)
	debug.SetGCPercent(-1) // between the turns: what is measured are the targets' pauses, not ours

	bodies, asked := requestBodies(*names, *nodes)
	first := ""
	for _, t := range targets {
		for i := range max(*warm, 1) {
			if _, err := t.post(bodies[i%len(bodies)]); err != nil {
				return err
			}
			if i == 0 && *same && t.compared {
				answer, err := t.check(asked[0])
				if err != nil {
					return err
				}
				if first == "" {
					first = answer
				}
				if answer != first {
					return fmt.Errorf("%s does not answer as those before it do: %.300s ... %.300s", t.name, answer, first)
				}
			}
		}
	}
	for sent := 0; sent < *requests; sent += *turn {
		for _, t := range targets {
			runtime.GC()
			for i := range min(*turn, *requests-sent) {
				took, err := t.post(bodies[i%len(bodies)])
				if err != nil {
					return err
				}
				t.report.LatencyUS = append(t.report.LatencyUS, float64(took.Nanoseconds())/1000)
				if *pause > 0 {
					time.Sleep(*pause)
				}
			}
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("only %d of %d requests in %s", sent, *requests, *limit)
		}
	}
	reports := map[string]report{}
	for _, t := range targets {
		reports[t.name] = t.report
	}
	if err := json.NewEncoder(os.Stdout).Encode(reports); err != nil {
		return err
	}
	return nil
}
