package chaos

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/ring"
	"github.com/dunlin-cache/dunlin/test/harness"
)

// diver is a mixer that goes deep: pipelines from one command to thousands, in both protocol
// versions in turn, in lines and in arrays, with commands that are split, deleted keys,
// transactions and errors in between. A rude one hangs up in the middle at times and begins anew,
// with other keys: what it had sent may be executed later.
type diver struct {
	*mixer
	proxy   *harness.Member
	name    string
	rude    bool
	life    int
	retired []string // the keys of the life before
	deepest int      // pipeline
}

const inlineOneIn = 16

func (x *Rig) newDiver(proxy *harness.Member, name string, rude bool) *diver {
	d := &diver{proxy: proxy, name: name, rude: rude}
	d.mixer = x.newMixer(proxy, name)
	d.inline = inlineOneIn
	return d
}

func (d *diver) run() {
	for !d.X.Stopped() {
		if !d.X.reaches(d.own[0].Key) {
			time.Sleep(time.Millisecond)
			continue
		}
		depth := d.depth()
		d.deepest = max(d.deepest, depth)
		for len(d.Judges) < depth {
			d.addAny()
		}
		if d.rude && d.Rng.IntN(100) == 0 {
			if !d.hangUp() {
				return
			}
		} else if !d.Exchange() {
			return
		}
		// A pause leaves processor time for the other processes.
		time.Sleep(time.Duration(d.Rng.IntN(4)) * time.Millisecond)
	}
	d.end()
}

func (d *diver) depth() int {
	switch n := d.Rng.IntN(100); {
	case n < 30:
		return 1
	case n < 80:
		return 1 + d.Rng.IntN(64)
	case n < 97:
		return 1 + d.Rng.IntN(512)
	}
	return 1 + d.Rng.IntN(4000)
}

func (d *diver) addAny() {
	d.selects(d.own[0].Key)
	switch d.Rng.IntN(20) {
	default:
		d.addOne()
	case 0:
		d.count("EXISTS", d.some(d.own))
	case 1:
		d.count("TOUCH", d.some(d.own))
	case 2:
		d.remove([]string{"DEL", "UNLINK"}[d.Rng.IntN(2)], d.some(d.own))
	case 3:
		d.remove("DEL", d.own[:1])
	case 4:
		d.wrong()
	case 6:
		d.transact(d.own[d.Rng.IntN(len(d.own))], d.Rng.IntN(2) == 0, d.Rng.IntN(2) == 0)
	case 7:
		d.discard(d.own[d.Rng.IntN(len(d.own))])
	case 5:
		if d.Rng.IntN(8) == 0 {
			d.hello([]resp.Version{resp.RESP2, resp.RESP3}[d.Rng.IntN(2)])
		}
	}
}

// wrong adds a command that the proxy itself refuses. The error must come in the order of replies.
func (d *diver) wrong() {
	word := fmt.Sprintf("nosuch%d", d.Rng.Uint64())
	d.Add(func(reply []byte) {
		if want := "-ERR unknown command '" + word + "', with args beginning with: \r\n"; string(reply) != want && !isCut(reply) {
			d.X.Violate("%s: %s answers %.80q", d.name, word, reply)
		}
	}, word)
	d.Add(func(reply []byte) {
		if want := "-ERR wrong number of arguments for 'get' command\r\n"; string(reply) != want && !isCut(reply) {
			d.X.Violate("%s: GET without a key answers %.80q", d.name, reply)
		}
	}, "GET")
}

// count adds a command that counts how many of some own keys exist.
func (d *diver) count(name string, all []*History) {
	d.Add(func(reply []byte) {
		// If a pipe broke, the command may have been sent again, after later commands.
		d.judgeCount(name, reply, all, nil)
	}, d.line(name, all)...)
}

// remove deletes own keys, and judges how many of them existed.
func (d *diver) remove(name string, all []*History) {
	now, seqs := time.Now(), make([]uint64, len(all))
	for i, h := range all {
		seqs[i] = h.remove(now)
	}
	d.Add(func(reply []byte) {
		o := d.judgeCount(name, reply, all, seqs)
		if o == notExecuted && len(all) > 1 {
			o = unknown // parts of it may be
		}
		for i, h := range all {
			h.Answered(seqs[i], o)
		}
	}, d.line(name, all)...)
}

