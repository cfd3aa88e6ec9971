package wide

import (
	"bytes"
	"errors"
	"strings"

	"github.com/dunlin-cache/dunlin/internal/resp"
)

// functionStats is FUNCTION STATS: the function that runs for longest at any node.
type functionStats struct {
	reply    []byte
	duration int64 // in ms, of the function in reply; -1: none runs
	failed   error // what a node has answered
}

func askFunctionStats(_ *Call, q *Question) error {
	q.AboutNodes = true
	q.merge = &functionStats{}
	return nil
}

// Begin forgets what nodes have said: all are asked again.
func (m *functionStats) Begin() { *m = functionStats{duration: -1} }

// Add takes a node's answer: a map of running_script and engines.
func (m *functionStats) Add(a Answer) error {
	if resp.IsError(a.Reply) {
		m.failed = errors.New(strings.TrimRight(string(a.Reply[1:]), "\r\n"))
		return nil
	}
	duration, ok := durationOf(a.Reply)
	if !ok {
		return errMerge
	}
	if m.reply == nil || duration > m.duration {
		m.reply, m.duration = bytes.Clone(a.Reply), duration
	}
	return nil
}

// durationOf returns for how many milliseconds the function in a reply has run, and -1 if there is none.
func durationOf(reply []byte) (ms int64, ok bool) {
	var scan resp.Scanner
	_, rest, found := bytes.Cut(reply, []byte("running_script\r\n"))
	if !found || scan.Scan(rest) != resp.Done {
		return 0, false
	}
	running := rest[:scan.Len()]
	if running[0] == '_' || running[0] == '$' {
		return -1, true
	}
	at := bytes.LastIndexByte(running, ':')
	if at < 0 {
		return 0, false
	}
	return resp.ParseInt(bytes.TrimRight(running[at+1:], "\r\n"))
}

// Reply appends the reply.
func (m *functionStats) Reply(dst []byte) []byte {
	switch {
	case m.reply != nil:
		return append(dst, m.reply...)
	case m.failed != nil:
		return resp.AppendError(dst, m.failed.Error())
	}
	return resp.AppendError(dst, errMerge.Error())
}
