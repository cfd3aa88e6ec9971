package load

import "time"

// intended returns when the worker's batch number n should be sent.
func (w *worker) intended(n int) time.Duration {
	return time.Duration(w.offset + float64(n)*w.interval)
}

// batchOf returns the number of the client's k-th batch: clients take turns.
func (w *worker) batchOf(c *client, k int) int { return k*len(w.clients) + c.number }

// sendDue sends the batches whose time has come.
func (w *worker) sendDue() error {
	for w.now = time.Since(w.begin); w.due < w.batches && w.intended(w.due) <= w.now; w.due++ {
		c := w.clients[w.due%len(w.clients)]
		c.due++
		if err := w.sendClientsDue(c); err != nil {
			return err
		}
	}
	return nil
}

// sendClientsDue sends the batches that a client has due, as many as may be outstanding.
func (w *worker) sendClientsDue(c *client) error {
	for c.sent < c.due {
		if c.outstanding > 0 && c.outstanding+w.config.Pipeline > maxOpen {
			c.wasFull = true // the server, not this program, delays the batch
			return nil
		}
		if !c.wasFull {
			w.result.Late.Add(w.now-w.intended(w.batchOf(c, c.sent)), 1)
		}
		c.sent++
		if err := w.send(c); err != nil {
			return err
		}
	}
	c.wasFull = false
	return nil
}

// countOpen counts the latencies of a client's next replies, each from its batch's intended time.
func (w *worker) countOpen(c *client, replies int) {
	for replies > 0 {
		n := min(replies, w.config.Pipeline-c.answered%w.config.Pipeline)
		began := w.intended(w.batchOf(c, c.answered/w.config.Pipeline))
		w.result.Latency.Add(w.now-began, n)
		c.answered += n
		replies -= n
	}
}
