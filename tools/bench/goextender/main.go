// Command bench is the counterpart of readygate in its benchmark, in Go's standard library alone: an extender of the same
// behaviour (serve), one that only sends the names back (null), clients that measure (load, call), that are slow (slow) or
// read pages (fetch), and an API server with pre-rendered answers (apistub).
package main

import (
	"fmt"
	"io"
	"os"
)

func main() {
	commands := map[string]func([]string) error{
		"serve": serve, "null": null, "apistub": apistub,
		"load": load, "body": printBody, "call": call, "slow": slow, "fetch": fetch,
	}
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: bench serve|null|apistub|load|body|call|slow|fetch [flags]; -h after the word shows its flags")
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
