package main

import (
	"log"
	"maps"
	"slices"
	"sync"
	"time"
)

// The reasons, the same texts as in extender/policy/reasons.py.
const (
	closedNodeLost    = "node(s) lost: the kubelet no longer reports"
	closedNoHealthPod = "node(s) without a health pod"
	closedUnhealthy   = "node(s) reported unhealthy"
	closedNotReady    = "node(s) with a health pod that is not Ready"
	closedUnknown     = "node(s) whose health is unknown"
)

const conditionNodeHealthy = "readygate.dev/NodeHealthy"

type nodeState struct {
	uid       string
	exists    bool
	ready     string // status of the Node's own Ready condition
	pods      map[string]pod
	renewTime string
	renewedAt time.Time
	goodAt    time.Time
	last      string
}

// index holds per node why it is closed, "" meaning open; a name that is missing is a node nobody knows.
type index struct {
	daemonSet    string
	missingGrace time.Duration
	leaseLimit   time.Duration // 0: Leases are not looked at

	mu      sync.RWMutex
	nodes   map[string]*nodeState
	reasons map[string]string
	inGrace map[string]bool // keep their last verdict for a while: time alone changes them
}

func newIndex(daemonSet string, missingGrace, leaseLimit time.Duration) *index {
	return &index{
		daemonSet: daemonSet, missingGrace: missingGrace, leaseLimit: leaseLimit,
		nodes: map[string]*nodeState{}, reasons: map[string]string{}, inGrace: map[string]bool{},
	}
}

func (x *index) state(name string) *nodeState {
	s := x.nodes[name]
	if s == nil {
		s = &nodeState{pods: map[string]pod{}}
		x.nodes[name] = s
	}
	return s
}

func (x *index) ours(p pod) bool {
	for _, owner := range p.Metadata.OwnerReferences {
		if owner.Controller != nil && *owner.Controller {
			return owner.APIVersion == "apps/v1" && owner.Kind == "DaemonSet" && owner.Name == x.daemonSet
		}
	}
	return false
}

func usable(p pod) bool {
	return p.Metadata.DeletionTimestamp == nil && p.Status.Phase != "Failed" && p.Status.Phase != "Succeeded"
}

func (x *index) verdict(name string, s *nodeState, now time.Time) string {
	if x.leaseLimit > 0 && !s.renewedAt.IsZero() && now.Sub(s.renewedAt) > x.leaseLimit {
		return closedNodeLost
	}
	worst, found := closedNotReady, false
	for _, p := range s.pods {
		if !usable(p) {
			continue
		}
		found = true
		ready, healthy := p.conditionStatus("Ready"), p.conditionStatus(conditionNodeHealthy)
		switch {
		case ready == "True" && (healthy == "" || healthy == "True"):
			s.goodAt = now
			switch s.ready {
			case "False":
				return closedUnhealthy
			case "Unknown":
				return closedNodeLost
			}
			return ""
		case healthy == "False":
			worst = closedUnhealthy
		case healthy != "" && healthy != "True", ready == "Unknown":
			worst = closedUnknown
		case ready == "False" && p.conditionStatus("ContainersReady") == "True" && worst == closedNotReady:
			worst = closedNodeLost
		}
	}
	if found {
		return worst
	}
	if !s.goodAt.IsZero() && now.Sub(s.goodAt) < x.missingGrace {
		x.inGrace[name] = true
		return s.last
	}
	return closedNoHealthPod
}

// judge writes the verdict of one node; the caller holds the lock.
func (x *index) judge(name string, now time.Time) {
	s := x.nodes[name]
	if !s.exists {
		delete(x.reasons, name)
		if len(s.pods) == 0 && s.renewedAt.IsZero() {
			delete(x.nodes, name)
		}
		return
	}
	reason := x.verdict(name, s, now)
	before, known := x.reasons[name]
	if known && before == reason {
		return
	}
	s.last = reason
	x.reasons[name] = reason
	if known {
		log.Printf("verdict changed node=%s from=%q to=%q", name, before, reason)
	}
}

// tick looks again at what time alone can change: nodes in their grace, and all of them where Leases count.
func (x *index) tick(now time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.leaseLimit > 0 {
		for name := range x.nodes {
			x.judge(name, now)
		}
		return
	}
	for _, name := range slices.Collect(maps.Keys(x.inGrace)) {
		delete(x.inGrace, name)
		if x.nodes[name] != nil {
			x.judge(name, now)
		}
	}
}

// split sorts the names of one request into survivors and refused, keeping their order.
func (x *index) split(names []string) ([]string, map[string]string) {
	survivors := make([]string, 0, len(names))
	refused := map[string]string{}
	x.mu.RLock()
	defer x.mu.RUnlock()
	for _, name := range names {
		reason, known := x.reasons[name]
		switch {
		case !known:
			refused[name] = closedNoHealthPod
		case reason != "":
			refused[name] = reason
		default:
			survivors = append(survivors, name)
		}
	}
	return survivors, refused
}

type podStore struct{ *index }

func (s podStore) replace(items []pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, state := range s.nodes {
		state.pods = map[string]pod{}
	}
	for _, p := range items {
		if s.ours(p) && p.Spec.NodeName != "" {
			s.state(p.Spec.NodeName).pods[p.Metadata.UID] = p
		}
	}
	for name := range s.nodes {
		s.judge(name, time.Now())
	}
}

func (s podStore) change(kind string, p pod) {
	if !s.ours(p) || p.Spec.NodeName == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.state(p.Spec.NodeName)
	if kind == "DELETED" {
		delete(state.pods, p.Metadata.UID)
	} else {
		state.pods[p.Metadata.UID] = p
	}
	s.judge(p.Spec.NodeName, time.Now())
}

type nodeStore struct{ *index }

func (s nodeStore) replace(items []node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, state := range s.nodes {
		state.exists = false
	}
	for _, n := range items {
		s.set(n)
	}
	for name := range s.nodes {
		s.judge(name, time.Now())
	}
}

func (s nodeStore) set(n node) {
	state := s.state(n.Metadata.Name)
	if state.uid != n.Metadata.UID {
		if state.uid != "" { // the name was given to another machine: what was seen of the old one says nothing
			state.pods, state.goodAt = map[string]pod{}, time.Time{}
		}
		state.uid = n.Metadata.UID
	}
	state.exists, state.ready = true, ""
	for _, c := range n.Status.Conditions {
		if c.Type == "Ready" {
			state.ready = c.Status
		}
	}
}

func (s nodeStore) change(kind string, n node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if kind == "DELETED" {
		s.state(n.Metadata.Name).exists = false
	} else {
		s.set(n)
	}
	s.judge(n.Metadata.Name, time.Now())
}

type leaseStore struct{ *index }

func (s leaseStore) replace(items []lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range items {
		s.renew(l)
	}
}

// renew counts age from when we saw the time change: the clocks of two machines are never compared.
func (s leaseStore) renew(l lease) {
	state := s.state(l.Metadata.Name)
	if state.renewTime != l.Spec.RenewTime || state.renewedAt.IsZero() {
		state.renewTime, state.renewedAt = l.Spec.RenewTime, time.Now()
	}
}

func (s leaseStore) change(kind string, l lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if kind == "DELETED" {
		s.state(l.Metadata.Name).renewedAt = time.Time{}
	} else {
		s.renew(l)
	}
	s.judge(l.Metadata.Name, time.Now())
}
