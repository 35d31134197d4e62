package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// slowClient does one unkind thing over a connection until it is cut, or the time is over.
type slowClient struct {
	target string
	drip   time.Duration // from byte to byte
	body   []byte
}

func (c slowClient) head(length int) []byte {
	return fmt.Appendf(nil, "POST /filter HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n", c.target, length)
}

// silent says nothing at all.
func (c slowClient) silent(_ context.Context, conn net.Conn) {
	_, _ = conn.Read(make([]byte, 1))
}

// header sends a request line and then a header that never ends, byte by byte.
func (c slowClient) header(ctx context.Context, conn net.Conn) {
	if _, err := conn.Write(append(c.head(len(c.body)), "X-Slow: "...)); err == nil {
		c.dripping(ctx, conn, 'x')
	}
}

// half sends all of the header and half of the body, and the rest byte by byte.
func (c slowClient) half(ctx context.Context, conn net.Conn) {
	start := append(append(c.head(len(c.body)), "\r\n"...), c.body[:len(c.body)/2]...)
	if _, err := conn.Write(start); err == nil {
		c.dripping(ctx, conn, ' ')
	}
}

// deaf asks and asks and reads no answer.
func (c slowClient) deaf(ctx context.Context, conn net.Conn) {
	_ = conn.(*net.TCPConn).SetReadBuffer(4096)
	request := append(append(c.head(len(c.body)), "\r\n"...), c.body...)
	for ctx.Err() == nil {
		if _, err := conn.Write(request); err != nil {
			return
		}
	}
}

func (c slowClient) dripping(ctx context.Context, conn net.Conn, what byte) {
	for ctx.Err() == nil {
		_ = conn.SetReadDeadline(time.Now().Add(c.drip))
		if _, err := conn.Read(make([]byte, 4096)); err != nil && !os.IsTimeout(err) {
			return
		}
		if _, err := conn.Write([]byte{what}); err != nil {
			return
		}
	}
}

// slow keeps so many slow clients of one kind connected: whoever is cut comes back.
func slow(arguments []string) error {
	flags := flag.NewFlagSet("slow", flag.ExitOnError)
	target := flags.String("target", "", "host:port of a filter")
	kind := flags.String("kind", "silent", "silent, header, body or answer: what the client does not finish")
	clients := flags.Int("clients", 200, "at once")
	over := flags.Duration("over", 2*time.Second, "they come one by one within this time")
	limit := flags.Duration("for", 10*time.Second, "how long; it ends earlier when its standard input does")
	_ = flags.Parse(arguments)
	ctx := begun(*limit)
	bodies, _ := requestBodies(812, 5000)
	c := slowClient{target: *target, drip: 500 * time.Millisecond, body: bodies[0]}
	act := map[string]func(context.Context, net.Conn){"silent": c.silent, "header": c.header, "body": c.half, "answer": c.deaf}[*kind]
	if act == nil {
		return fmt.Errorf("no such kind: %s", *kind)
	}
	var connected, refused atomic.Int64
	var all sync.WaitGroup
	for i := range *clients {
		all.Go(func() {
			rest(ctx, *over*time.Duration(i)/time.Duration(*clients))
			for ctx.Err() == nil {
				conn, err := net.DialTimeout("tcp", *target, 5*time.Second)
				if err != nil {
					refused.Add(1)
				} else {
					connected.Add(1)
					stop := context.AfterFunc(ctx, func() { conn.Close() })
					act(ctx, conn)
					stop()
					conn.Close()
				}
				rest(ctx, time.Second)
			}
		})
	}
	all.Wait()
	return json.NewEncoder(os.Stdout).Encode(map[string]int64{"connected": connected.Load(), "refused": refused.Load()})
}

func rest(ctx context.Context, how time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(how):
	}
}