func (d *diver) line(name string, all []*History) []string {
	args := []string{name}
	for _, h := range all {
		args = append(args, h.Key)
	}
	return args
}

// judgeCount judges the number of keys that a command found. seqs are the deletions by the command
// itself, nil if it only reads.
func (d *diver) judgeCount(name string, reply []byte, all []*History, seqs []uint64) outcome {
	n, ok := resp.DecodeInt(reply)
	if !ok {
		return d.X.Outcome(d.Session, reply, "")
	}
	few, many := miscount{name: name, what: "keys too few"}, miscount{name: name, what: "keys too many"}
	most := 0
	for i, h := range all {
		upTo := uint64(0)
		if seqs != nil {
			upTo = seqs[i] - 1
		} else {
			upTo = h.Look().issued
		}
		may, must := h.presence(upTo)
		if may {
			most++
		} else if h.Look().Floor > 0 {
			many.explains = append(many.explains, h.revived(time.Now()))
		}
		if must {
			few.explains = append(few.explains, h.lost(time.Now()))
		}
	}
	if n < 0 {
		d.X.Violate("%s: %s finds %d keys", d.name, name, n)
	}
	if few.off = len(few.explains) - int(n); few.off > 0 {
		d.X.miscounted(few)
	}
	if many.off = int(n) - most; many.off > 0 {
		d.X.miscounted(many)
	}
	return Executed
}

// hangUp sends the queued commands, reads some of the replies, and connects again.
func (d *diver) hangUp() bool {
	out, judges := d.out, d.Judges
	d.out, d.Judges = nil, nil
	sent := make(chan struct{})
	go func() {
		_ = d.Link.Send(out) // the connection may be closed by then
		close(sent)
	}()
	read := d.Rng.IntN(len(judges))
	for _, judge := range judges[:read] {
		reply, err := d.Link.Receive(time.Now().Add(harness.AnswerTime))
		if err != nil {
			d.X.Violate("%s: no reply before it hangs up: %v", d.name, hung(err))
			return false
		}
		judge(reply)
	}
	d.Link.Conn.Close()
	<-sent
	l, err := harness.DialLink(d.proxy.Addr)
	if err != nil {
		d.X.Violate("%s: cannot connect: %v", d.name, err)
		return false
	}
	d.life++
	d.Link, d.version, d.database, d.selected = l, resp.RESP2, 0, 0
	if len(d.retired) > 0 { // their writes were executed or dropped long ago
		d.selects(d.retired[0])
		d.Add(func([]byte) {}, append([]string{"UNLINK"}, d.retired...)...)
	}
	life := fmt.Sprintf("%s:life%d", d.name, d.life)
	d.retired = append(d.line("", d.own)[1:], d.acquire(life, false)...)
	d.own = nil
	for i := range keysPerMixer {
		d.own = append(d.own, NewHistory(fmt.Sprintf("%s:life%d:%d", d.name, d.life, i)))
	}
	key := fmt.Sprintf("count:%s:life%d", d.name, d.life)
	d.counter = counter{key: key, partition: ring.PartitionOf([]byte(key)), sent: time.Now()}
	return true
}

// end checks that nothing follows the last reply.
func (d *diver) end() {
	defer d.Link.Conn.Close()
	d.echo()
	if !d.Exchange() {
		return
	}
	if c, ok := d.Link.Conn.(interface{ CloseWrite() error }); ok {
		_ = c.CloseWrite()
	}
	if reply, err := d.Link.Receive(time.Now().Add(harness.AnswerTime)); err == nil || hung(err).Error() != closedText {
		d.X.Violate("%s: %.80q, %v behind the last reply, want the end", d.name, bytes.Clone(reply), err)
	}
}

func deepest(all []*diver) int {
	return slices.MaxFunc(all, func(a, b *diver) int { return a.deepest - b.deepest }).deepest
}
