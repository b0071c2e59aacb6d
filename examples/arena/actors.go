// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"time"

	host "ringhold.dev/hosts/go"
)

// What is written about gold is saved by the same commit that sends it on, and what is sent once arrives
// once: so none is lost and none is made, whichever process dies in between. A bet is with its room
// from the "bet" on until the room pays "paid 2", or gives it back, "paid 1".
const (
	startGold = 10
	roundTime = 20 * time.Second // who hasn't chosen by then has lost
	keptFor   = time.Minute      // what is asked of a room that is over
	boardSize = 10
)

// number of a value; 0 if there is none.
func number(a *host.Actor, key string) int {
	value, _ := a.Get(key)
	n, _ := strconv.Atoi(string(value))
	return n
}

func put(t *host.Turn, key string, n int) { t.Put(key, []byte(strconv.Itoa(n))) }

func text(a *host.Actor, key string) string {
	value, _ := a.Get(key)
	return string(value)
}

// A Player has gold, and is in one room at most. Its client says "hello", "play", "choose rock",
// "give bob 3", "top"; what is pushed to it begins with "you", "match", "over" or "gift".
type Player struct{ *host.Actor }

func (p *Player) gold() int {
	if _, ok := p.Get("gold"); !ok {
		return startGold
	}
	return number(p.Actor, "gold")
}

func (p *Player) you() string {
	return fmt.Sprintf(`you {"gold":%d,"wins":%d,"room":%q}`, p.gold(), number(p.Actor, "wins"), text(p.Actor, "room"))
}

// Receive does what the client says, and what the game's other actors send.
func (p *Player) Receive(t *host.Turn, m host.Message) (host.Value, error) {
	word, rest, _ := strings.Cut(string(m.Payload), " ")
	if m.From.ID != "" {
		return nil, p.hear(t, m.From, word, strings.Fields(rest))
	}
	switch word {
	case "hello":
		return host.Text(p.you()), nil
	case "top":
		top, err := t.Call(t.Named("board", "board"), []byte("top"))
		return host.Bytes(top), err
	case "play":
		return p.play(t)
	case "choose":
		return p.choose(t, rest)
	case "give":
		return p.give(t, strings.Fields(rest))
	}
	return nil, host.Error("ERR hello, play, choose, give, top")
}

func (p *Player) play(t *host.Turn) (host.Value, error) {
	if room := text(p.Actor, "room"); room != "" {
		return nil, host.Error("BUSY you are in " + room)
	}
	if p.gold() < 1 {
		return nil, host.Error("NOGOLD you have nothing to bet")
	}
	// The lobby has one player once, however often it is asked.
	_, err := t.Call(t.Named("lobby", "lobby"), []byte("play"), host.Idempotent())
	return host.Text("wait"), err
}

func (p *Player) choose(t *host.Turn, what string) (host.Value, error) {
	room := text(p.Actor, "room")
	if room == "" {
		return nil, host.Error("NOROOM you are in none")
	}
	_, err := t.Call(t.Named("room", room), []byte("choose "+what), host.Idempotent())
	return host.Text("chosen"), err
}

func (p *Player) give(t *host.Turn, words []string) (host.Value, error) {
	if len(words) != 2 || words[0] == p.ID() {
		return nil, host.Error("ERR give PLAYER GOLD")
	}
	gold, err := strconv.Atoi(words[1])
	if err != nil || gold < 1 {
		return nil, host.Error("ERR give PLAYER GOLD")
	}
	if p.gold() < gold {
		return nil, host.Error(fmt.Sprintf("NOGOLD you have %d", p.gold()))
	}
	put(t, "gold", p.gold()-gold)
	t.SendOnce(host.Ref{Kind: p.Ref().Kind, ID: words[0]}, []byte(fmt.Sprintf("gift %d", gold)))
	return host.Text(p.you()), nil
}

