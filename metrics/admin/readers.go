package admin

import (
	"net/http"
	"time"
)

const (
	// mostReaders bounds the requests of one kind that wait or are sent at a time. Those of the
	// page and those of status are two kinds, so that open tabs take nothing from members that ask.
	mostReaders = 64
	// sendTime is how long a reader may take for what it asked for.
	sendTime = 10 * time.Second
)

// readers are the requests of one kind under way.
type readers chan struct{}

// limit refuses requests beyond what readers has room for, and cuts off those who do not read.
func (r readers) limit(serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		select {
		case r <- struct{}{}:
			defer func() { <-r }()
			// Not supported by a recorder of tests alone.
			_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(sendTime))
			serve(w, req)
		default:
			w.Header().Set("Retry-After", "1")
			http.Error(w, "too many readers at once, try again in a moment", http.StatusServiceUnavailable)
		}
	}
}
