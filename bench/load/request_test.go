package load

import "testing"

func TestRequests(t *testing.T) {
	f := func(c Config, inOrder, n int, want string) {
		t.Helper()
		c.KeysPerGet = max(1, c.KeysPerGet)
		w := newWriter(&c, 0, inOrder)
		got, _ := w.appendBatch(nil, n)
		if string(got) != want {
			t.Errorf("%d requests of %+v are %q: want %q", n, c, got, want)
		}
	}
	const get, set = "*2\r\n$3\r\nGET\r\n$13\r\nk000000000000\r\n",
		"*3\r\n$3\r\nSET\r\n$13\r\nk000000000000\r\n$2\r\nxx\r\n"
	f(Config{Prefix: "k", Keys: 1, ValueBytes: 2, Sets: 1, Gets: 2}, 0, 4, set+get+get+set)
	f(Config{Prefix: "k", Keys: 1, Gets: 1, KeysPerGet: 2}, 0, 1,
		"*3\r\n$4\r\nMGET\r\n$13\r\nk000000000000\r\n$13\r\nk000000000000\r\n")
	f(Config{Prefix: "k", Keys: 1, ValueBytes: 2, Sets: 1, Gets: 1, KeysPerGet: 2, Protocol: Memcached}, 0, 2,
		"set k000000000000 0 0 2\r\nxx\r\nget k000000000000 k000000000000\r\n")
	// The last batch has only the keys that are left.
	f(Config{Prefix: "k", Keys: 11, ValueBytes: 1, Sets: 1, Protocol: Memcached}, 11, 12, inOrder(11))
}

// inOrder returns the requests that set keys 0 to n-1.
func inOrder(n int) (text string) {
	for i := range n {
		text += "set " + KeyName("k", i) + " 0 0 1\r\nx\r\n"
	}
	return text
}

func TestKeysAreSpread(t *testing.T) {
	f := func(hot float64, least, most int) {
		t.Helper()
		const keys, draws = 100, 100_000
		w := newWriter(&Config{Keys: keys, Gets: 1, KeysPerGet: 1, Hot: hot}, 0, 0)
		var seen [keys]int
		for range draws {
			seen[w.key()]++
		}
		if seen[0] < least || seen[0] > most {
			t.Errorf("with a hot share of %g key 0 came %d times of %d: want %d to %d", hot, seen[0], draws, least, most)
		}
		for k, n := range seen[1:] {
			if want := draws / keys * (1 - hot); float64(n) < want*0.7 || float64(n) > want*1.3 {
				t.Errorf("with a hot share of %g key %d came %d times: want about %g", hot, k+1, n, want)
			}
		}
	}
	f(0, 700, 1300)
	f(0.5, 49_500, 51_500)
	a, b := newWriter(&Config{Keys: 1 << 30, Gets: 1, KeysPerGet: 1}, 0, 0),
		newWriter(&Config{Keys: 1 << 30, Gets: 1, KeysPerGet: 1}, 1, 0)
	if a.key() == b.key() {
		t.Error("two workers ask for the same keys")
	}
}