// hear what another actor sends; each of these comes once.
func (p *Player) hear(t *host.Turn, from host.Ref, word string, words []string) error {
	switch {
	case word == "gift" && len(words) == 1:
		gold, _ := strconv.Atoi(words[0])
		put(t, "gold", p.gold()+gold)
		t.Push([]byte(fmt.Sprintf("gift %s %d", from.ID, gold)))
	case word == "match" && len(words) == 2 && from.Kind == t.Named("lobby", "lobby").Kind:
		// The bet goes to the room. Who has spent the gold meanwhile, or is in a room, bets nothing.
		room := t.Named("room", words[0])
		if text(p.Actor, "room") != "" || p.gold() < 1 {
			t.SendOnce(room, []byte("no "+words[1]))
			return nil
		}
		put(t, "gold", p.gold()-1)
		t.Put("room", []byte(room.ID))
		t.SendOnce(room, []byte("bet "+words[1]))
		t.Push([]byte("match " + words[1]))
	case word == "paid" && len(words) == 3 && from.Kind == t.Named("room", "x").Kind:
		gold, _ := strconv.Atoi(words[0])
		put(t, "gold", p.gold()+gold)
		t.Delete("room")
		if gold == 2 {
			put(t, "wins", number(p.Actor, "wins")+1)
			t.SendOnce(t.Named("board", "board"), []byte(fmt.Sprintf("wins %d", number(p.Actor, "wins"))))
		}
		t.Push([]byte(fmt.Sprintf("over %d %s %s", gold, words[1], words[2])))
	}
	t.Push([]byte(p.you()))
	return nil
}

// Session lets every client in: a game would ask for a token (docs/security.md).
func (p *Player) Session(t *host.Turn, s host.Session) error {
	if s.Event != host.Lost {
		t.Push([]byte(p.you()))
	}
	return nil
}

// The Lobby, a singleton, has at most one player who waits, and makes a room for each two.
type Lobby struct{ *host.Actor }

// Receive takes a player.
func (l *Lobby) Receive(t *host.Turn, m host.Message) (host.Value, error) {
	if string(m.Payload) != "play" || m.From.ID == "" {
		return nil, host.Error("ERR only players play")
	}
	waiting := text(l.Actor, "waiting")
	if waiting == "" || waiting == m.From.ID {
		t.Put("waiting", []byte(m.From.ID))
		return nil, nil
	}
	n := number(l.Actor, "rooms") + 1
	room := fmt.Sprintf("room-%d", n)
	put(t, "rooms", n)
	t.Delete("waiting")
	t.SendOnce(m.From, []byte("match "+room+" "+waiting))
	t.SendOnce(host.Ref{Kind: m.From.Kind, ID: waiting}, []byte("match "+room+" "+m.From.ID))
	return nil, nil
}

// A Room has the bets of two players until it has paid. Its values: "of/NAME" = the opponent, "bet/NAME" = 1 or
// 0, "choice/NAME", "kind" of the players, "over".
type Room struct{ *host.Actor }

// Receive takes bets and choices.
func (r *Room) Receive(t *host.Turn, m host.Message) (host.Value, error) {
	word, rest, _ := strings.Cut(string(m.Payload), " ")
	switch {
	case m.From.ID == "":
		return nil, host.Error("ERR only players play")
	case word == "bet" || word == "no":
		r.bet(t, m.From, rest, word == "bet")
		return nil, nil
	case word == "choose" && beats[rest] != "":
		if _, ok := r.Get("bet/" + m.From.ID); !ok || text(r.Actor, "over") != "" {
			return nil, host.Error("OVER it is over")
		}
		if _, ok := r.Get("choice/" + m.From.ID); !ok {
			t.Put("choice/"+m.From.ID, []byte(rest))
			r.judge(t, false)
		}
		return nil, nil
	}
	return nil, host.Error("ERR choose rock, paper or scissors")
}

