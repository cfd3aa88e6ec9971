package cluster

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/test/harness"
)

// TestWaits checks that WAIT and DEBUG SLEEP make their own connection wait, and no other.
func TestWaits(t *testing.T) {
	eachServer(t, func(t *testing.T, s server) {
		const millis = 200
		for lines, replies := range map[string]string{
			"WAIT 9 200":                                                  ":0\r\n",
			"SET a 1\r\nWAIT 9 200\r\nGET a\r\nPING":                      "+OK\r\n:0\r\n$1\r\n1\r\n+PONG\r\n",
			"CLIENT REPLY SKIP\r\nWAIT 9 200\r\nPING":                     "+PONG\r\n",
			"CLIENT REPLY OFF\r\nWAIT 9 200\r\nCLIENT REPLY ON":           "+OK\r\n",
			"DEBUG SLEEP 0.2\r\nECHO x":                                   "+OK\r\n$1\r\nx\r\n",
			"CLIENT REPLY SKIP\r\nDEBUG SLEEP 2e-1\r\nGET nosuch\r\nPING": "$-1\r\n+PONG\r\n",
		} {
			w, begun := harness.DialWire(t, s.addr), time.Now()
			w.Send([]byte(lines + "\r\n"))
			got := ""
			for len(got) < len(replies) {
				got += string(w.Next())
			}
			if strings.Contains(lines, "WAIT") {
				got = strings.Replace(got, ":1\r\n", ":0\r\n", 1) // there may be one copy, not nine
			}
			if took := time.Since(begun); got != replies || took < millis*time.Millisecond {
				t.Errorf("%q answers %q after %v, want %q", lines, got, took, replies)
			}
		}
		w := harness.DialWire(t, s.addr)
		w.Want("DEBUG SLEEP x", "OK")
		w.Want("DEBUG SLEEP -1", "OK")
		w.Want("DEBUG SLEEP", "(error) ERR unknown subcommand or wrong number of arguments for 'SLEEP'. Try DEBUG HELP.")
		w.Want("DEBUG FOO", "(error) ERR unknown subcommand or wrong number of arguments for 'FOO'. Try DEBUG HELP.")
		if help := string(w.Do("DEBUG HELP")); !strings.Contains(help, "+SLEEP <seconds>\r\n") {
			t.Errorf("DEBUG HELP answers %q", help)
		}
		if !s.redis {
			w.Want("DEBUG SLEEP 301", "(error) ERR DEBUG SLEEP is for 300 seconds at most")
			asleep := harness.DialWire(t, s.addr)
			asleep.Send([]byte("DEBUG SLEEP 300\r\n"))
			wantBlocked(t, w, 1)
			w.Want("SET b 1", "OK") // other connections continue
			asleep.Conn.Close()
			wantBlocked(t, w, 0)
		}
	}, "--debug-commands")
}

// TestUnblock checks that CLIENT UNBLOCK ends a WAIT, and that a client that disconnects ends it,
// too.
func TestUnblock(t *testing.T) {
	eachServer(t, func(t *testing.T, s server) {
		admin, w := harness.DialWire(t, s.addr), harness.DialWire(t, s.addr)
		id := strings.Trim(string(w.Do("CLIENT ID")), ":\r\n")
		admin.Want("CLIENT UNBLOCK "+id, "(integer) 0")
		for option, reply := range map[string]string{
			"": ":0\r\n", " TIMEOUT": ":0\r\n", " error": "-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n",
		} {
			w.Send([]byte("WAIT 9 1000000\r\nPING\r\n"))
			wantBlocked(t, admin, 1)
			admin.Want(fmt.Sprintf("CLIENT UNBLOCK %s%s", id, option), "(integer) 1")
			got := string(w.Next()) + string(w.Next())
			if strings.HasPrefix(got, ":1\r\n") {
				got = ":0\r\n" + got[len(":1\r\n"):]
			}
			if got != reply+"+PONG\r\n" {
				t.Errorf("UNBLOCK%s: %q, want %q", option, got, reply)
			}
			wantBlocked(t, admin, 0)
		}
		w.Send([]byte("WAIT 9 1000000\r\n"))
		wantBlocked(t, admin, 1)
		w.Conn.Close()
		wantBlocked(t, admin, 0)
	})
}
