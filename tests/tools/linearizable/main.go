// SPDX-License-Identifier: Apache-2.0

// Is what clients saw of each key what one register, or one account, could have told them? Judged by porcupine, which
// knows nothing of Ringhold. The file is what tests/e2e/fault/fault_linearizable.py or fault_gifts_judged.py writes;
// docs/history.md has both formats.
//
//	linearizable FILE              judge each key; exit 1 if one is refused
//	linearizable --doctored FILE   spoil keys of it, each in one way; exit 1 unless each is refused
package main

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// Of one key: a longer one would say that it has too many operations to be judged. A machine with no CPU to spare may take
// minutes for what else takes a second.
const patience = 10 * time.Minute

const never = math.MaxInt64 // when an operation ends of which nobody knows if it took effect

// What the keys of a file are: its first line says it.
type subject struct {
	model porcupine.Model
	fits  func(in input) bool // is it a command of these?
	ways  []way               // to spoil a history
}

type way struct {
	name  string
	spoil func(k *key) bool // false: the key has no place for it
}

var subjects = map[string]subject{
	"ringhold-operations 1": {registers, isOfRegister, []way{
		{"a stale read", stale}, {"a lost write", lostWrite},
		{"a doubled increment", doubled}, {"an older epoch", olderEpoch},
	}},
	"ringhold-gifts 1": {accounts, isOfAccount, []way{
		{"a lost gift", lostGift}, {"a doubled gift", doubledGift},
		{"an answer that was not saved", notSaved}, {"a request that ran twice", ranTwice},
	}},
}

// What an actor of kind kv holds.
type state struct {
	exists bool
	value  string
}

// One command to a key. LOSE: the actor's node may have died, its memory with it.
type input struct {
	command, argument string
}

type key struct {
	name string
	ops  []porcupine.Operation // `Input` is an input, `Output` a string, "" where it is not known
}

func (s state) String() string {
	if !s.exists {
		return "nil"
	}
	return s.value
}

// What the actor answers in that state, and its state then.
func run(s state, in input) (string, state) {
	switch in.command {
	case "GET":
		return s.String(), s
	case "SET":
		return "OK", state{true, in.argument}
	case "GETSET":
		return s.String(), state{true, in.argument}
	case "SETNX":
		if s.exists {
			return "0", s
		}
		return "1", state{true, in.argument}
	case "DEL":
		if s.exists {
			return "1", state{}
		}
		return "0", state{}
	case "APPEND":
		value := s.value + in.argument
		return strconv.Itoa(len(value)), state{true, value}
	case "INCR":
		number := 0
		if s.exists {
			number, _ = strconv.Atoi(s.value)
		}
		value := strconv.Itoa(number + 1)
		return value, state{true, value}
	}
	panic("no such command: " + in.command) // parse() has refused it
}

func isOfRegister(in input) bool {
	switch in.command {
	case "GET", "SET", "GETSET", "SETNX", "DEL", "APPEND", "INCR", "LOSE":
		return true
	}
	return false
}

func step(s, in, out interface{}) []interface{} {
	if in.(input).command == "LOSE" {
		return []interface{}{s, state{}}
	}
	answer, next := run(s.(state), in.(input))
	if out.(string) != "" && out.(string) != answer {
		return nil
	}
	return []interface{}{next}
}

var registers = (&porcupine.NondeterministicModel{
	Init:          func() []interface{} { return []interface{}{state{}} },
	Step:          step,
	DescribeState: func(s interface{}) string { return s.(state).String() },
	DescribeOperation: func(in, out interface{}) string {
		i := in.(input)
		return strings.TrimSpace(i.command+" "+i.argument) + " -> " + out.(string)
	},
}).ToModel()

func (s subject) judge(k key) porcupine.CheckResult {
	return porcupine.CheckOperationsTimeout(s.model, k.ops, patience)
}

// ---- the file