func (r *Room) bet(t *host.Turn, from host.Ref, opponent string, has bool) {
	put(t, "kind", int(from.Kind))
	t.Put("of/"+from.ID, []byte(opponent))
	put(t, "bet/"+from.ID, map[bool]int{true: 1}[has])
	if _, ok := r.Actor.Alarm("round"); !ok {
		t.SetAlarm(host.Alarm{Name: "round", Due: time.Now().Add(roundTime)})
	}
	r.judge(t, false)
}

// Alarm: the time is over; or all that was said of it is, and nothing is kept of it.
func (r *Room) Alarm(t *host.Turn, a host.Alarm) error {
	if a.Name == "forget" {
		for _, key := range r.Keys("") {
			t.Delete(key)
		}
		t.Passivate()
		return nil
	}
	r.judge(t, true)
	return nil
}

var beats = map[string]string{"rock": "scissors", "scissors": "paper", "paper": "rock"}

// judge pays when both have chosen, one did not bet, or the time is over.
func (r *Room) judge(t *host.Turn, late bool) {
	var names []string
	for _, key := range r.Keys("bet/") {
		names = append(names, strings.TrimPrefix(key, "bet/"))
	}
	if len(names) == 0 || text(r.Actor, "over") != "" || (len(names) == 1 && !late) {
		return // the other one's bet is on its way; it comes for certain
	}
	if len(names) == 1 {
		t.SetAlarm(host.Alarm{Name: "round", Due: time.Now().Add(roundTime)})
		return
	}
	choices := []string{text(r.Actor, "choice/"+names[0]), text(r.Actor, "choice/"+names[1])}
	both := number(r.Actor, "bet/"+names[0])+number(r.Actor, "bet/"+names[1]) == 2
	if both && !late && (choices[0] == "" || choices[1] == "") {
		return
	}
	pay := []int{1, 1}
	if both && choices[0] != choices[1] {
		first := choices[1] == "" || (choices[0] != "" && beats[choices[0]] == choices[1])
		pay = map[bool][]int{true: {2, 0}, false: {0, 2}}[first]
	}
	for i, name := range names {
		if number(r.Actor, "bet/"+name) == 1 {
			said := fmt.Sprintf("paid %d %s %s", pay[i], orNone(choices[i]), orNone(choices[1-i]))
			t.SendOnce(host.Ref{Kind: uint16(number(r.Actor, "kind")), ID: name}, []byte(said))
		}
	}
	t.Put("over", []byte("1"))
	t.CancelAlarm("round")
	t.SetAlarm(host.Alarm{Name: "forget", Due: time.Now().Add(keptFor)})
}

func orNone(choice string) string {
	if choice == "" {
		return "nothing"
	}
	return choice
}

// The Board, a singleton, knows who has won most.
type Board struct{ *host.Actor }

// Receive takes what players have won, and tells the best.
func (b *Board) Receive(t *host.Turn, m host.Message) (host.Value, error) {
	word, rest, _ := strings.Cut(string(m.Payload), " ")
	type row struct {
		Name string `json:"name"`
		Wins int    `json:"wins"`
	}
	all := []row{}
	for _, key := range b.Keys("top/") {
		all = append(all, row{strings.TrimPrefix(key, "top/"), number(b.Actor, key)})
	}
	sort.Slice(all, func(i, j int) bool {
		return all[i].Wins > all[j].Wins || (all[i].Wins == all[j].Wins && all[i].Name < all[j].Name)
	})
	if word == "wins" && m.From.ID != "" {
		wins, _ := strconv.Atoi(rest)
		if _, ok := b.Get("top/" + m.From.ID); !ok && len(all) >= boardSize {
			last := all[len(all)-1]
			if last.Wins >= wins {
				return nil, nil
			}
			t.Delete("top/" + last.Name)
		}
		put(t, "top/"+m.From.ID, wins)
		return nil, nil
	}
	told, err := json.Marshal(all)
	return host.Bytes(append([]byte("top "), told...)), err
}
