package chaos

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/test/harness"
)

// Session is a client connection to a proxy. Each command is queued with a function that judges its
// reply. Replies are judged in order.
type Session struct {
	X      *Rig
	name   string
	at     *harness.Member // the proxy
	busy   sync.Mutex      // held by each Exchange, and while the proxy is replaced
	Link   *harness.Link
	Rng    *rand.Rand
	out    []byte
	Judges []func(reply []byte)
	// failures counts the error replies that clients must expect.
	failures int
	version  resp.Version // of the replies
	database uint8        // that the last command queued is about
	selected uint8        // the database that the connection has, as its replies say
	inline   int          // one request in this many is sent as an inline command; 0: none

	pushed  func(push []byte) // takes a push between replies; nil: there are none
	renewed func()            // is called for a new connection; nil: nobody cares
}

// Add queues a command for the next Exchange, with the function that judges its reply.
func (s *Session) Add(judge func(reply []byte), args ...string) {
	request := make([][]byte, len(args))
	for i, a := range args {
		request[i] = []byte(a)
	}
	s.Judges = append(s.Judges, judge)
	if line := strings.Join(args, " "); s.inline > 0 && len(line) < 32<<10 && args[0] != "RESTORE" && s.Rng.IntN(s.inline) == 0 {
		s.out = append(append(s.out, line...), "\r\n"[s.Rng.IntN(2):]...)
		return
	}
	s.out = resp.AppendRequest(s.out, request...)
}

// Exchange sends the queued commands and judges their replies. It returns false, after it has noted
// a violation, if the connection is of no use any more.
func (s *Session) Exchange() bool {
	s.busy.Lock()
	defer s.busy.Unlock()
	begin := time.Now()
	out, judges := s.out, s.Judges
	s.out, s.Judges = s.out[:0], s.Judges[:0]
	sent := make(chan error, 1)
	cut := s.Rng.IntN(len(out) + 1) // the batch is sent in two pieces
	go func() {
		err := s.Link.Send(out[:cut])
		if err == nil {
			err = s.Link.Send(out[cut:])
		}
		sent <- err
	}()
	progress := begin
	for i, judge := range judges {
		// Each reply has its own deadline: nodes may stand still one after the other during a deep
		// pipeline.
		reply, err := s.receive(progress)
		if len(s.Link.In) > 0 && (errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)) {
			return s.cut(judges[i:], sent)
		}
		if err != nil {
			s.X.Violate("%s: no reply to command %d of %d, sent %s, after %v: %v (%.200q)", s.name, i+1, len(judges),
				Clock(begin), time.Since(begin), hung(err), out)
			return false
		}
		s.X.tookReply(time.Since(progress), func() string {
			return fmt.Sprintf("%s: reply %d of %d to the batch sent %s: %.60q", s.name, i+1, len(judges), Clock(begin), reply)
		})
		progress = time.Now()
		judge(reply)
	}
	if err := <-sent; err != nil {
		s.X.Violate("%s: cannot send: %v", s.name, err)
		return false
	}
	if in := s.Link.In; len(in) > 0 && !(s.pushed != nil && in[0] == '>') {
		s.X.Violate("%s: surplus reply %.80q", s.name, s.Link.In)
		return false
	}
	return true
}

// cutReply is what judges get for replies that went with the connection. A proxy closes it in the
// middle of a large reply whose node has ended (docs/guarantees.md): the command was executed, and
// those behind it may have been.
const cutReply = "-ERR the connection was closed within a reply, outcome unknown\r\n"

func isCut(reply []byte) bool { return string(reply) == cutReply }

// cut goes on over a new connection, after one that was closed within a reply. judges are those of
// this reply and of the later ones. sent has a value when nothing is sent any more.
func (s *Session) cut(judges []func(reply []byte), sent <-chan error) bool {
	s.Link.Conn.Close()
	<-sent
	s.X.tolerate("closed within a reply")
	for _, judge := range judges {
		judge([]byte(cutReply))
	}
	if err := s.reconnect(); err != nil {
		s.X.Violate("%s: cannot connect again: %v", s.name, err)
		return false
	}
	return true
}

