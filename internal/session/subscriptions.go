package session

import (
	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/pubsub"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

// SetTopics records how many topics of each kind the connection subscribes to. The caller keeps which
// they are.
func (st *State) SetTopics(topics [pubsub.Kinds]int) {
	st.topics = topics
	st.setApart()
}

// Subscribes reports whether the connection subscribes to anything.
func (st *State) Subscribes() bool { return st.topics != [pubsub.Kinds]int{} }

// listensOnly reports whether the connection may not use other commands: RESP2 cannot tell messages from
// replies.
func (st *State) listensOnly() bool { return st.Version == resp.RESP2 && st.Subscribes() }

// refuseListening returns the error for a command that a subscriber of RESP2 may not use, or "".
func (st *State) refuseListening(c *command.Command) string {
	if !st.listensOnly() {
		return ""
	}
	switch c.ID {
	case command.Subscribe, command.PSubscribe, command.SSubscribe, command.Unsubscribe, command.PUnsubscribe,
		command.SUnsubscribe, command.Ping, command.Quit, command.Reset:
		return ""
	}
	return "ERR Can't execute '" + c.Name + "': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context"
}

// appendPong answers PING of a subscriber of RESP2, whose replies are arrays.
func appendPong(dst []byte, message [][]byte) []byte {
	dst = resp.AppendBulkString(resp.AppendArray(dst, 2), "pong")
	if len(message) == 0 {
		return resp.AppendBulk(dst, nil)
	}
	return resp.AppendBulk(dst, message[0])
}

// SubscriptionOf returns the kind of topics that a command subscribes to, or unsubscribes from. ok is
// false for all other commands.
func SubscriptionOf(id command.ID) (kind pubsub.Kind, more, ok bool) {
	switch id {
	case command.Subscribe:
		return pubsub.Channel, true, true
	case command.PSubscribe:
		return pubsub.Pattern, true, true
	case command.SSubscribe:
		return pubsub.Shard, true, true
	case command.Unsubscribe:
		return pubsub.Channel, false, true
	case command.PUnsubscribe:
		return pubsub.Pattern, false, true
	case command.SUnsubscribe:
		return pubsub.Shard, false, true
	}
	return 0, false, false
}
