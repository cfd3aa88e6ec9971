package node

import (
	"bytes"
	"fmt"
	"testing"
)

// TestLongBitfield: operations of several runs are all checked before the first is executed, also if a goroutine has
// to make room for the value in between.
func TestLongBitfield(t *testing.T) {
	const ops = 5000
	n := startNode(t)
	c := dial(t, n.Addr())
	pipe := openPipeTo(t, n, 7, 0, "large", 1, 2)
	of := func(key string, last ...string) [][]byte {
		args := [][]byte{[]byte("BITFIELD"), []byte(key), []byte("OVERFLOW"), []byte("FAIL")}
		for i := range ops {
			args = append(args, []byte("INCRBY"), []byte("u8"), fmt.Appendf(nil, "#%d", i*200), []byte("7"))
		}
		for _, word := range last {
			args = append(args, []byte(word))
		}
		return args
	}
	for name, cl := range map[string]*client{"client": c, "pipe": pipe} {
		key := "{k}" + name
		cl.sendArgs(of(key, "SET", "u8", "0")...)
		if got := cl.next(); got != "(error) ERR syntax error" {
			t.Errorf("%s: a wrong operation behind %d is answered %.100s", name, ops, got)
		}
		c.want("EXISTS "+key, "(integer) 0")
		cl.sendArgs(of(key, "INCRBY", "u8", "#0", "250", "SET", "u8", "#1", "9")...)
		reply := cl.read()
		want := append(fmt.Appendf(nil, "*%d\r\n", ops+2), bytes.Repeat([]byte(":7\r\n"), ops)...)
		if want = append(want, "$-1\r\n:0\r\n"...); !bytes.Equal(reply, want) {
			t.Errorf("%s: %d bytes of reply, %.60q ... %.60q", name, len(reply), reply, reply[max(0, len(reply)-40):])
		}
		c.want(fmt.Sprintf("STRLEN %s", key), fmt.Sprintf("(integer) %d", (ops-1)*200+1))
		c.want(fmt.Sprintf("GETRANGE %s 0 1", key), `"\x07\x09"`)
	}
}
