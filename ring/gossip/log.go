package gossip

import (
	"bytes"
	"context"
	"log"
	"log/slog"
	"strings"
	"sync/atomic"
)

// logWriter passes memberlist's log lines, "[WARN] memberlist: text", on to slog. Memberlist
// reports every lost probe as an error. The Agent itself logs what matters to an operator, so
// nothing here is above a warning, and nothing above a debug line once open is done: memberlist goes
// on to send for a moment when its port is closed.
type logWriter struct {
	open      context.Context
	log       *slog.Logger
	strangers *atomic.Uint64 // messages not of our cluster
}

func memberlistLogger(open context.Context, l *slog.Logger, strangers *atomic.Uint64) *log.Logger {
	return log.New(logWriter{open, l, strangers}, "", 0)
}

// Write is called with one whole line at a time.
func (w logWriter) Write(line []byte) (int, error) {
	tag, text, found := bytes.Cut(bytes.TrimSpace(line), []byte("] "))
	if !found {
		tag, text = nil, tag
	}
	level := slog.LevelDebug
	switch string(tag) {
	case "[WARN", "[ERR", "[ERROR":
		if w.open.Err() == nil {
			level = slog.LevelWarn
		}
		if ofStranger(text) {
			w.strangers.Add(1)
		}
	}
	message := strings.TrimPrefix(string(text), "memberlist: ")
	w.log.Log(context.Background(), level, "memberlist: "+message)
	return len(line), nil
}

// ofStranger reports whether memberlist complains of a message with another secret than ours, or
// another cluster's name. It says so nowhere but in its log.
func ofStranger(complaint []byte) bool {
	return bytes.Contains(complaint, []byte("crypt")) || bytes.Contains(complaint, []byte("unacceptable label"))
}
