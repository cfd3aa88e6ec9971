package proxy

import (
	"bytes"
	"errors"
	"strings"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/config"
	"github.com/dunlin-cache/dunlin/internal/figures"
	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/proxy/order"
	"github.com/dunlin-cache/dunlin/proxy/wide"
)

// census is a command over the whole cluster. It asks its question (package wide) round by round.
type census struct {
	s        *client
	seq      uint64
	cmd      *command.Command
	words    [][]byte
	begun    time.Duration
	database uint8
	question *wide.Question
	args     int  // bytes of the arguments, charged to the session
	charged  int  // bytes of answers that the session has gathered
	paced    bool // others rest behind it
}

// wideHost adds to replies what only the proxy knows.
type wideHost struct{ p *Proxy }

func (h wideHost) AppendInfo(dst []byte, v resp.Version, sections [][]byte, of figures.Info) []byte {
	return h.p.appendInfo(dst, v, sections, of)
}

func (h wideHost) Config() *config.Config { return h.p.settings }

func (h wideHost) SlowLog() *figures.SlowLog { return &h.p.slow }

// everywhere starts a command over the whole cluster, on the large lane, since it may keep a node
// busy. It reports false if the command must wait.
func (s *client) everywhere(cmd *command.Command, args [][]byte) bool {
	if cmd.ID == command.Info && !figures.InfoNeedsNodes(args[1:]) {
		return s.local(cmd, args, nil)
	}
	if cmd.ID == command.Wait {
		return s.awaitCopies(cmd, args)
	}
	if cmd.Group == "scripting" {
		if r := s.mayScript(cmd); r != reached {
			return r == below
		}
	}
	if s.Outstanding() > 0 {
		return false // rounds are repeated, so no other command of the session may be in flight
	}
	size, err := wide.Accept(cmd, args)
	if err != nil {
		s.answer(wire(err.Error()))
		return true
	}
	if !s.Keep(size) {
		s.answer(errNotParked)
		return true
	}
	words := cloneAll(args)
	question, err := wide.New(&wide.Call{
		Command: cmd, Args: words, Version: s.state.Version,
		Now: s.w.loop.Now(), Patience: s.w.proxy.cfg.Patience, Host: wideHost{s.w.proxy},
		Level: s.w.order.Level(), PartitionOf: s.partitionOf,
	})
	if err != nil {
		s.Keep(-size)
		s.answer(wire(err.Error()))
		return true
	}
	s.w.order.Begin(&s.Session, order.Lane{Kind: member.Large, Version: s.state.Version})
	c := &census{s: s, seq: s.tail, cmd: cmd, words: words, begun: s.w.loop.Clock(), question: question, args: size}
	if question.OfDatabase {
		c.database = s.state.Database
	}
	s.issueCounted(cmd)
	c.begin()
	return true
}

// begin asks the nodes, or rests before that. A rest takes none of the time that there is for nodes.
func (c *census) begin() {
	w := c.s.w
	if !c.onlyLooks() || !w.strained() {
		c.round()
		return
	}
	if begun := w.loop.Now(); w.widePace.mustRest() {
		w.widePace.rest(func() {
			c.question.Rounds.Deadline += w.loop.Now() - begun
			c.begin()
		})
		return
	}
	c.paced = true
	w.widePace.begin(c)
	c.round()
}

// onlyLooks reports whether nobody waits for what the command does, such as for the end of a script.
func (c *census) onlyLooks() bool {
	return c.cmd.Flags&command.Write == 0 && c.cmd.Group != "scripting" && c.cmd.ID != command.ConfigSet
}

// round asks every node that owns wanted partitions.
func (c *census) round() {
	if c.s.isClosed() {
		return
	}
	w, now := c.s.w, c.s.w.loop.Now()
	if c.question.Rounds.Expired(now) {
		if c.question.AboutNodes {
			c.finish(c.question.Reply(nil)) // from the nodes that answered
			return
		}
		c.finish(c.expired())
		return
	}
	c.question.Begin()
	r := order.Request{Session: &c.s.Session, Part: c, Seq: c.seq, Origin: order.Origin{Database: c.database}}
	over := c.question.Rounds.Ask(w.order, r, c.question.Words, now)
	w.act()
	if over {
		c.roundOver()
	}
}

// expired returns the answer when the last round that may begin has left partitions.
func (c *census) expired() []byte {
	if c.question.Rounds.Told() && !c.question.Checks && c.cmd.Flags&command.ReadOnly == 0 {
		return errSomeNodes
	}
	return errParkedLong
}

// Done receives a node's answer: the partitions that it covers, and the reply.
func (c *census) Done(id int32, reply []byte) {
	if c.s.isClosed() { // nobody waits for the answers: they must not gather
		c.answered()
		return
	}
	if covered, inner, ok := member.ParseAnswer(reply); ok {
		rounds := &c.question.Rounds
		rounds.Cover(c.s.w.order, id, covered)
		c.question.Add(wide.Answer{Node: rounds.Asked(id).Member.ID, Covered: covered, Reply: inner})
		size := c.question.Size()
		c.s.gather(size - c.charged)
		c.charged = size
	} else if resp.IsError(reply) {
		c.question.Fail(errors.New(strings.TrimSpace(string(bytes.TrimPrefix(reply, []byte("-"))))))
	} else {
		c.question.FailMalformed()
	}
	c.answered()
}

// Undone notes that a question came back without an answer. The next round asks about its
// partitions again.
func (c *census) Undone() { c.answered() }

// answered counts an answer of the round.
func (c *census) answered() {
	if c.question.Rounds.Answered() {
		c.roundOver()
	}
}

// roundOver finishes the command, or asks again.
func (c *census) roundOver() {
	switch {
	case c.s.isClosed():
		c.came()
	case c.question.Finished():
		c.finish(c.question.Reply(c.s.w.scratch[:0]))
	default:
		c.s.w.loop.After(c.question.Rounds.Pause(c.s.w.loop.Now()), c.round)
	}
}

// came has others go on that rest behind the command.
func (c *census) came() {
	if c.paced {
		c.s.w.widePace.came(c)
	}
}

func (c *census) finish(reply []byte) {
	c.came()
	s := c.s
	if s.isClosed() {
		return
	}
	s.noteSlow(c.cmd, c.words, s.w.loop.Clock()-c.begun)
	s.gather(-c.charged)
	s.Keep(-c.args)
	s.End()
	s.reply(c.seq, reply)
}
