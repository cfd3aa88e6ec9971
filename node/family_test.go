package node

import (
	"slices"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/rdb"
	"github.com/dunlin-cache/dunlin/node/data/streams"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
	"github.com/dunlin-cache/dunlin/ring"
)

// toyCode begins a payload of the toy type.
const toyCode = 200

// toyValue is a toy in a payload.
type toyValue []byte

func (v toyValue) Len() int                  { return len(v) }
func (v toyValue) Append(dst []byte) []byte  { return append(dst, v...) }
func (v toyValue) WriteTo(to rdb.Sink) error { return to.Write(v) }

// toys is a family with one command, XDEL key value, and a type of its own. It takes the place of the streams:
// there is no other number of a type left.
var toys = exec.Family{
	Type: &exec.Type{
		ID:        engine.TypeStream,
		Name:      "toy",
		Encoding:  func(engine.Txn, engine.Item, exec.Encodings) string { return "wood" },
		Footprint: func(engine.Txn, []byte) (int64, bool) { return 4711, true },
		AppendDump: func(dst []byte, item engine.Item) []byte {
			start := len(dst)
			dst = append(append(dst, toyCode), item.Value()...)
			return rdb.AppendFoot(dst, rdb.Sum(0, dst[start:]))
		},
		AppendDumpHead: func(dst []byte, _ int) []byte { return append(dst, toyCode) },
		Restores:       func(code byte) bool { return code == toyCode },
		Restore: func(payload []byte) (exec.Restored, error) {
			return toyValue(payload[1 : len(payload)-rdb.FootSize]), nil
		},
		MaxEffect: 1 << 20,
	},
	Handlers: map[command.ID]exec.Handler{
		command.XDel: func(r *exec.Request) {
			t, _ := r.Lock()
			defer t.Unlock()
			if err := t.Set(r.Args[1], r.Args[2], engine.TypeStream, 0); err != nil {
				r.ReplyStoreError(err)
				return
			}
			r.ReplyInt(1)
		},
	},
}

// addToys makes the toys a family of the nodes that the test starts, with a type of that level.
func addToys(t *testing.T, level uint8) {
	typ := *toys.Type
	typ.Level = level
	insteadOfStreams(t, exec.Family{Type: &typ, Handlers: toys.Handlers})
}

// insteadOfStreams has the nodes that the test starts know these families, and no streams.
func insteadOfStreams(t *testing.T, added ...exec.Family) {
	oldHandlers, oldTypes, oldPlans := handlers, types, plans
	t.Cleanup(func() { // after the loops have ended
		handlers, types, plans = oldHandlers, oldTypes, oldPlans
	})
	others := slices.DeleteFunc(slices.Clone(families), func(f exec.Family) bool { return f.Type == streams.Family.Type })
	handlers, types = concat(append(others, added...))
	plans = makePlans()
}

// TestFamilyIsOneLine: once a family is listed, whatever concerns values of every type knows its
// type.
func TestFamilyIsOneLine(t *testing.T) {
	addToys(t, 0)
	c := dial(t, startNode(t).Addr())
	c.want("SET {t}string v", "OK")
	c.want("XDEL {t}toy bear", "(integer) 1")
	c.want("TYPE {t}toy", "toy")
	c.want("GET {t}toy", "(error) "+exec.ErrWrongType)
	c.want("OBJECT ENCODING {t}toy", `"wood"`)
	c.want("MEMORY USAGE {t}toy", "(integer) 4711")
	c.want("SCAN 0 TYPE toy COUNT 1000", "1) \"0\"\n2) 1) \"{t}toy\"")
	c.want("COPY {t}toy {t}copy", "(integer) 1")
	c.want("RENAME {t}copy {t}other", "OK")
	c.want("TYPE {t}other", "toy")

	dump := c.do("DUMP {t}toy")
	c.want("RESTORE {t}back 0 "+dump, "OK")
	c.want("TYPE {t}back", "toy")
	c.want("DUMP {t}back", dump)
	large := bigValue(9<<20, 1)
	c.wantBig("XDEL {t}toy BIG", large, "(integer) 1")
	payload := append([]byte{toyCode}, large...)
	payload = rdb.AppendFoot(payload, rdb.Sum(0, payload))
	c.wantBig("DUMP {t}toy", payload, "BIG")
	c.wantBig("RESTORE {t}back 0 BIG REPLACE", payload, "OK")
	c.want("TYPE {t}back", "toy")
	c.wantBig("DUMP {t}back", payload, "BIG")

	if !types.Admits(int64(engine.TypeStream), 1<<20) || types.Admits(int64(engine.TypeStream), 1<<20+1) ||
		types.Admits(int64(7), 1) || types.Admits(-1, 1) || types.Admits(1<<40, 1) {
		t.Error("another node may send what no type admits, or may not send what one does")
	}
}

// TestTypeNeedsLevel: in a cluster below a type's level nobody makes a value of it.
func TestTypeNeedsLevel(t *testing.T) {
	addToys(t, 9)
	n := startBare(t)
	n.SetTable(tableOf(nil, memberOf(n)))
	c := dial(t, n.Addr())
	const refusal = "(error) ERR values of type toy need protocol level 9, and this cluster speaks 0: upgrade all members"
	c.want("XDEL {t}toy bear", refusal)
	payload := rdb.AppendFoot([]byte{toyCode, 'x'}, rdb.Sum(0, []byte{toyCode, 'x'}))
	c.wantBig("RESTORE {t}toy 0 BIG", payload, refusal)
	large := append([]byte{toyCode}, bigValue(9<<20, 1)...)
	c.wantBig("RESTORE {t}toy 0 BIG", rdb.AppendFoot(large, rdb.Sum(0, large)), refusal)
	c.want("EXISTS {t}toy", "(integer) 0")
	install(t, altered(n.view.Load().Table, func(next *ring.Table) { next.Level = 9 }), n)
	c.want("XDEL {t}toy bear", "(integer) 1")
	c.wantBig("RESTORE {t}toy 0 BIG REPLACE", payload, "OK")
}

// TestUnknownType: a value of a type that the node does not know, which no stream brings, may be
// looked at and deleted all the same.
func TestUnknownType(t *testing.T) {
	insteadOfStreams(t)
	n := startNode(t)
	c := dial(t, n.Addr())
	if err := put(n, "k", "v", engine.TypeStream); err != nil {
		t.Fatal(err)
	}
	c.want("TYPE k", "unknown")
	c.want("OBJECT ENCODING k", `"unknown"`)
	c.want("DUMP k", "(error) "+exec.ErrWrongType)
	c.want("SCAN 0 TYPE stream COUNT 1000", "1) \"0\"\n2) (empty array)")
	c.want("DEL k", "(integer) 1")
}
