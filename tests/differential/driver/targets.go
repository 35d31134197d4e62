package main

import "readygate.dev/testbed/kube/prober"

var targets = map[string]target{
	"prober": prober.Answer,
}
