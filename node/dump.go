package node

import (
	"github.com/dunlin-cache/dunlin/internal/rdb"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/engine"
)

// maxDump is how long a value may be for DUMP. Its checksum, about 1 ms for each MiB, is made before the reply can begin, and while a
// pipe waits for that it must not seem to be dead.
const maxDump = 64 << 20

// maxPayloadHeld is how long a value may be for DUMP and RESTORE in a transaction, which waits for no goroutine: some 5 ms.
const maxPayloadHeld = 4 << 20

func (r *request) dumpable(n int) bool { return n <= maxPayloadHeld || n <= maxDump && !r.holding }

// dump: DUMP key
func dump(r *request) {
	t := r.lock()
	defer t.Unlock()
	item, found, ok := r.readString(t, r.args[1])
	switch {
	case !ok:
	case !found:
		r.replyNull()
	case !r.dumpable(len(item.Value())):
		r.fail(errDumpTooLarge)
	case len(item.Value()) >= pinFrom && !r.holding:
		if pin, large := t.Pin(item); large {
			r.dumpLater(pin)
			return
		}
		fallthrough
	default:
		payload := rdb.AppendDump(r.worker.body[:0], item.Value())
		r.replyBulk(payload)
		r.worker.keepBody(payload)
	}
}

// dumped is the reply to DUMP of a large value, which is sent from where it lies once a goroutine has made the checksum.
type dumped struct {
	pin  engine.Pin
	head [rdb.MaxHead]byte
	n    int // bytes of head
	sum  uint64
	err  error
}

func (r *request) dumpLater(pin engine.Pin) {
	r.mayWait()
	cn, d := r.conn, &dumped{pin: pin}
	d.n = len(rdb.AppendHead(d.head[:0], len(pin.Value())))
	cn.answering = true
	cn.socket.Pause()
	cn.node.goJob(func() {
		d.err = d.check(cn.node)
		cn.worker.loop.Post(func() {
			cn.resume(d.reply)
			if d.pin.Live() {
				d.pin.Release() // the connection is closed
			}
		})
	})
}

// check makes the checksum.
func (d *dumped) check(n *Node) error {
	d.sum = rdb.Sum(0, d.head[:d.n])
	for value := d.pin.Value(); len(value) > 0; {
		if err := n.ctx.Err(); err != nil {
			return err
		}
		piece := value[:min(len(value), rewriteStep)]
		d.sum = rdb.Sum(d.sum, piece)
		value = value[len(piece):]
	}
	return nil
}

func (d *dumped) reply(r *request) {
	if d.err != nil {
		r.fail(errBusy)
		return
	}
	if !r.room(lineRoom + rdb.MaxHead + rdb.FootSize) {
		return
	}
	value, start, pins := d.pin.Value(), len(r.out), len(r.pins)
	r.out = resp.AppendBulkHeader(r.out, d.n+len(value)+rdb.FootSize)
	r.out = append(r.out, d.head[:d.n]...)
	r.pins = append(r.pins, pinned{len(r.out), value, d.pin})
	r.pinnedBytes += len(value)
	d.pin = engine.Pin{}
	r.out = append(rdb.AppendFoot(r.out, d.sum), "\r\n"...)
	r.ticketed(start, pins)
}
