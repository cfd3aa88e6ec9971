package about

import (
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/conversation"
	"github.com/dunlin-cache/dunlin/internal/redistest"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

// newerArguments are of commands that have got arguments since Redis 7.0.
var newerArguments = map[string]bool{
	"set": true, "zrank": true, "zrevrank": true, "hscan": true, "client|kill": true, // options
	"command|getkeys": true, "command|getkeysandflags": true, // 7.0 documents none
}

// TestArgumentsAsRedis compares the arguments of every command with those that Redis documents.
func TestArgumentsAsRedis(t *testing.T) {
	redistest.Want(t, "7.0")
	real := &conversation.Socket{Addr: redistest.Start(t)}
	real.Connect(t)
	docs, _ := decode(t, real.Say(t, "COMMAND DOCS"))
	compared := 0
	var compare func(name string, doc map[string]any)
	compare = func(name string, doc map[string]any) {
		if subs, ok := doc["subcommands"].([]any); ok {
			for sub, doc := range pairs(subs) {
				compare(sub, pairs(doc.([]any)))
			}
		}
		want, _ := doc["arguments"].([]any)
		ours := argumentsOf()[name]
		if newerArguments[name] {
			return
		}
		compared++
		var got []any
		if len(ours) > 0 {
			all, _ := decode(t, string(appendArguments(nil, resp.RESP2, ours)))
			got = withoutDisplayText(all.([]any))
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s has the arguments\n%v, want\n%v", name, got, want)
		}
	}
	for name, doc := range pairs(docs.([]any)) {
		compare(name, pairs(doc.([]any)))
	}
	if compared < 250 {
		t.Errorf("%d commands were compared", compared)
	}
}

// TestArgumentsOfRows checks that arguments are of commands that there are, and the other way round.
func TestArgumentsOfRows(t *testing.T) {
	const without = "debug himport client|maint_notifications" // no document says what they are
	rows := map[string]bool{}
	for id := command.ID(1); id < command.NumIDs; id++ {
		c := command.ByID(id)
		rows[c.Name] = true
		words := 1 + strings.Count(c.Name, "|")
		takes := c.Arity < -words || c.Arity > words
		if c.Built && c.Flags&command.Internal == 0 && c.Subs == nil && takes && argumentsOf()[c.Name] == nil &&
			c.Group != "sentinel" && !strings.Contains(" "+without+" ", " "+c.Name+" ") {
			t.Errorf("the arguments of %s are missing", c.Name)
		}
	}
	for name, all := range argumentsOf() {
		if !rows[name] {
			t.Errorf("there are arguments of %s, but no such command", name)
		}
		for _, a := range all {
			if c := rowNamed(name); a.typ == "key" && (c == nil || a.keySpec >= len(c.Keys)) {
				t.Errorf("an argument of %s is a key of spec %d, which it does not have", name, a.keySpec)
			}
		}
	}
}

func rowNamed(name string) *command.Command {
	container, sub, isSub := strings.Cut(name, "|")
	c := command.Lookup([]byte(container))
	if c != nil && isSub {
		return c.Sub([]byte(sub))
	}
	return c
}

// TestDocsFit: the documentation of all commands is not too long for a reply.
func TestDocsFit(t *testing.T) {
	for _, v := range []resp.Version{resp.RESP2, resp.RESP3} {
		reply := commandDocs(nil, v, [][]byte{[]byte("COMMAND"), []byte("DOCS")})
		if t.Logf("%d bytes", len(reply)); resp.IsError(reply) || len(reply) > maxReply*3/4 {
			t.Errorf("COMMAND DOCS answers %d bytes of at most %d: %.50q", len(reply), maxReply, reply)
		}
	}
}

// pairs turns a flat list of names and values into a map.
func pairs(list []any) map[string]any {
	m := map[string]any{}
	for i := 0; i+1 < len(list); i += 2 {
		m[list[i].(string)] = list[i+1]
	}
	return m
}

// withoutDisplayText takes from arguments what Redis shows from 7.2 on.
func withoutDisplayText(arguments []any) []any {
	for i, a := range arguments {
		var kept []any
		for j, fields := 0, a.([]any); j < len(fields); j += 2 {
			switch fields[j] {
			case "display_text":
			case "arguments":
				kept = append(kept, fields[j], withoutDisplayText(fields[j+1].([]any)))
			default:
				kept = append(kept, fields[j], fields[j+1])
			}
		}
		arguments[i] = kept
	}
	return arguments
}

// decode returns a reply of RESP2 as strings, numbers and lists.
func decode(t *testing.T, reply string) (value any, rest string) {
	t.Helper()
	line, rest, ok := strings.Cut(reply, "\r\n")
	if !ok || line == "" {
		t.Fatalf("a reply begins with %.50q", reply)
	}
	n, err := strconv.Atoi(line[1:])
	switch {
	case line[0] == '+':
		return line[1:], rest
	case err != nil:
		t.Fatalf("a reply has the line %.50q", line)
	case line[0] == '$':
		return rest[:n], rest[n+2:]
	case line[0] == ':':
		return n, rest
	}
	list := make([]any, n)
	for i := range list {
		list[i], rest = decode(t, rest)
	}
	return list, rest
}
