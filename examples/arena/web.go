// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

//go:embed page
var page embed.FS

// runWeb serves the page, the client's library beside it, and where the gateways are.
func runWeb(ctx context.Context, words []string) error {
	flags := flag.NewFlagSet("web", flag.ContinueOnError)
	listen := flags.String("listen", "127.0.0.1:8080", "HOST:PORT for browsers")
	gateways := flags.String("ws", "ws://127.0.0.1:7001/", "the gateways, as browsers reach them, divided by commas")
	client := flags.String("client", "clients/js/ringhold.js", "the client's library")
	if err := flags.Parse(words); err != nil {
		return err
	}
	if _, err := os.Stat(*client); err != nil || flags.NArg() > 0 {
		return fmt.Errorf("-client: %v", err)
	}
	mux := http.NewServeMux()
	file := func(path, name string) {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != path {
				http.NotFound(w, r)
				return
			}
			data, err := page.ReadFile("page/" + name)
			if err != nil {
				http.NotFound(w, r)
				return
			}
			http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(data))
		})
	}
	file("/", "index.html")
	file("/arena.js", "arena.js")
	file("/arena.css", "arena.css")
	mux.HandleFunc("/ringhold.js", func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, filepath.Clean(*client)) })
	mux.HandleFunc("/gateways", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, *gateways) })
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		return err
	}
	server := &http.Server{ReadHeaderTimeout: 5 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-cache")
		w.Header().Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self' ws: wss:")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		mux.ServeHTTP(w, r)
	})}
	go func() {
		<-ctx.Done()
		server.Close()
	}()
	fmt.Printf("http://%s/\n", listener.Addr())
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
