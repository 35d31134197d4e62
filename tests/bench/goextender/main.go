// Command bench is the counterpart of readygate in its benchmark, in Go's standard library alone: an extender of the same
// behaviour (serve), the client that measures both (load) and an API server with pre-rendered answers (apistub).
package main

import (
	"fmt"
	"io"
	"os"
)

func main() {
	commands := map[string]func([]string) error{"serve": serve, "load": load, "body": printBody, "apistub": apistub}
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: bench serve|load|body|apistub [flags]; -h after the word shows its flags")
		os.Exit(2)
	}
	if err := commands[os.Args[1]](os.Args[2:]); err != nil {
		fmt.Fprintf(os.Stderr, "bench %s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
}

// exitWithParent ends the process when the benchmark that started it is gone: its end of our standard input closes then.
func exitWithParent() {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
}
