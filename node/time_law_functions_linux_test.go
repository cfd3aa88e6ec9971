//go:build linux && !race

package node

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/resp"
)

// hostileTriedLibraries are executed for each call of f, which a loop tries: they do in few steps as much as can be.
var hostileTriedLibraries = []string{
	repeated("redis.register_function('f%d',function()end)", 300),
	repeated("redis.register_function{function_name='f%d',flags={'NO-WRITES','allow-oom'},description='d',callback=redis.log}", 130),
	"local f = redis.log local p = '" + strings.Repeat("p", 200) + "' for i = 1, 2000 do redis.register_function(p .. i, f) end",
	"local f = redis.log local p = '" + strings.Repeat("p", 200) + "' for i = 1, 2000 do redis.register_function{function_name = p .. i, callback = f} end",
	"for i = 1, 1000000 do end",
	"local s = 'x' for i = 1, 15 do s = s .. s end for i = 1, 1000 do redis.log(1, s) end",
	"local s, n = 'x', 0 for i = 1, 14 do s = s .. s end for i = 1, 1000 do local t = s .. i end",
	"local t = {} for i = 1, 3000 do t[i] = 'ALLOW-CROSS-SLOT-KEYS' end redis.register_function{function_name = 'g', callback = redis.log, flags = t}",
	`local b = {}
  for i1 = 1, 2 do for i2 = 1, 2 do for i3 = 1, 2 do for i4 = 1, 2 do for i5 = 1, 2 do for i6 = 1, 2 do for i7 = 1, 2 do for i8 = 1, 2 do
    b[({'f', 'F'})[i1] .. ({'u', 'U'})[i2] .. ({'n', 'N'})[i3] .. ({'c', 'C'})[i4] .. ({'t', 'T'})[i5] .. ({'i', 'I'})[i6] .. ({'o', 'O'})[i7] .. ({'n', 'N'})[i8] .. '_name'] = 'g'
  end end end end end end end end
b.callback = redis.log
redis.register_function(b)`,
	"local x = 1.5 " + strings.Repeat("x=x^x ", 2600),
}

// repeated is a pattern with the numbers from 1 to n.
func repeated(pattern string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, pattern+"\n", i+1)
	}
	return b.String()
}

// TestTimeLawOfLibraries: no library keeps a loop or a partition for long, when a loop tries a function of it.
func TestTimeLawOfLibraries(t *testing.T) {
	if !locksAreTimed {
		t.Skip("needs the build tag checked")
	}
	rig := newLawRig(t, startLeveled)
	c := dial(t, rig.node.Addr())
	c.patience = lawPatience
	tried := 0
	for _, body := range hostileTriedLibraries {
		rig.judge(body, func() cost {
			// What was too long is not tried again, so the library is a new one.
			tried++
			code := fmt.Sprintf("#!lua name=law\n%s\nredis.register_function('called', function() return %d end)", body, tried)
			if len(code) > 16<<10 {
				t.Fatalf("%.40s is too long to be tried", body)
			}
			c.sendArgs([]byte("FUNCTION"), []byte("LOAD"), []byte("REPLACE"), []byte(code))
			if got := c.next(); got != `"law"` {
				t.Fatalf("%.60s is answered by %s", body, got)
			}
			rig.meter.begin()
			c.sendRaw(resp.AppendRequest(nil, []byte("FCALL"), []byte("called"), []byte("1"), []byte("{k}")))
			if got := string(c.read()); got != fmt.Sprintf(":%d\r\n", tried) {
				t.Fatalf("%.60s: the function answers %q", body, got)
			}
			return rig.meter.end()
		})
	}
}
