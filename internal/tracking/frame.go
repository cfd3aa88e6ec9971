package tracking

import (
	"github.com/dunlin-cache/dunlin/internal/pubsub"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

// Channel is where a client of RESP2 subscribes to the invalidations that others redirect to it.
const Channel = "__redis__:invalidate"

// FrameSize is how many bytes a frame about a key takes at most.
func FrameSize(key int) int { return key + 96 }

// AppendInvalidate appends what tells a client to forget a key, or all keys. To a client of RESP2 it is a
// message on Channel.
func AppendInvalidate(dst []byte, v resp.Version, key string, all bool) []byte {
	if v == resp.RESP3 {
		dst = resp.AppendBulkString(pubsub.AppendPushHeader(dst, v, 2), "invalidate")
	} else {
		dst = resp.AppendBulkString(resp.AppendArray(dst, 3), "message")
		dst = resp.AppendBulkString(dst, Channel)
	}
	if all {
		return resp.AppendNull(dst, v)
	}
	return resp.AppendBulkString(resp.AppendArray(dst, 1), key)
}

// AppendBroken appends what tells a client of RESP3 that the connection is gone to which its invalidations were
// redirected.
func AppendBroken(dst []byte, id uint64) []byte {
	dst = resp.AppendBulkString(pubsub.AppendPushHeader(dst, resp.RESP3, 2), "tracking-redir-broken")
	return resp.AppendInt(dst, int64(id))
}
