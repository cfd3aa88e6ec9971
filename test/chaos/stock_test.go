package chaos

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/test/harness"
)

// TestCheckNoticesStocks checks that a reader of what was stored once notices what is wrong.
func TestCheckNoticesStocks(t *testing.T) {
	t.Parallel()
	for kind, k := range stockKinds {
		st := NewStock(kind, 1, 40, 20)
		reply := func(numbers ...int) []byte {
			var texts []string
			for _, i := range numbers {
				first, second := st.element(i)
				if texts = append(texts, string(first)); second != nil {
					texts = append(texts, string(second))
				}
			}
			return resp.AppendBulkStrings(resp.AppendArray(nil, len(texts)), texts...)
		}
		all := make([]int, st.n)
		for i := range all {
			all[i] = i
		}
		right := reply(all...)
		if n, err := st.compare(right); n != st.n || err != nil {
			t.Errorf("%s: %d elements, %v", k.name, n, err)
		}
		if n, _ := st.compare(right[:0]); n != 0 {
			t.Errorf("%s: %d elements of none", k.name, n)
		}
		for _, wrong := range [][]byte{
			reply(append(all[1:40:40], 1)...), bytes.Replace(right, []byte("="), []byte("."), 1),
			bytes.Replace(right, []byte("stock"), []byte("stack"), 1),
		} {
			if _, err := st.compare(wrong); err == nil {
				t.Errorf("%s: %.80q is believed", k.name, wrong)
			}
		}
	}
	f := func(count, wrong string) {
		t.Helper()
		x := &Rig{T: t, tolerated: map[string]int{}, Tables: &tableWatch{}}
		l, err := harness.DialLink(harness.ServeLines(t, func(said string) (string, bool) {
			if strings.HasPrefix(said, "[SCARD") {
				return count, true
			}
			return ":1\r\n", false
		}))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Conn.Close()
		s := &Session{X: x, name: "s", Link: l, Rng: rand.New(rand.NewPCG(1, 1))}
		st := NewStock(1, 1, 40, 20)
		if s.Store(st); !s.Exchange() || st.IsLost() {
			t.Errorf("it is not stored: %v", x.violations)
		}
		s.Count(st)
		s.Exchange()
		if found := fmt.Sprint(x.violations, x.Absences); wrong == "" && found != "[] []" || !strings.Contains(found, wrong) {
			t.Errorf("a count of %q: found %s, want %q", count, found, wrong)
		}
		if lost := count == ":0\r\n"; st.IsLost() != lost {
			t.Errorf("a count of %q: it is lost: %t", count, st.IsLost())
		}
	}
	f(":40\r\n", "")
	f(":39\r\n", "has 39 elements of 40")
	f(":0\r\n", "is missing")
}
