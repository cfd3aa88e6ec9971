package main

import (
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/cobra"
)

// console is where a server process writes: a log for operators on stderr and, for `dunlin local`,
// a few plain lines on stdout.
type console struct {
	log *slog.Logger
	out io.Writer
}

func newConsole(cmd *cobra.Command, o *options) (*console, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(o.logLevel)); err != nil {
		return nil, fmt.Errorf("--log-level %q: want debug, info, warn or error", o.logLevel)
	}
	opts := &slog.HandlerOptions{Level: level}
	var h slog.Handler
	switch o.logFormat {
	case "text":
		h = slog.NewTextHandler(cmd.ErrOrStderr(), opts)
	case "json":
		h = slog.NewJSONHandler(cmd.ErrOrStderr(), opts)
	default:
		return nil, fmt.Errorf("--log-format %q: want text or json", o.logFormat)
	}
	return &console{log: slog.New(h), out: cmd.OutOrStdout()}, nil
}