// reconnect gives a session that waits for no reply a new connection with the same protocol version
// and database.
func (s *Session) reconnect() error {
	l, err := s.X.dial(s.at)
	if err != nil {
		return err
	}
	s.X.T.Cleanup(func() { l.Conn.Close() })
	s.Link = l
	if s.renewed != nil {
		s.renewed()
	}
	var lines []string
	if s.version == resp.RESP3 {
		lines = append(lines, "HELLO 3\r\n")
	}
	if s.selected != 0 {
		lines = append(lines, fmt.Sprintf("SELECT %d\r\n", s.selected))
	}
	for _, line := range lines {
		if err = l.Send([]byte(line)); err == nil {
			_, err = l.Receive(time.Now().Add(harness.AnswerTime))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// receive returns the next reply, which is due within AnswerTime. Time in which the machine stood
// still does not count.
func (s *Session) receive(progress time.Time) (reply []byte, err error) {
	for due := progress.Add(harness.AnswerTime); ; {
		reply, err = s.Link.Receive(due)
		if err == nil && s.pushed != nil && reply[0] == '>' {
			s.pushed(reply)
			continue
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return reply, err
		}
		now := time.Now()
		if due = progress.Add(harness.AnswerTime + s.X.Pulse.Missed(progress, now)); !due.After(now) {
			return nil, err
		}
	}
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

// The methods below queue one command each, with the function that judges its reply.

func (s *Session) set(h *History) {
	seq := h.Write(time.Now())
	s.Add(func(reply []byte) { h.Answered(seq, s.X.Outcome(s, reply, "+OK\r\n")) },
		"SET", h.Key, string(AppendValue(nil, h.Key, seq)))
}

// Get reads a key. own says that this session is the key's writer.
func (s *Session) Get(h *History, own bool) {
	seen := h.Look()
	s.Add(func(reply []byte) { s.judgeRead(h, own, seen, reply) }, "GET", h.Key)
}

func (s *Session) judgeRead(h *History, own bool, seen sight, reply []byte) {
	if resp.IsError(reply) {
		s.X.Outcome(s, reply, "")
		return
	}
	value, found := resp.DecodeBulk(reply)
	if !found && !s.isNull(reply) {
		s.X.Violate("%s: GET %s answers %.80q", s.name, h.Key, reply)
		return
	}
	if found && value == nil {
		value = []byte{}
	}
	s.judgeShown(h, own, seen, value)
}

// judgeShown judges what a read shows of a key or an element, nil if it is not there.
func (s *Session) judgeShown(h *History, own bool, seen sight, value []byte) {
	if own {
		seen = h.lookOwn(seen)
	}
	if s.X.Divided.Load() {
		s.X.judged(s.name, nil, h.believe(value))
		return
	}
	lost, err := h.read(seen, value, time.Now())
	s.X.judged(s.name, lost, err)
	if own && !h.newest(seen, value) {
		s.X.overtaken(fmt.Sprintf("%s: a read of %s shows %.60q, which is not write %d before it", s.name, h.Key, value, seen.issued))
	}
}

// del deletes a key, whether it is there or not.
func (s *Session) del(h *History) {
	seq := h.remove(time.Now())
	s.Add(func(reply []byte) {
		o := Executed
		if n, ok := resp.DecodeInt(reply); !ok || n < 0 || n > 1 {
			o = s.X.Outcome(s, reply, "")
		}
		h.Answered(seq, o)
	}, "DEL", h.Key)
}

func (s *Session) isNull(reply []byte) bool {
	if s.version == resp.RESP3 {
		return string(reply) == "_\r\n"
	}
	return string(reply) == "$-1\r\n"
}

// hello changes the protocol version of the session.
func (s *Session) hello(v resp.Version) {
	s.Add(func(reply []byte) {
		s.version = v
		if !isCut(reply) && !bytes.Contains(reply, []byte("\r\nproto\r\n:"+strconv.Itoa(int(v))+"\r\n")) {
			s.X.Violate("%s: HELLO %d answers %.80q", s.name, v, reply)
		}
	}, "HELLO", strconv.Itoa(int(v)))
}

// mset writes several keys at once. When it fails, some parts may be executed.
func (s *Session) mset(all []*History) {
	now, args := time.Now(), []string{"MSET"}
	seqs := make([]uint64, len(all))
	for i, h := range all {
		seqs[i] = h.Write(now)
		args = append(args, h.Key, string(AppendValue(nil, h.Key, seqs[i])))
	}
	s.Add(func(reply []byte) {
		o := s.X.Outcome(s, reply, "+OK\r\n")
		if o == notExecuted {
			o = unknown
		}
		for i, h := range all {
			h.Answered(seqs[i], o)
		}
	}, args...)
}

func (s *Session) mget(all []*History) {
	args, seen := []string{"MGET"}, make([]sight, len(all))
	for i, h := range all {
		args = append(args, h.Key)
		seen[i] = h.Look()
	}
	s.Add(func(reply []byte) {
		if resp.IsError(reply) {
			s.X.Outcome(s, reply, "")
			return
		}
		n, header, _ := resp.DecodeArray(reply)
		if n != len(all) {
			s.X.Violate("%s: MGET of %d keys answers %.80q", s.name, len(all), reply)
			return
		}
		var scan resp.Scanner
		for i, rest := 0, reply[header:]; i < n && scan.Scan(rest) == resp.Done; i++ {
			s.judgeRead(all[i], false, seen[i], rest[:scan.Len()])
			rest = rest[scan.Len():]
		}
	}, args...)
}

func (s *Session) incr(c *counter) {
	sent := time.Now()
	s.Add(func(reply []byte) {
		n, ok := resp.DecodeInt(reply)
		if !ok {
			if s.X.Outcome(s, reply, "") == unknown {
				c.unknown++
			}
			return
		}
		if era := s.X.Era.Load(); c.era != era || s.X.Divided.Load() {
			c.era = era
			c.forget(n, sent, time.Now())
			return
		}
		lost, err := c.incremented(n, sent, time.Now())
		s.X.judged(s.name, lost, err)
	}, "INCR", c.key)
}

// echo checks the order of replies by a unique ECHO.
func (s *Session) echo() {
	marker := fmt.Sprintf("%s-%d", s.name, s.Rng.Uint64())
	s.Add(func(reply []byte) {
		if got, _ := resp.DecodeBulk(reply); string(got) != marker && !isCut(reply) {
			s.X.Violate("%s: a reply out of order: ECHO %s answers %.80q", s.name, marker, reply)
		}
	}, "ECHO", marker)
}

// dbsize asks the whole cluster.
func (s *Session) dbsize() {
	s.Add(func(reply []byte) {
		if _, ok := resp.DecodeInt(reply); !ok {
			s.X.Outcome(s, reply, "")
		}
	}, "DBSIZE")
}

// Outcome judges the reply to a command whose right answer is want; "" accepts errors only. Clients
// must expect some errors (docs/guarantees.md). Anything else is a violation.
func (x *Rig) Outcome(s *Session, reply []byte, want string) outcome {
	if want != "" && string(reply) == want {
		return Executed
	}
	text := strings.TrimSpace(string(bytes.TrimLeft(reply, "-")))
	code, _, _ := strings.Cut(text, " ")
	switch {
	case !resp.IsError(reply):
		x.Violate("%s: a reply that does not belong to its command: %.80q, want %q", s.name, reply, want)
		return unknown
	case code == "TRYAGAIN", code == "CLUSTERDOWN", code == "LOADING":
		s.failures++
		x.tolerate(code)
		return notExecuted
	case code == "BUSY": // a script has its partition
		s.failures++
		x.tolerate(code)
		return unknown
	case strings.Contains(text, "outcome unknown"), strings.Contains(text, "executed for some keys only"):
		s.failures++
		x.tolerate("outcome unknown")
		return unknown
	case strings.Contains(text, "its large reply was lost"): // its node ended before all was fetched
		s.failures++
		x.tolerate("large reply lost")
		return unknown
	}
	x.Violate("%s: an error that no client expects: %.120q", s.name, reply)
	return unknown
}

// exactly adds a command with only one right reply.
func (s *Session) exactly(want string, args ...string) {
	s.Add(func(reply []byte) {
		if string(reply) != want && !isCut(reply) {
			s.X.Violate("%s: %s answers %.80q, want %s", s.name, args[0], reply, strconv.Quote(want))
		}
	}, args...)
}
