package node

import "testing"

// TestScanWithoutRoom: a reply to HSCAN for whose head there is no room is dropped as a whole, also if
// there is room for the rest of it.
func TestScanWithoutRoom(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Group = newGroup(t, 1) })
	onLoop(t, n, func(cn *conn) {
		r := cn.worker.begin(cn)
		body := r.NewText(nil)
		body.Bytes = append(body.Bytes, "$5\r\nfield\r\n"...)
		cn.Socket.Close(nil)
		r.Out = make([]byte, 0, body.Len())
		r.ReplyScanText(0, 1, &body)
		if len(r.Out) > 0 || body.Len() > 0 {
			t.Errorf("the output is %q, and %d bytes of the text are left", r.Out, body.Len())
		}
		r.Out = nil
	})
}
