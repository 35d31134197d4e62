// Package mended says which of upstream's mistakes are mended now, by the names of the agent's fixes: so it can be seen
// that a fix differs from the kubelet in that mend, answer by answer, and in nothing else.
package mended

var now = map[string]bool{}

// Set is for all that is answered from now on.
func Set(names []string) {
	now = map[string]bool{}
	for _, name := range names {
		now[name] = true
	}
}

// On says whether this one is.
func On(name string) bool { return now[name] }
