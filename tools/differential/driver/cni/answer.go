// What Go's encoding/json makes of any bytes, and by it what a runtime's libcni makes of a file of CNI configuration:
// the map that holds a list, and the struct that holds a plugin, with the tags that libcni's have.
package cni

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
)

type history struct {
	Kind string `json:"kind"` // json, list or one
	Text string `json:"text"` // a character for each byte
}

type answer struct {
	Refused bool     `json:"refused"`
	Value   any      `json:"value"`
	Name    string   `json:"name"`
	Types   []string `json:"types"`
}

type plugin struct {
	CNIVersion   string          `json:"cniVersion"`
	Name         string          `json:"name"`
	Type         string          `json:"type"`
	Capabilities map[string]bool `json:"capabilities"`
	IPAM         struct {
		Type string `json:"type"`
	} `json:"ipam"`
	DNS struct {
		Nameservers []string `json:"nameservers"`
		Domain      string   `json:"domain"`
		Search      []string `json:"search"`
		Options     []string `json:"options"`
	} `json:"dns"`
	PrevResult map[string]any `json:"prevResult"`
}

var errRefused = errors.New("refused")

func Answer(raw json.RawMessage) (any, error) {
	var asked history
	if err := json.Unmarshal(raw, &asked); err != nil {
		return nil, err
	}
	text := make([]byte, 0, len(asked.Text))
	for _, character := range asked.Text {
		text = append(text, byte(character))
	}
	var said answer
	var err error
	switch asked.Kind {
	case "json":
		err = json.Unmarshal(text, &said.Value)
	case "list":
		err = said.list(text)
	default:
		err = said.one(text)
	}
	if err != nil {
		return answer{Refused: true}, nil
	}
	return said, nil
}

// Written again, as a map is, and read once more.
func pluginOf(value any) (plugin, error) {
	written, err := json.Marshal(value)
	if err != nil {
		return plugin{}, err
	}
	return pluginIn(written)
}

func pluginIn(text []byte) (plugin, error) {
	var found plugin
	if err := json.Unmarshal(text, &found); err != nil {
		return found, err
	}
	if found.Type == "" {
		return found, errRefused
	}
	return found, nil
}

func (a *answer) one(text []byte) error {
	found, err := pluginIn(text)
	if err != nil {
		return err
	}
	fields := map[string]any{}
	if err := json.Unmarshal(text, &fields); err != nil {
		return err
	}
	list, err := json.Marshal(map[string]any{"name": found.Name, "cniVersion": found.CNIVersion, "plugins": []any{fields}})
	if err != nil {
		return err
	}
	return a.list(list)
}

func (a *answer) list(text []byte) error {
	fields := map[string]any{}
	if err := json.Unmarshal(text, &fields); err != nil {
		return err
	}
	name, is := fields["name"].(string)
	if !is {
		return errRefused
	}
	a.Name = name
	if err := versions(fields); err != nil {
		return err
	}
	for _, key := range []string{"disableCheck", "disableGC", "loadOnlyInlinedPlugins"} {
		if err := isSwitch(fields, key); err != nil {
			return err
		}
	}
	inlined, there := fields["plugins"]
	if !there {
		return errRefused // none beside it either
	}
	plugins, is := inlined.([]any)
	if !is || len(plugins) == 0 {
		return errRefused
	}
	for _, one := range plugins {
		found, err := pluginOf(one)
		if err != nil {
			return err
		}
		a.Types = append(a.Types, found.Type)
	}
	return nil
}

func isSwitch(fields map[string]any, key string) error {
	value, there := fields[key]
	if _, is := value.(bool); is || !there {
		return nil
	}
	word, _ := value.(string)
	if word = strings.ToLower(word); word == "true" || word == "false" {
		return nil
	}
	return errRefused
}

func versions(fields map[string]any) error {
	version, is := fields["cniVersion"].(string)
	if _, there := fields["cniVersion"]; there && !is {
		return errRefused
	}
	listed, there := fields["cniVersions"]
	if !there {
		return nil
	}
	all, is := listed.([]any)
	if !is {
		return errRefused
	}
	for _, one := range append([]any{version}, all...) {
		text, is := one.(string)
		if !is {
			return errRefused
		}
		if text == "" {
			continue
		}
		parts := strings.Split(text, ".")
		if len(parts) > 3 {
			return errRefused
		}
		for _, part := range parts {
			if _, err := strconv.Atoi(part); err != nil {
				return err
			}
		}
	}
	return nil
}
