package node

import (
	"time"

	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// Nothing is evicted of a partition that a script holds. If others meet its keys when they make room, the script
// weighs them, and ends if they take much of the memory: others' writes would find none.

const (
	// weighEvery is how often a script weighs its partition, and weighAfter how long it runs before: a full partition
	// that an earlier script has left keeps others' writes out at once.
	weighEvery = time.Second
	weighAfter = 100 * time.Millisecond
	// heavyShare is the share of the node's memory from which on a partition is heavy. A collection has no more.
	heavyShare = 4
	// weighedAtOnce is how many keys are weighed under one lock.
	weighedAtOnce = 256
)

// checkHold returns why the script must end because of what it holds, if it must.
func (w *scriptRun) checkHold(h *engine.Hold) error {
	if h == nil || !h.IsWanted() || time.Now().Before(w.weighs) {
		return nil
	}
	e, weight := w.node.engine, int64(0)
	policy, heavy := e.Policy(), e.MaxBytes()/heavyShare
	for d := range uint8(engine.Databases) {
		for at := uint64(0); at < engine.WalkEnd; {
			at, _ = e.Walk(engine.Section(w.partition, d), at, weighedAtOnce, 0, func(item engine.Item) bool {
				if policy == engine.AllKeys || policy == engine.VolatileTTL && item.ExpireAt() != 0 {
					weight += e.ItemBytes(item)
				}
				return true
			})
			if weight > heavy {
				return errScriptHolds
			}
			if err := w.check(); err != nil {
				return err
			}
			_ = exec.Step(w.steps) // whether the script ends is decided above
		}
	}
	w.weighs = time.Now().Add(weighEvery)
	return nil
}
