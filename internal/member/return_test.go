package member

import (
	"bytes"
	"math"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/resp"
)

func TestPopped(t *testing.T) {
	for _, token := range []uint64{0, 1, math.MaxUint64} {
		push := AppendPopped([]byte("x"), token)[1:]
		var scan resp.Scanner
		if scan.Scan(append(bytes.Clone(push), "+next\r\n"...)) != resp.Done || scan.Len() != len(push) {
			t.Errorf("the push %q is not whole", push)
		}
		if n := PoppedLen(append(bytes.Clone(push), "+next\r\n"...)); n != len(push) {
			t.Errorf("the push %q has %d bytes", push, n)
		}
		if got, ok := ParsePopped(push); !ok || got != token {
			t.Errorf("the push %q becomes token %d, %v", push, got, ok)
		}
	}
	for _, bad := range []string{"", ">2\r\n+popped\r\n:\r\n", ">2\r\n+popped\r\n:1", ">2\r\n+popped\r\n:x\r\n", ">2\r\n+popped\r\n:-1\r\n",
		">3\r\n+popped\r\n:1\r\n", "*2\r\n+popped\r\n:1\r\n", ">2\r\n+lost\r\n:1\r\n", ">2\r\n+popped\r\n:1\r\n+OK\r\n"} {
		if _, ok := ParsePopped([]byte(bad)); ok {
			t.Errorf("the push %q was taken", bad)
		}
	}
}

func TestReturn(t *testing.T) {
	var p resp.Parser
	if p.Parse(AppendReturn(nil, 7, texts("ZADD", "k", "NX", "1", "m"))) != resp.Done {
		t.Fatal("a return is no request")
	}
	if token, words, ok := ParseReturn(p.Args()[2:]); !ok || token != 7 || string(bytes.Join(words, []byte(" "))) != "ZADD k NX 1 m" {
		t.Errorf("it becomes token %d and %q, %v", token, words, ok)
	}
	if _, _, ok := ParseReturn(texts("x", "LPUSH", "k", "e")); ok {
		t.Error("a token that is no number was taken")
	}
	if _, _, ok := ParseReturn(append(texts("7"), make([][]byte, MaxReturned)...)); !ok {
		t.Error("a return of the greatest length was not taken")
	}
	if _, _, ok := ParseReturn(append(texts("7"), make([][]byte, MaxReturned+1)...)); ok {
		t.Error("a return that is too long was taken")
	}
}