func fail(format string, words ...interface{}) {
	fmt.Fprintf(os.Stderr, "linearizable: "+format+"\n", words...)
	os.Exit(2)
}

func (s subject) parse(line string, client int) (porcupine.Operation, error) {
	op := porcupine.Operation{ClientId: client, Return: never, Output: ""}
	words := strings.Split(line, " ")
	if len(words) != 5 {
		return op, fmt.Errorf("five words a line, not %d", len(words))
	}
	call, err := strconv.ParseInt(words[0], 10, 64)
	if err != nil {
		return op, err
	}
	op.Call = call
	in := input{words[2], words[3]}
	op.Input = in
	if words[1] != "-" {
		if op.Return, err = strconv.ParseInt(words[1], 10, 64); err != nil {
			return op, err
		}
		if words[4] != "-" {
			op.Output = words[4]
		}
	}
	if op.Return < op.Call {
		return op, fmt.Errorf("it ends before it begins")
	}
	if !s.fits(in) {
		return op, fmt.Errorf("no such command: %s %s", in.command, in.argument)
	}
	return op, nil
}

// Calls `each` for one key after the other: a history of hours need not fit into memory.
func read(path string, each func(s subject, k key)) {
	file, err := os.Open(path)
	if err != nil {
		fail("%v", err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	lines.Scan()
	s, known := subjects[lines.Text()]
	if !known {
		fail("%s:1: it is no history of operations", path)
	}
	k := key{}
	for number := 2; lines.Scan(); number++ {
		line := lines.Text()
		if strings.HasPrefix(line, "KEY ") {
			if len(k.ops) > 0 {
				each(s, k)
			}
			k = key{name: line[4:]}
			continue
		}
		op, err := s.parse(line, len(k.ops)%16)
		if err == nil && k.name == "" {
			err = fmt.Errorf("an operation of no key")
		}
		if err != nil {
			fail("%s:%d: %v", path, number, err)
		}
		k.ops = append(k.ops, op)
	}
	if err := lines.Err(); err != nil {
		fail("%s: %v", path, err)
	}
	if len(k.ops) > 0 {
		each(s, k)
	}
}

func judgeAll(path string) bool {
	keys, ops, open, lost, longest := 0, 0, 0, 0, 0
	result := map[porcupine.CheckResult]int{}
	read(path, func(s subject, k key) {
		keys++
		for _, op := range k.ops {
			if op.Input.(input).command == "LOSE" {
				lost++
				continue
			}
			ops++
			if op.Return == never {
				open++
			}
		}
		if len(k.ops) > longest {
			longest = len(k.ops)
		}
		verdict := s.judge(k)
		result[verdict]++
		if verdict == porcupine.Ok {
			return
		}
		fmt.Printf("%s: %s\n", k.name, verdict)
		if result[verdict] == 1 {
			_, info := porcupine.CheckOperationsVerbose(s.model, k.ops, patience)
			page := path + "." + strings.ToLower(string(verdict)) + ".html"
			if porcupine.VisualizePath(s.model, info, page) == nil {
				fmt.Printf("%s: drawn in %s\n", k.name, page)
			}
		}
	})
	memory := ""
	if lost > 0 {
		memory = fmt.Sprintf("; %d may have lost their memory", lost)
	}
	fmt.Printf("%d operations (%d of unknown outcome) of %d keys (%d at most of one%s): linearizable %d, refused %d, "+
		"undecided %d\n", ops, open, keys, longest, memory, result[porcupine.Ok], result[porcupine.Illegal],
		result[porcupine.Unknown])
	return keys > 0 && result[porcupine.Ok] == keys
}

// ---- a doctored history of registers

func (k key) has(command string) bool {
	for _, op := range k.ops {
		if op.Input.(input).command == command {
			return true
		}
	}
	return false
}

func (k key) known(i int, command string) bool {
	return k.ops[i].Input.(input).command == command && k.ops[i].Return != never
}

// A read tells the value that was there before a write that had ended.
func stale(k *key) bool {
	if k.has("LOSE") {
		return false
	}
	for a := range k.ops {
		for b := range k.ops {
			for r := range k.ops {
				if k.known(a, "SET") && k.known(b, "SET") && k.known(r, "GET") &&
					k.ops[a].Return < k.ops[b].Call && k.ops[b].Return < k.ops[r].Call {
					k.ops[r].Output = k.ops[a].Input.(input).argument
					return true
				}
			}
		}
	}
	return false
}

// What an append did that was answered is not seen by anything that begins later.
func lostWrite(k *key) bool {
	if k.has("LOSE") {
		return false
	}
	for a := range k.ops {
		token, seen := k.ops[a].Input.(input).argument, false
		if !k.known(a, "APPEND") {
			continue
		}
		for i := range k.ops {
			if k.ops[i].Call <= k.ops[a].Return {
				continue
			}
			if k.known(i, "GET") {
				k.ops[i].Output = strings.Replace(k.ops[i].Output.(string), token, "", 1)
				seen = true
			} else if k.known(i, "APPEND") {
				size, _ := strconv.Atoi(k.ops[i].Output.(string))
				k.ops[i].Output = strconv.Itoa(size - len(token))
			}
		}
		if seen {
			return true
		}
	}
	return false
}

// An increment counts twice: what begins later sees one more.
func doubled(k *key) bool {
	var first int64 = never // when the first increment has ended
	for _, op := range k.ops {
		if op.Return == never || op.Input.(input).command == "LOSE" {
			return false // it could be what the second one did
		}
		if op.Input.(input).command == "INCR" && op.Return < first {
			first = op.Return
		}
	}
	found := false
	for i, op := range k.ops {
		if op.Call > first {
			number, _ := strconv.Atoi(op.Output.(string))
			k.ops[i].Output = strconv.Itoa(number + 1)
			found = found || op.Input.(input).command == "INCR"
		}
	}
	return found
}

// What was lost with a node is back after the key was seen without it.
func olderEpoch(k *key) bool {
	var old string
	var written, gone int64 = never, never
	for i, op := range k.ops {
		in := op.Input.(input)
		if in.command == "DEL" || op.Return == never {
			return false
		}
		if in.command == "SET" && old == "" {
			old, written = in.argument, op.Return
		}
		if in.command == "GET" && op.Call > gone {
			k.ops[i].Output = old
			return true
		}
		if in.command == "GET" && op.Output == "nil" && op.Call > written {
			gone = op.Return
		}
	}
	return false
}

// ---- a doctored history

func doctored(path string) bool {
	done, refused := map[string]bool{}, map[string]bool{}
	var ways []way
	read(path, func(s subject, k key) {
		ways = s.ways
		sort.SliceStable(k.ops, func(i, j int) bool { return k.ops[i].Call < k.ops[j].Call })
		for _, w := range ways {
			copied := key{k.name, append([]porcupine.Operation(nil), k.ops...)}
			if !done[w.name] && s.judge(k) == porcupine.Ok && w.spoil(&copied) {
				done[w.name], refused[w.name] = true, s.judge(copied) == porcupine.Illegal
			}
		}
	})
	sound := len(ways) > 0
	for _, w := range ways {
		verdict := "refused"
		if !done[w.name] {
			verdict = "no key has a place for it"
		} else if !refused[w.name] {
			verdict = "NOT refused"
		}
		sound = sound && verdict == "refused"
		fmt.Printf("doctored, %s: %s\n", w.name, verdict)
	}
	return sound
}

func main() {
	words := os.Args[1:]
	judged := false
	if len(words) == 2 && words[0] == "--doctored" {
		judged = doctored(words[1])
	} else if len(words) == 1 {
		judged = judgeAll(words[0])
	} else {
		fail("usage: linearizable [--doctored] FILE")
	}
	if !judged {
		os.Exit(1)
	}
}
