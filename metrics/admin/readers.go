package admin

import (
	"net/http"
	"time"
)

const (
	// mostReaders bounds the requests of one kind in progress. The page and the status are two
	// kinds, so that open tabs do not take turns from members that ask for the status.
	mostReaders = 64
	// sendTime is how long a reader may take to receive its response.
	sendTime = 10 * time.Second
)

// readers counts the requests of one kind in progress.
type readers chan struct{}

// limit refuses requests when readers is full, and cuts off clients that do not read.
func (r readers) limit(serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		select {
		case r <- struct{}{}:
			defer func() { <-r }()
			// Only the recorder of tests does not support this.
			_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(sendTime))
			serve(w, req)
		default:
			w.Header().Set("Retry-After", "1")
			http.Error(w, "too many readers at once, try again in a moment", http.StatusServiceUnavailable)
		}
	}
}
