package wide

import (
	"testing"

	"github.com/dunlin-cache/dunlin/internal/command"
)

type keepsScripts struct{ Host }

func (keepsScripts) KeepScript([]byte) {}

// The error of a node counts until the node answers another round without one.
func TestScriptErrors(t *testing.T) {
	load := [][]byte{[]byte("SCRIPT"), []byte("LOAD"), []byte("return 1")}
	const oom, loaded = "-OOM no memory\r\n", "$3\r\nsha\r\n"
	m := &script{call: &Call{Command: command.Row(load), Args: load, Host: keepsScripts{}}}
	want := func(want string) {
		t.Helper()
		if got := string(m.Reply(nil)); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	add := func(node, reply string) {
		t.Helper()
		if err := m.Add(Answer{Node: node, Reply: []byte(reply)}); err != nil {
			t.Error(err)
		}
	}
	m.Begin()
	add("a", oom)
	add("b", loaded)
	add("c", "-ERR other\r\n")
	want(oom)
	m.Begin()
	add("a", loaded)
	want("-ERR other\r\n")
	add("b", "-UNKILLABLE it wrote\r\n")
	want("-UNKILLABLE it wrote\r\n")
	m.Begin()
	add("b", loaded)
	add("c", loaded)
	want(loaded)
}
