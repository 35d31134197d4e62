// Operations in the place of goroutines: they wait until they are run.
package goroutinemap

// Started is an operation that has begun for whoever started it.
type Started struct {
	Name string
	Run  func() error
}

var started []Started

func later(name string, run func() error) { started = append(started, Started{name, run}) }

// Take gives what was started since, in its order.
func Take() []Started {
	taken := started
	started = nil
	return taken
}
