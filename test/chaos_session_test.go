package test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/dunlin-cache/dunlin/internal/resp"
)

// session is one client connection to a proxy with what it sends. Each of its
// commands comes with the judge of its reply; replies are judged in order.
type session struct {
	x      *chaos
	name   string
	link   *link
	rng    *rand.Rand
	out    []byte
	judges []func(reply []byte)
	// failures counts the error replies that clients must expect.
	failures int
	version  resp.Version // of the replies
	inline   int          // one request in so many goes as a line of words; 0: none
}

func (s *session) add(judge func(reply []byte), args ...string) {
	request := make([][]byte, len(args))
	for i, a := range args {
		request[i] = []byte(a)
	}
	s.judges = append(s.judges, judge)
	if line := strings.Join(args, " "); s.inline > 0 && len(line) < 32<<10 && s.rng.IntN(s.inline) == 0 {
		s.out = append(append(s.out, line...), "\r\n"[s.rng.IntN(2):]...)
		return
	}
	s.out = resp.AppendRequest(s.out, request...)
}

// exchange sends what was added and judges the replies. False: the connection is of
// no use any more, and why has been reported.
func (s *session) exchange() bool {
	begin := time.Now()
	out, judges := s.out, s.judges
	s.out, s.judges = s.out[:0], s.judges[:0]
	sent := make(chan error, 1)
	cut := s.rng.IntN(len(out) + 1) // it is sent in two pieces
	go func() { sent <- errors.Join(s.link.send(out[:cut]), s.link.send(out[cut:])) }()
	progress := begin
	for i, judge := range judges {
		// Nodes may stand still one after the other while a deep pipeline is served.
		reply, err := s.link.receive(progress.Add(answerTime))
		if err != nil {
			s.x.violate("%s: no reply to command %d of %d, sent %s, after %v: %v (%.200q)", s.name, i+1, len(judges),
				clock(begin), time.Since(begin), hung(err), out)
			return false
		}
		s.x.tookReply(time.Since(progress), func() string {
			return fmt.Sprintf("%s: reply %d of %d to the batch sent %s: %.60q", s.name, i+1, len(judges), clock(begin), reply)
		})
		progress = time.Now()
		judge(reply)
	}
	if err := <-sent; err != nil {
		s.x.violate("%s: cannot send: %v", s.name, err)
		return false
	}
	if len(s.link.in) > 0 {
		s.x.violate("%s: surplus reply %.80q", s.name, s.link.in)
		return false
	}
	return true
}

const closedText = "the connection was closed"

func hung(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return errors.New("it hangs")
	}
	if errors.Is(err, io.EOF) {
		return errors.New(closedText)
	}
	return err
}

// The commands, each with the judge of its reply.

func (s *session) set(h *history) {
	seq := h.write(time.Now())
	s.add(func(reply []byte) { h.answered(seq, s.x.outcome(s, reply, "+OK\r\n")) },
		"SET", h.key, string(appendValue(nil, h.key, seq)))
}

// get reads a key; own: one that this session writes.
func (s *session) get(h *history, own bool) {
	seen := h.look()
	s.add(func(reply []byte) { s.judgeRead(h, own, seen, reply) }, "GET", h.key)
}

func (s *session) judgeRead(h *history, own bool, seen sight, reply []byte) {
	if resp.IsError(reply) {
		s.x.outcome(s, reply, "")
		return
	}
	value, found := resp.DecodeBulk(reply)
	if !found && !s.isNull(reply) {
		s.x.violate("%s: GET %s answers %.80q", s.name, h.key, reply)
		return
	}
	if found && value == nil {
		value = []byte{}
	}
	if own {
		seen = h.lookOwn(seen)
	}
	if s.x.divided.Load() {
		s.x.judged(s.name, nil, h.believe(value))
		return
	}
	lost, err := h.read(seen, value, time.Now())
	s.x.judged(s.name, lost, err)
	if own && !h.newest(seen, value) {
		s.x.early(fmt.Sprintf("%s: GET %s shows %.60q, which is not write %d before it", s.name, h.key, value, seen.issued))
	}
}

// del deletes a key, whether it is there or not.
func (s *session) del(h *history) {
	seq := h.remove(time.Now())
	s.add(func(reply []byte) {
		o := executed
		if n, ok := resp.DecodeInt(reply); !ok || n < 0 || n > 1 {
			o = s.x.outcome(s, reply, "")
		}
		h.answered(seq, o)
	}, "DEL", h.key)
}

