package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

type object interface{ meta() objectMeta }

// store takes what a follower reads. replace is called with the whole list, change with one event.
type store[T object] interface {
	replace(items []T)
	change(kind string, item T)
}

// follower lists one resource by pages and watches it from there on, for ever.
type follower[T object] struct {
	client        *http.Client
	server        string
	token         string
	path          string
	labelSelector string
	store         store[T]
	synced        atomic.Bool
}

var errExpired = errors.New("resource version expired")

func (f *follower[T]) run(ctx context.Context) {
	for ctx.Err() == nil {
		version, err := f.list(ctx)
		for err == nil {
			version, err = f.watch(ctx, version)
		}
		if !errors.Is(err, errExpired) {
			log.Printf("follow %s: %v", f.path, err)
			time.Sleep(time.Second)
		}
	}
}

func (f *follower[T]) get(ctx context.Context, query url.Values) (*http.Response, error) {
	if f.labelSelector != "" {
		query.Set("labelSelector", f.labelSelector)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, f.server+f.path+"?"+query.Encode(), nil)
	if err != nil {
		return nil, err
	}
	if f.token != "" {
		request.Header.Set("Authorization", "Bearer "+f.token)
	}
	response, err := f.client.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 512))
		response.Body.Close()
		if response.StatusCode == http.StatusGone {
			return nil, errExpired
		}
		return nil, fmt.Errorf("status %d: %s", response.StatusCode, strings.TrimSpace(string(text)))
	}
	return response, nil
}

func (f *follower[T]) list(ctx context.Context) (string, error) {
	var items []T
	next := ""
	for {
		query := url.Values{"limit": {"500"}}
		if next != "" {
			query.Set("continue", next)
		}
		response, err := f.get(ctx, query)
		if err != nil {
			return "", err
		}
		var page struct {
			Metadata struct {
				ResourceVersion string `json:"resourceVersion"`
				Continue        string `json:"continue"`
			} `json:"metadata"`
			Items []T `json:"items"`
		}
		err = json.NewDecoder(response.Body).Decode(&page)
		response.Body.Close()
		if err != nil {
			return "", err
		}
		items = append(items, page.Items...)
		next = page.Metadata.Continue
		if next == "" {
			f.store.replace(items)
			f.synced.Store(true)
			return page.Metadata.ResourceVersion, nil
		}
	}
}

func (f *follower[T]) watch(ctx context.Context, version string) (string, error) {
	response, err := f.get(ctx, url.Values{
		"watch": {"true"}, "resourceVersion": {version}, "allowWatchBookmarks": {"true"}, "timeoutSeconds": {"300"},
	})
	if err != nil {
		return version, err
	}
	defer response.Body.Close()
	decoder := json.NewDecoder(response.Body)
	for {
		var event struct {
			Type   string `json:"type"`
			Object T      `json:"object"`
		}
		if err := decoder.Decode(&event); err != nil {
			if errors.Is(err, io.EOF) {
				return version, nil
			}
			return version, err
		}
		switch event.Type {
		case "ERROR":
			return version, errExpired
		case "BOOKMARK":
		default:
			f.store.change(event.Type, event.Object)
		}
		version = event.Object.meta().ResourceVersion
	}
}
