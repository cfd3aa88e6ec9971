package proxy

import "time"

// warning limits a log message that thousands of clients or pipes may cause at once to one line a
// second. The line says how many like it were omitted since the last one.
type warning struct {
	text    string
	said    bool
	last    time.Duration // loop time
	omitted int
}

const warningPause = time.Second

func (w *worker) warn(k *warning, args ...any) {
	now := w.loop.Now()
	if k.said && now-k.last < warningPause {
		k.omitted++
		return
	}
	if k.omitted > 0 {
		args = append(args, "more_like_this", k.omitted)
	}
	k.said, k.last, k.omitted = true, now, 0
	w.proxy.cfg.Log.Warn(k.text, args...)
}

// warnings are those of one worker.
type warnings struct{ slow, starved, cutOff, early, broken warning }

func newWarnings() warnings {
	return warnings{
		slow:    warning{text: "client closed: it does not read its replies"},
		starved: warning{text: "client closed: no memory for its buffers"},
		cutOff:  warning{text: "client closed in the middle of a reply"},
		early:   warning{text: "client closed: its replies wait for another node and take too much memory"},
		broken:  warning{text: "pipe to node broke"},
	}
}
