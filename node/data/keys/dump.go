package keys

import (
	"context"

	"github.com/dunlin-cache/dunlin/internal/rdb"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// MaxDump is the longest value that DUMP accepts, in bytes. The reply begins only when its checksum
// is made, at about 1 ms for each MiB. A pipe of an older proxy is silent so long, and the proxy must
// not take it for dead.
const MaxDump = 64 << 20

// dump: DUMP key
func dump(r *exec.Request) {
	t, ok := r.Lock()
	if !ok {
		return
	}
	defer t.Unlock()
	item, found := r.Find(t, r.Args[1])
	r.Lookup(found, r.Args[1])
	if !found {
		r.ReplyNull()
		return
	}
	ReplyDump(r, t, item, maxParts)
}

// ReplyDump answers with the payload of an item found with t. A payload longer than atMost bytes is an error.
func ReplyDump(r *exec.Request, t engine.Txn, item engine.Item, atMost int) {
	typ := r.Types.Of(item)
	switch {
	case typ.Collection != nil || typ.Payloads != nil:
		dumpParts(r, t, typ, item, atMost)
	case typ.AppendDump == nil:
		r.Fail(exec.ErrWrongType)
	case len(item.Value()) > MaxDump:
		r.Fail(ErrDumpTooLarge)
	case len(item.Value()) >= exec.PinFrom:
		if pin, large := t.Pin(item); large {
			dumpLater(r, typ, pin)
			return
		}
		fallthrough
	default:
		payload := typ.AppendDump(r.Worker.Body[:0], item)
		r.ReplyBulk(payload)
		r.Worker.KeepBody(payload)
	}
}

// dumped is the reply to DUMP of a large value. The value is sent from the engine's memory once a
// goroutine has made the checksum.
type dumped struct {
	pin  engine.Pin
	head [rdb.MaxHead]byte
	n    int // bytes of head
	sum  uint64
	err  error
}

func dumpLater(r *exec.Request, typ *exec.Type, pin engine.Pin) {
	d := &dumped{pin: pin}
	d.n = len(typ.AppendDumpHead(d.head[:0], len(pin.Value())))
	r.Host.Later(d)
}

// Run makes the checksum.
func (d *dumped) Run(ctx context.Context) { d.err = d.check(ctx) }

func (d *dumped) check(ctx context.Context) error {
	d.sum = rdb.Sum(0, d.head[:d.n])
	for value := d.pin.Value(); len(value) > 0; {
		if err := exec.Step(ctx); err != nil {
			return err
		}
		piece := value[:min(len(value), exec.RewriteStep)]
		d.sum = rdb.Sum(d.sum, piece)
		value = value[len(piece):]
	}
	return nil
}

// Reply answers the payload.
func (d *dumped) Reply(r *exec.Request) {
	if d.err != nil {
		r.Fail(exec.ErrBusy)
		return
	}
	if !r.Room(exec.LineRoom + rdb.MaxHead + rdb.FootSize) {
		return
	}
	value := d.pin.Value()
	r.Out = resp.AppendBulkHeader(r.Out, d.n+len(value)+rdb.FootSize)
	r.Out = append(r.Out, d.head[:d.n]...)
	r.Insert(value, d.pin)
	d.pin = engine.Pin{}
	r.Out = append(rdb.AppendFoot(r.Out, d.sum), "\r\n"...)
}

// End releases the value if it was not sent.
func (d *dumped) End() {
	if d.pin.Live() {
		d.pin.Release()
	}
}
