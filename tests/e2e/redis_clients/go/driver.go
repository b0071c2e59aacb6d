// Drives a Redis client of Go as ../README.md says.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
)

// What each client does in its own way.
type client interface {
	set(key, value string) error
	get(key string) (string, error)
	incr(key string) (int64, error)
	pipeline(key string, count int) (int64, error)
	multi(key string) error
	close()
}

var (
	ctx         = context.Background()
	name        = os.Args[1]
	recommended = os.Args[2] == "recommended"
	address     = os.Args[3] + ":" + os.Args[4]
)

type goRedis struct{ c *redis.Client }

func newGoRedis() (client, error) {
	o := &redis.Options{Addr: address}
	if recommended {
		o.MaxRetries = -1
		o.ReadTimeout = 15 * time.Second
	}
	return &goRedis{redis.NewClient(o)}, nil
}

func (g *goRedis) set(key, value string) error    { return g.c.Set(ctx, key, value, 0).Err() }
func (g *goRedis) get(key string) (string, error) { return g.c.Get(ctx, key).Result() }
func (g *goRedis) incr(key string) (int64, error) { return g.c.Incr(ctx, key).Result() }
func (g *goRedis) close()                         { _ = g.c.Close() }

func (g *goRedis) pipeline(key string, count int) (int64, error) {
	answers, err := g.c.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i := 0; i < count; i++ {
			p.Incr(ctx, key)
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return answers[count-1].(*redis.IntCmd).Val(), nil
}

func (g *goRedis) multi(key string) error {
	_, err := g.c.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.Incr(ctx, key)
		p.Incr(ctx, key)
		return nil
	})
	return err
}

type rueidisClient struct{ c rueidis.Client }

func newRueidis() (client, error) {
	o := rueidis.ClientOption{InitAddress: []string{address}}
	if recommended {
		o.DisableCache = true
		o.DisableRetry = true
		o.ConnWriteTimeout = 15 * time.Second
	}
	c, err := rueidis.NewClient(o)
	return &rueidisClient{c}, err
}

func (r *rueidisClient) set(key, value string) error {
	return r.c.Do(ctx, r.c.B().Set().Key(key).Value(value).Build()).Error()
}

func (r *rueidisClient) get(key string) (string, error) {
	return r.c.Do(ctx, r.c.B().Get().Key(key).Build()).ToString()
}

func (r *rueidisClient) incr(key string) (int64, error) {
	return r.c.Do(ctx, r.c.B().Incr().Key(key).Build()).AsInt64()
}

func (r *rueidisClient) close() { r.c.Close() }

func (r *rueidisClient) pipeline(key string, count int) (int64, error) {
	all := make(rueidis.Commands, count)
	for i := range all {
		all[i] = r.c.B().Incr().Key(key).Build()
	}
	return r.c.DoMulti(ctx, all...)[count-1].AsInt64()
}

func (r *rueidisClient) multi(key string) error {
	return r.c.Dedicated(func(d rueidis.DedicatedClient) error {
		answers := d.DoMulti(ctx, d.B().Multi().Build(), d.B().Incr().Key(key).Build(), d.B().Exec().Build())
		return answers[2].Error()
	})
}

func made() (client, error) {
	if name == "rueidis" {
		return newRueidis()
	}
	return newGoRedis()
}

type counting struct {
	sync.Mutex
	sync.WaitGroup
	over                       chan struct{}
	answered, refused, unknown int
	texts                      map[string]bool
}

func didNotRun(text string) bool {
	for _, word := range []string{"MOVING", "OVERLOADED", "NOKIND", "QUARANTINED"} {
		if strings.Contains(text, word) {
			return true
		}
	}
	return false
}

func (s *counting) note(err error) {
	s.Lock()
	defer s.Unlock()
	if err == nil {
		s.answered++
		return
	}
	if didNotRun(err.Error()) {
		s.refused++
	} else {
		s.unknown++
	}
	if len(s.texts) < 4 {
		text := err.Error()
		s.texts[text[:min(len(text), 80)]] = true
	}
}

func (s *counting) work(c client, key string) {
	defer s.Done()
	for {
		select {
		case <-s.over:
			return
		case <-time.After(2 * time.Millisecond):
		}
		_, err := c.incr(key)
		s.note(err)
	}
}

func (s *counting) told() string {
	texts := []string{}
	for t := range s.texts {
		texts = append(texts, t)
	}
	sort.Strings(texts)
	return fmt.Sprintf("answered=%d refused=%d unknown=%d %s", s.answered, s.refused, s.unknown, strings.Join(texts, " | "))
}

var (
	one   client
	count *counting
)

func start() (any, error) {
	var err error
	if one, err = made(); err != nil {
		return nil, err
	}
	if err = one.set("start", "1"); err != nil {
		return nil, err
	}
	if value, err := one.get("start"); err != nil || value != "1" {
		return nil, fmt.Errorf("GET said %q, %v", value, err)
	}
	return one.incr("start")
}

func churn(key string, times int) (any, error) {
	var last int64
	for i := 0; i < times; i++ {
		other, err := made()
		if err != nil {
			return nil, err
		}
		last, err = other.incr(key)
		other.close()
		if err != nil {
			return nil, err
		}
	}
	return last, nil
}

func do(words []string) (any, error) {
	number := 0
	if len(words) > 2 {
		number, _ = strconv.Atoi(words[2])
	}
	switch words[0] {
	case "start":
		return start()
	case "pipeline":
		return one.pipeline(words[1], number)
	case "churn":
		return churn(words[1], number)
	case "multi":
		return "done", one.multi(words[1])
	case "count":
		count = &counting{over: make(chan struct{}), texts: map[string]bool{}}
		count.Add(number)
		for i := 0; i < number; i++ {
			go count.work(one, words[1])
		}
		return "counting", nil
	default:
		close(count.over)
		count.Wait()
		return count.told(), nil
	}
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		value, err := do(strings.Fields(lines.Text()))
		answer := fmt.Sprintf("ok %v", value)
		if err != nil {
			answer = fmt.Sprintf("error %v", err)
		}
		fmt.Println(strings.Join(strings.Fields(answer), " "))
	}
}
