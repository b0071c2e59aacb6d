// SPDX-License-Identifier: Apache-2.0

// Accounts of examples/gifts.c. What is judged of one, and why that is sound: docs/history.md.

package main

import (
	"strconv"
	"strings"

	"github.com/anishathalye/porcupine"
)

// Its answer where more is to be given than there is.
const poor = "POOR"

// TAKE: a gift of somebody else arrives, at any time from its giver's request to the end of the run.
func isOfAccount(in input) bool {
	amount, err := strconv.ParseInt(in.argument, 10, 64)
	switch in.command {
	case "EARN", "GIVE", "TAKE":
		return err == nil && amount > 0
	case "GOLD":
		return in.argument == "-"
	}
	return false
}

func amountOf(op porcupine.Operation) int64 {
	amount, _ := strconv.ParseInt(op.Input.(input).argument, 10, 64) // isOfAccount() has seen that it is a number
	return amount
}

// What the account answers that has so much gold, and its gold then.
func runAccount(gold int64, in input) (string, int64) {
	amount, _ := strconv.ParseInt(in.argument, 10, 64)
	switch in.command {
	case "EARN", "TAKE":
		gold += amount
	case "GIVE":
		if amount > gold {
			return poor, gold
		}
		gold -= amount
	}
	return strconv.FormatInt(gold, 10), gold
}

var accounts = porcupine.Model{
	Init: func() interface{} { return int64(0) },
	Step: func(s, in, out interface{}) (bool, interface{}) {
		answer, next := runAccount(s.(int64), in.(input))
		return out.(string) == "" || out.(string) == answer, next
	},
	DescribeState: func(s interface{}) string { return strconv.FormatInt(s.(int64), 10) },
	DescribeOperation: func(in, out interface{}) string {
		i := in.(input)
		return strings.TrimSuffix(i.command+" "+i.argument, " -") + " -> " + out.(string)
	},
}

// ---- a doctored history of accounts. What is spoilt shows at the latest in the last line of the account, its gold in the
// store, which no other operation can make good if none is of unknown outcome.

// The index of an operation of that command, or -1; -1, too, if an operation is of unknown outcome.
func (k *key) certain(command string) int {
	found := -1
	for i, op := range k.ops {
		if op.Return == never {
			return -1
		}
		if op.Input.(input).command == command && op.Output != poor {
			found = i
		}
	}
	return found
}

func lostGift(k *key) bool {
	i := k.certain("TAKE")
	if i >= 0 {
		k.ops = append(k.ops[:i], k.ops[i+1:]...)
	}
	return i >= 0
}

func doubledGift(k *key) bool {
	i := k.certain("TAKE")
	if i >= 0 {
		k.ops = append(k.ops, k.ops[i])
	}
	return i >= 0
}

// What begins after a gift was answered sees so many times its amount more.
func (k *key) shift(times int64) bool {
	i := k.certain("GIVE")
	if i < 0 {
		return false
	}
	for j, op := range k.ops {
		gold, err := strconv.ParseInt(op.Output.(string), 10, 64)
		if err == nil && op.Call > k.ops[i].Return {
			k.ops[j].Output = strconv.FormatInt(gold+times*amountOf(k.ops[i]), 10)
		}
	}
	return true
}

func notSaved(k *key) bool { return k.shift(1) }

func ranTwice(k *key) bool { return k.shift(-1) }
