// SPDX-License-Identifier: Apache-2.0

package ringhold

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
)

// where a gateway is: HOST:PORT, and whether by TLS.
func where(gateway string) (address string, byTLS bool, err error) {
	if !strings.Contains(gateway, "://") {
		gateway = "tcp://" + gateway
	}
	u, err := url.Parse(gateway)
	if err != nil || (u.Scheme != "tcp" && u.Scheme != "tls") || u.Hostname() == "" || u.Port() == "" {
		return "", false, fmt.Errorf("ringhold: %s: a gateway is HOST:PORT, tcp://HOST:PORT or tls://HOST:PORT", gateway)
	}
	return u.Host, u.Scheme == "tls", nil
}

// A tcpLine writes in a goroutine that is there while there is something to write, and reads in another.
type tcpLine struct {
	client *Client
	cancel context.CancelFunc

	mu      sync.Mutex
	socket  net.Conn
	out     []byte
	size    int // bytes of these, and of those that are being written
	writing bool
	over    bool
}

func dialTCP(c *Client, gateway string) line {
	ctx, cancel := context.WithCancel(context.Background())
	l := &tcpLine{client: c, cancel: cancel}
	go l.run(ctx, gateway, c.core.options.TLS)
	return l
}

func (l *tcpLine) run(ctx context.Context, gateway string, config *tls.Config) {
	address, byTLS, err := where(gateway)
	var socket net.Conn
	if err == nil && byTLS {
		socket, err = (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", address)
	} else if err == nil {
		socket, err = (&net.Dialer{}).DialContext(ctx, "tcp", address)
	}
	if err != nil {
		l.client.closed(l, err.Error())
		return
	}
	defer socket.Close()
	l.mu.Lock()
	l.socket = socket
	over := l.over
	l.mu.Unlock()
	if over {
		return
	}
	l.client.opened(l)
	buffer := make([]byte, 16<<10)
	for {
		n, err := socket.Read(buffer)
		if n > 0 && !l.client.received(l, buffer[:n]) {
			return
		}
		if err != nil {
			l.client.closed(l, "the gateway closed the connection")
			return
		}
	}
}

func (l *tcpLine) send(data []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.out = append(l.out, data...)
	l.size += len(data)
	if !l.writing && !l.over {
		l.writing = true
		go l.write()
	}
}

func (l *tcpLine) write() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.out) > 0 && !l.over {
		out := l.out
		l.out = nil
		l.mu.Unlock()
		_, err := l.socket.Write(out) // who reads finds out if it failed
		l.mu.Lock()
		l.size -= len(out)
		l.over = l.over || err != nil
	}
	l.writing = false
}

func (l *tcpLine) unread() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.size
}

func (l *tcpLine) close() {
	l.cancel()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	if l.socket != nil {
		l.socket.Close()
	}
}
