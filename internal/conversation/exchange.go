package conversation

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// exchange is a request and what is to come back.
type exchange struct {
	line          int
	mode, request string
	dunlin, redis string
	because       string
	ours          bool // not held with Redis
}

var requestLine = regexp.MustCompile(`^(|sorted|until|quiet|raw|wire|other|next|next-wire)>(?: (.*))?$`)

// Files returns the conversations that match patterns. There must be some for each.
func Files(t testing.TB, patterns ...string) (files []string) {
	t.Helper()
	for _, p := range patterns {
		found, err := filepath.Glob(p)
		if err != nil || len(found) == 0 {
			t.Fatalf("no conversations in %s: %v", p, err)
		}
		files = append(files, found...)
	}
	return files
}

// skips reports whether a file is not about the server's database.
func (s *Server) skips(t testing.TB, file string) bool {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return s.Database > 0 && bytes.Contains(content, []byte("\n@zero ")) || s.Pinned && bytes.Contains(content, []byte("\n@spread "))
}

func read(t testing.TB, file string) []exchange {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	all, err := parse(string(content))
	if err != nil {
		t.Fatalf("%s:%v", file, err)
	}
	return all
}

// parse reads a file's text. An error begins with its line.
func parse(content string) (all []exchange, err error) {
	var current *exchange
	ours := false
	for i, line := range strings.Split(content, "\n") {
		if m := requestLine.FindStringSubmatch(line); m != nil {
			all = append(all, exchange{line: i + 1, mode: m[1], request: m[2], ours: ours})
			current = &all[len(all)-1]
		} else if strings.HasPrefix(line, "@ours ") {
			ours = true
		} else if line == "" {
			current = nil // what follows is prose
		} else if current != nil {
			current.addReply(line)
		}
	}
	for _, x := range all {
		if (x.dunlin != x.redis) != (x.because != "") {
			return nil, fmt.Errorf("%d: a difference needs its reason, and only a difference", x.line)
		}
	}
	return all, nil
}

func (x *exchange) addReply(line string) {
	add := func(to *string, line string) { *to = strings.TrimPrefix(*to+"\n"+line, "\n") }
	if only, ok := strings.CutPrefix(line, "dunlin: "); ok {
		add(&x.dunlin, only)
	} else if only, ok := strings.CutPrefix(line, "redis: "); ok {
		add(&x.redis, only)
	} else if reason, ok := strings.CutPrefix(line, "because: "); ok {
		x.because = reason
	} else {
		add(&x.dunlin, line)
		add(&x.redis, line)
	}
}
