// Batches of histories: a batch of one target a line in, its answers a line out. Both releases of the driver have this.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
)

// A target answers one history.
type target func(json.RawMessage) (any, error)

type batch struct {
	Target    string            `json:"target"`
	Gates     map[string]bool   `json:"gates"`
	Histories []json.RawMessage `json:"histories"`
	Mended    []string          `json:"mended"`
}

// serve writes the first line, then answers each batch. `prepare` does what a batch wants before its histories.
func serve(first map[string]any, prepare func(batch) error) {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := bufio.NewWriterSize(os.Stdout, 1<<20)
	say(out, first)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var asked batch
		if err := json.Unmarshal(line, &asked); err != nil {
			fatal(err)
		}
		if err := prepare(asked); err != nil {
			fatal(err)
		}
		answers := make([]any, 0, len(asked.Histories))
		for _, history := range asked.Histories {
			answers = append(answers, answer(targets[asked.Target], history))
		}
		say(out, answers)
	}
}

// A history that cannot be answered is answered by its error: a shrunk one may be no history at all.
func answer(of target, history json.RawMessage) (answered any) {
	defer func() {
		if found := recover(); found != nil {
			answered = map[string]any{"error": fmt.Sprint(found)}
		}
	}()
	answered, err := of(history)
	if err != nil {
		return map[string]any{"error": err.Error()}
	}
	return answered
}

func say(out *bufio.Writer, value any) {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		fatal(err)
	}
	if err := out.Flush(); err != nil {
		fatal(err)
	}
}

func fatal(err error) {
	fmt.Fprintln(os.Stderr, "driver:", err)
	os.Exit(1)
}
