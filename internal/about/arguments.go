package about

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/dunlin-cache/dunlin/internal/resp"
)

//go:embed arguments.txt
var argumentsText string

// argument is an argument of a command, as COMMAND DOCS shows it.
type argument struct {
	name, typ   string
	token       string
	hasToken    bool // a token may be empty
	keySpec     int  // -1: none
	flags       []string
	since       string
	deprecated  string
	parts       []argument // of a oneof or a block
	alternative bool
}

// argumentsOf has the arguments of each command that has some, by the name of its row.
var argumentsOf = sync.OnceValue(func() map[string][]argument {
	all := make(map[string][]argument)
	for line := range strings.Lines(argumentsText) {
		name, text, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		if !ok || name[0] == '#' {
			continue
		}
		s := argumentScanner{rest: text}
		all[name], _ = s.list()
		if s.rest != "" {
			panic(fmt.Sprintf("BUG: arguments of %s: what is %q?", name, s.rest))
		}
	}
	return all
})

// argumentScanner reads the notation of arguments.txt.
type argumentScanner struct{ rest string }

// list reads arguments up to the end or a closing parenthesis.
func (s *argumentScanner) list() (all []argument, alternatives bool) {
	for {
		all = append(all, s.one())
		switch {
		case s.skip('|'):
			alternatives = true
		case !s.skip(' '):
			return all, alternatives
		}
	}
}

func (s *argumentScanner) one() (a argument) {
	a.keySpec = -1
	a.name = s.word()
	if s.skip(':') {
		a.typ = s.word()
	}
	if a.hasToken = s.skip('='); a.hasToken {
		a.token = s.word()
	}
	if s.skip('#') {
		a.keySpec, _ = strconv.Atoi(s.word())
	}
	for i, flag := range []string{"optional", "multiple", "multiple_token"} {
		if s.skip("?*+"[i]) {
			a.flags = append(a.flags, flag)
		}
	}
	if s.skip('@') {
		a.since = s.word()
	}
	if s.skip('!') {
		a.deprecated = s.word()
	}
	if s.skip('(') {
		a.parts, a.alternative = s.list()
		if !s.skip(')') {
			panic(fmt.Sprintf("BUG: the parts of argument %s do not end: %q", a.name, s.rest))
		}
	}
	switch {
	case a.alternative:
		a.typ = "oneof"
	case a.parts != nil:
		a.typ = "block"
	case a.typ == "" && a.hasToken:
		a.typ = "pure-token"
	case a.typ == "":
		a.typ = "string"
	}
	return a
}

func (s *argumentScanner) skip(c byte) bool {
	if s.rest == "" || s.rest[0] != c {
		return false
	}
	s.rest = s.rest[1:]
	return true
}

// word reads a word, or what stands between quotes.
func (s *argumentScanner) word() (w string) {
	if s.skip('"') {
		w, s.rest, _ = strings.Cut(s.rest, `"`)
		return w
	}
	end := strings.IndexAny(s.rest, `:=#?*+@!()| "`)
	if end < 0 {
		end = len(s.rest)
	}
	w, s.rest = s.rest[:end], s.rest[end:]
	return w
}

// appendArguments encodes arguments as Redis does from 7.2 on.
func appendArguments(dst []byte, v resp.Version, all []argument) []byte {
	dst = resp.AppendArray(dst, len(all))
	for i := range all {
		dst = all[i].append(dst, v)
	}
	return dst
}

func (a *argument) append(dst []byte, v resp.Version) []byte {
	shown := a.typ != "pure-token" && a.parts == nil
	fields := 2
	for _, has := range []bool{shown, a.keySpec >= 0, a.hasToken, a.since != "", a.deprecated != "", a.flags != nil, a.parts != nil} {
		if has {
			fields++
		}
	}
	dst = resp.AppendMap(dst, v, fields)
	dst = resp.AppendBulkStrings(dst, "name", a.name, "type", a.typ)
	if shown {
		dst = resp.AppendBulkStrings(dst, "display_text", a.name)
	}
	if a.keySpec >= 0 {
		dst = resp.AppendInt(resp.AppendBulkString(dst, "key_spec_index"), int64(a.keySpec))
	}
	if a.hasToken {
		dst = resp.AppendBulkStrings(dst, "token", a.token)
	}
	if a.since != "" {
		dst = resp.AppendBulkStrings(dst, "since", a.since)
	}
	if a.deprecated != "" {
		dst = resp.AppendBulkStrings(dst, "deprecated_since", a.deprecated)
	}
	if a.flags != nil {
		dst = appendNames(resp.AppendBulkString(dst, "flags"), v, a.flags)
	}
	if a.parts != nil {
		dst = appendArguments(resp.AppendBulkString(dst, "arguments"), v, a.parts)
	}
	return dst
}