func (s *session) isNull(reply []byte) bool {
	if s.version == resp.RESP3 {
		return string(reply) == "_\r\n"
	}
	return string(reply) == "$-1\r\n"
}

// hello changes the version of the replies that follow.
func (s *session) hello(v resp.Version) {
	s.add(func(reply []byte) {
		s.version = v
		if !bytes.Contains(reply, []byte("\r\nproto\r\n:"+strconv.Itoa(int(v))+"\r\n")) {
			s.x.violate("%s: HELLO %d answers %.80q", s.name, v, reply)
		}
	}, "HELLO", strconv.Itoa(int(v)))
}

// mset writes several keys at once. When it fails, some parts may be executed.
func (s *session) mset(all []*history) {
	now, args := time.Now(), []string{"MSET"}
	seqs := make([]uint64, len(all))
	for i, h := range all {
		seqs[i] = h.write(now)
		args = append(args, h.key, string(appendValue(nil, h.key, seqs[i])))
	}
	s.add(func(reply []byte) {
		o := s.x.outcome(s, reply, "+OK\r\n")
		if o == notExecuted {
			o = unknown
		}
		for i, h := range all {
			h.answered(seqs[i], o)
		}
	}, args...)
}

func (s *session) mget(all []*history) {
	args, seen := []string{"MGET"}, make([]sight, len(all))
	for i, h := range all {
		args = append(args, h.key)
		seen[i] = h.look()
	}
	s.add(func(reply []byte) {
		if resp.IsError(reply) {
			s.x.outcome(s, reply, "")
			return
		}
		n, header, _ := resp.DecodeArray(reply)
		if n != len(all) {
			s.x.violate("%s: MGET of %d keys answers %.80q", s.name, len(all), reply)
			return
		}
		var scan resp.Scanner
		for i, rest := 0, reply[header:]; i < n && scan.Scan(rest) == resp.Done; i++ {
			s.judgeRead(all[i], false, seen[i], rest[:scan.Len()])
			rest = rest[scan.Len():]
		}
	}, args...)
}

func (s *session) incr(c *counter) {
	sent := time.Now()
	s.add(func(reply []byte) {
		n, ok := resp.DecodeInt(reply)
		if !ok {
			if s.x.outcome(s, reply, "") == unknown {
				c.unknown++
			}
			return
		}
		if era := s.x.era.Load(); c.era != era || s.x.divided.Load() {
			c.era = era
			c.forget(n, sent, time.Now())
			return
		}
		lost, err := c.incremented(n, sent, time.Now())
		s.x.judged(s.name, lost, err)
	}, "INCR", c.key)
}

// echo marks a place in the order of replies.
func (s *session) echo() {
	marker := fmt.Sprintf("%s-%d", s.name, s.rng.Uint64())
	s.add(func(reply []byte) {
		if got, _ := resp.DecodeBulk(reply); string(got) != marker {
			s.x.violate("%s: a reply out of order: ECHO %s answers %.80q", s.name, marker, reply)
		}
	}, "ECHO", marker)
}

// dbsize asks the whole cluster.
func (s *session) dbsize() {
	s.add(func(reply []byte) {
		if _, ok := resp.DecodeInt(reply); !ok {
			s.x.outcome(s, reply, "")
		}
	}, "DBSIZE")
}

// outcome judges the reply to a command that should answer want. Errors are those
// that the design lists, and nothing else.
func (x *chaos) outcome(s *session, reply []byte, want string) outcome {
	if want != "" && string(reply) == want {
		return executed
	}
	text := strings.TrimSpace(string(bytes.TrimLeft(reply, "-")))
	code, _, _ := strings.Cut(text, " ")
	switch {
	case !resp.IsError(reply):
		x.violate("%s: a reply that does not belong to its command: %.80q, want %q", s.name, reply, want)
		return unknown
	case code == "TRYAGAIN", code == "CLUSTERDOWN", code == "LOADING":
		s.failures++
		x.tolerate(code)
		return notExecuted
	case strings.Contains(text, "outcome unknown"):
		s.failures++
		x.tolerate("outcome unknown")
		return unknown
	}
	x.violate("%s: an error that no client expects: %.120q", s.name, reply)
	return unknown
}
