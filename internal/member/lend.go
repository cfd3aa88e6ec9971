package member

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/ring"
)

// A command whose keys lie in several slots is executed by one node, on values that the owners of its keys lend:
//
//	proxy                     node                            owners of the keys
//	  ── DUNLIN GATHER SINTER a b ─▶
//	  ◀── -DUNLINLATER 7 ──────
//	                           ── DUNLIN LEND 0 a 0 ────────────▶
//	                           ── DUNLIN LEND 0 b 0 ────────────▶
//	                           ◀── version, time to live, payload ──
//	  ◀── >3 +later :7 reply ──
//
// The payload is what DUMP returns. RENAME also has the owner of the first key forget it (DUNLIN CEDE), if the version
// with which it was lent is its version still.

// Lent is what the owner of a key says of it beside its payload.
type Lent struct {
	Found   bool
	Version []byte // as WATCH's, if it was asked for
	TTL     int64  // in milliseconds; -1: the key does not expire
}

// lentNothing is what LEND says of the time to live of a key that is not there.
const lentNothing = -2

// AppendGather appends GATHER of a command.
func AppendGather(dst []byte, args [][]byte) []byte {
	dst = AppendVerb(dst, VerbGather, len(args))
	for _, arg := range args {
		dst = resp.AppendBulk(dst, arg)
	}
	return dst
}

// AppendLend appends LEND. versioned asks for the version, too.
func AppendLend(dst []byte, database uint8, key []byte, versioned bool) []byte {
	dst = resp.AppendBulk(appendInt(AppendVerb(dst, VerbLend, 3), int64(database)), key)
	if versioned {
		return appendUint(dst, 1)
	}
	return appendUint(dst, 0)
}

// ParseLend reads the arguments of LEND. The key is a view of them.
func ParseLend(args [][]byte) (database uint8, key []byte, versioned, ok bool) {
	n, ok := parseUint(args[0])
	flag := string(args[2])
	return uint8(n), args[1], flag == "1", ok && n < ring.MaxDatabases && (flag == "0" || flag == "1")
}

// AppendLent appends the answer to LEND up to the payload, which follows as a bulk string, or as an error if there
// is none. If the key is not there, the answer is complete.
func AppendLent(dst []byte, l *Lent) []byte {
	ttl := l.TTL
	if !l.Found {
		ttl = lentNothing
	}
	dst = resp.AppendInt(resp.AppendBulk(resp.AppendArray(dst, 3), l.Version), ttl)
	if !l.Found {
		dst = resp.AppendBulk(dst, nil)
	}
	return dst
}

// AppendCede appends CEDE.
func AppendCede(dst []byte, database uint8, key, version []byte) []byte {
	dst = resp.AppendBulk(appendInt(AppendVerb(dst, VerbCede, 3), int64(database)), key)
	return resp.AppendBulk(dst, version)
}

// ParseCede reads the arguments of CEDE. What it returns are views of them.
func ParseCede(args [][]byte) (database uint8, key, version []byte, ok bool) {
	n, ok := parseUint(args[0])
	return uint8(n), args[1], args[2], ok && n < ring.MaxDatabases
}

// lentPiece is how much of a payload is read at once, in bytes.
const lentPiece = 64 << 10

// maxLentLine is the longest line of an answer: an error may quote something.
const maxLentLine = 4 << 10

// Lend asks the owner of a key for its value. If the key is there, begin is called with the length of the payload, and
// returns what takes it. After a *Refusal the connection can be used further, after another error it cannot.
func (p *Peer) Lend(database uint8, key []byte, versioned bool, begin func(n int) (io.Writer, error)) (l Lent, err error) {
	if _, err := p.Conn.Write(AppendLend(nil, database, key, versioned)); err != nil {
		return l, err
	}
	p.in, p.used, p.scanner = p.in[:0], 0, resp.Scanner{}
	if _, err := p.header('*'); err != nil {
		return l, err
	}
	n, err := p.header('$')
	if err != nil {
		return l, err
	}
	if n < 0 || n > maxLentLine {
		return l, p.malformed()
	}
	var version bytes.Buffer
	if err := p.copyBulk(&version, n); err != nil {
		return l, err
	}
	l.Version = version.Bytes()
	ttl, err := p.header(':')
	if err != nil {
		return l, err
	}
	if n, err = p.header('$'); err != nil {
		return l, err
	}
	if l.TTL, l.Found = int64(ttl), ttl != lentNothing; !l.Found {
		return l, p.copyBulk(io.Discard, n)
	}
	if n < 0 {
		return l, p.malformed()
	}
	to, err := begin(n)
	if err != nil {
		return l, err
	}
	return l, p.copyBulk(to, n)
}

// Cede has the owner of a key delete it, if that is its version. It reports false if it is not.
func (p *Peer) Cede(database uint8, key, version []byte) (ceded bool, err error) {
	reply, err := p.exchange(AppendCede(nil, database, key, version))
	if err != nil {
		return false, err
	}
	n, ok := resp.DecodeInt(reply)
	if !ok || n < 0 || n > 1 {
		return false, p.malformed()
	}
	return n == 1, nil
}

// header reads a line that begins with the byte and has a number. An error in its place is returned as a *Refusal.
func (p *Peer) header(kind byte) (n int, err error) {
	for {
		rest := p.in[p.used:]
		end := bytes.IndexByte(rest, '\n')
		switch {
		case end < 0 && len(rest) > maxLentLine:
			return 0, p.malformed()
		case end < 0:
			if err := p.Fill(); err != nil {
				return 0, err
			}
			continue
		}
		line := rest[:end+1]
		p.used += len(line)
		text := bytes.TrimSuffix(line, []byte("\r\n"))
		if len(text) > 0 && text[0] == '-' {
			return 0, &Refusal{Addr: p.Addr, Text: strings.TrimSpace(string(text[1:]))}
		}
		if len(text) == 0 || text[0] != kind {
			return 0, p.malformed()
		}
		number, ok := resp.ParseInt(text[1:])
		if !ok {
			return 0, p.malformed()
		}
		return int(number), nil
	}
}

// copyBulk writes the n bytes that come next, and reads what ends them.
func (p *Peer) copyBulk(to io.Writer, n int) error {
	if n < 0 {
		return p.malformed()
	}
	for left := n; left > 0; {
		if p.used == len(p.in) {
			if left > fillRoom {
				p.in, p.used = slices.Grow(p.in[:0], lentPiece), 0
			}
			if err := p.Fill(); err != nil {
				return err
			}
		}
		piece := p.in[p.used:min(len(p.in), p.used+left)]
		if _, err := to.Write(piece); err != nil {
			return err
		}
		p.used += len(piece)
		left -= len(piece)
	}
	for len(p.in)-p.used < 2 {
		if err := p.Fill(); err != nil {
			return err
		}
	}
	if string(p.in[p.used:p.used+2]) != "\r\n" {
		return p.malformed()
	}
	p.used += 2
	return nil
}

func (p *Peer) malformed() error { return fmt.Errorf("node %s sent a malformed reply", p.Addr) }
