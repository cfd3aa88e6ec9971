package gossip

import (
	"bytes"
	"context"
	"log"
	"log/slog"
	"strings"
)

// logWriter passes memberlist's log lines, "[WARN] memberlist: text", on to slog.
// Memberlist reports every lost probe as an error; what matters to an operator is
// said by the Agent itself, so nothing here is above a warning.
type logWriter struct{ log *slog.Logger }

func memberlistLogger(l *slog.Logger) *log.Logger { return log.New(logWriter{l}, "", 0) }

// Write is called with one whole line at a time.
func (w logWriter) Write(line []byte) (int, error) {
	tag, text, found := bytes.Cut(bytes.TrimSpace(line), []byte("] "))
	if !found {
		tag, text = nil, tag
	}
	level := slog.LevelDebug
	switch string(tag) {
	case "[WARN", "[ERR", "[ERROR":
		level = slog.LevelWarn
	}
	message := strings.TrimPrefix(string(text), "memberlist: ")
	w.log.Log(context.Background(), level, "memberlist: "+message)
	return len(line), nil
}
