// SPDX-License-Identifier: Apache-2.0

// Command protoactor is protoactor-go at the work that bench/peers gives: echo actors in a cluster that etcd keeps.
//
//	protoactor node ETCD FOLDER     hosts actors; those that are asked with a text write it to FOLDER/PID.ran first
//	protoactor front ETCD           a client of the cluster, which speaks the packets of docs/protocol-client.md
//
// It is written as the project's examples are: a client asks by Request of the cluster, which finds, caches and tries
// again. SIGTERM: a node leaves as its Shutdown does. SIGUSR1: a node collects garbage and writes to FOLDER/PID.heap
// how many bytes are alive, stacks of goroutines included.
package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"github.com/asynkron/protoactor-go/cluster/clusterproviders/etcd"
	"github.com/asynkron/protoactor-go/cluster/identitylookup/disthash"
	"github.com/asynkron/protoactor-go/remote"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

const (
	hello, helloAck, ping, pong, request, response = 1, 2, 3, 4, 6, 7
	journaled                                      = 2 // the kind whose actors write down what they ran

	patience = 5 * time.Second
)

type echo struct{ ran *os.File }

func (e *echo) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *wrapperspb.BytesValue:
		c.Respond(m)
	case *wrapperspb.StringValue:
		if _, err := e.ran.WriteString(m.Value + "\n"); err != nil {
			log.Fatal(err)
		}
		c.Respond(m)
	}
}

func join(server string, kinds ...*cluster.Kind) *cluster.Cluster {
	quiet := func(*actor.ActorSystem) *slog.Logger {
		return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError + 1}))
	}
	system := actor.NewActorSystem(actor.WithLoggerFactory(quiet))
	provider, err := etcd.NewWithConfig("/protoactor", clientv3.Config{Endpoints: []string{server}, DialTimeout: patience})
	if err != nil {
		log.Fatal(err)
	}
	return cluster.New(system, cluster.Configure("bench", provider, disthash.New(), remote.Configure("127.0.0.1", 0),
		cluster.WithKinds(kinds...), cluster.WithRequestTimeout(patience)))
}

func node(server, folder string) {
	path := fmt.Sprintf("%s/%d", folder, os.Getpid())
	ran, err := os.OpenFile(path+".ran", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		log.Fatal(err)
	}
	props := actor.PropsFromProducer(func() actor.Actor { return &echo{ran} })
	c := join(server, cluster.NewKind("echo", props))
	c.StartMember()
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGUSR1)
	fmt.Println("ready")
	for <-signals != syscall.SIGTERM {
		debug.FreeOSMemory()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		if err := os.WriteFile(path+".part", fmt.Append(nil, m.HeapAlloc+m.StackInuse), 0o644); err != nil {
			log.Fatal(err)
		}
		_ = os.Rename(path+".part", path+".heap")
	}
	c.Shutdown(true)
}

func front(server string) {
	c := join(server)
	c.StartClient()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("ready frames=%s\n", listener.Addr())
	for {
		conn, err := listener.Accept()
		if err != nil {
			log.Fatal(err)
		}
		go serve(c, conn)
	}
}

func packet(kind byte, body ...[]byte) []byte {
	size := 0
	for _, b := range body {
		size += len(b)
	}
	out := append(make([]byte, 0, 4+size), kind, byte(size>>16), byte(size>>8), byte(size))
	for _, b := range body {
		out = append(out, b...)
	}
	return out
}

// What is to be written meanwhile leaves in one write.
func write(conn net.Conn, out <-chan []byte) {
	w := bufio.NewWriterSize(conn, 1<<16)
	for b := range out {
		_, _ = w.Write(b)
		if len(out) == 0 {
			_ = w.Flush()
		}
	}
}

func serve(c *cluster.Cluster, conn net.Conn) {
	out := make(chan []byte, 4096) // never closed: a request may come to its end after the connection
	go write(conn, out)
	defer conn.Close()
	r := bufio.NewReaderSize(conn, 1<<16)
	for {
		var head [4]byte
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return
		}
		body := make([]byte, int(head[1])<<16|int(head[2])<<8|int(head[3]))
		if _, err := io.ReadFull(r, body); err != nil {
			return
		}
		switch head[0] {
		case hello: // version 1, a heartbeat of 30 s, bodies of 64 KiB, 4,096 requests under way
			out <- packet(helloAck, []byte{1, 0, 0, 0, 0, 0, 0x75, 0x30, 0, 1, 0, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 1})
		case ping:
			out <- packet(pong, body)
		case request:
			go ask(c, body, out)
		}
	}
}

// The body: u32 request, u8 flags (0), u8 size of the id, u16 kind, id, payload.
func ask(c *cluster.Cluster, body []byte, out chan<- []byte) {
	end := 8 + int(body[5])
	id, payload := string(body[8:end]), body[end:]
	var answer any
	var err error
	if binary.BigEndian.Uint16(body[6:]) == journaled {
		answer, err = c.Request(id, "echo", wrapperspb.String(string(payload)))
	} else {
		answer, err = c.Request(id, "echo", wrapperspb.Bytes(payload))
	}
	status := []byte{0, 0, 0, 0, 0}
	switch m := answer.(type) {
	case *wrapperspb.BytesValue:
		payload = m.Value
	case *wrapperspb.StringValue:
		payload = []byte(m.Value)
	default:
		status[0], payload = 3, fmt.Append(nil, err)
	}
	out <- packet(response, body[:4], status, payload)
}

func main() {
	switch {
	case len(os.Args) == 4 && os.Args[1] == "node":
		node(os.Args[2], os.Args[3])
	case len(os.Args) == 3 && os.Args[1] == "front":
		front(os.Args[2])
	default:
		log.Fatal("usage: protoactor node ETCD FOLDER | protoactor front ETCD")
	}
}
