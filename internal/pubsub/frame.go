package pubsub

import (
	"bytes"

	"github.com/dunlin-cache/dunlin/internal/resp"
)

// Kind says what a name means.
type Kind uint8

// The kinds of topics.
const (
	Channel Kind = iota
	Pattern      // of channels
	Shard        // a shard channel

	Kinds // how many there are
)

// Prefix is no kind of topic: proxies listen so to changes of keys that begin with a name.
const Prefix = Kinds

// MaxName is how long the name of a topic can be, in bytes: also the longest pattern that package glob
// takes. MaxMessage is how long a channel's name and a message can be together.
const (
	MaxName    = 4 << 10
	MaxMessage = 1 << 20
)

// The first words of frames.
var (
	subscribed   = [Kinds]string{"subscribe", "psubscribe", "ssubscribe"}
	unsubscribed = [Kinds]string{"unsubscribe", "punsubscribe", "sunsubscribe"}
	messages     = [Kinds]string{"message", "pmessage", "smessage"}
)

// AppendPushHeader appends the header of a push of n elements.
func AppendPushHeader(dst []byte, v resp.Version, n int) []byte {
	at := len(dst)
	dst = resp.AppendArray(dst, n)
	if v == resp.RESP3 {
		dst[at] = '>'
	}
	return dst
}

// AppendSubscribed answers a subscription. count is how many topics the connection now has: of shard
// channels only these count, otherwise channels and patterns.
func AppendSubscribed(dst []byte, v resp.Version, kind Kind, name []byte, count int) []byte {
	return appendAnswer(dst, v, subscribed[kind], name, count)
}

// AppendUnsubscribed answers the end of a subscription. name is nil if there was none to end.
func AppendUnsubscribed(dst []byte, v resp.Version, kind Kind, name []byte, count int) []byte {
	return appendAnswer(dst, v, unsubscribed[kind], name, count)
}

func appendAnswer(dst []byte, v resp.Version, verb string, name []byte, count int) []byte {
	dst = resp.AppendBulkString(AppendPushHeader(dst, v, 3), verb)
	if name == nil {
		dst = resp.AppendNull(dst, v)
	} else {
		dst = resp.AppendBulk(dst, name)
	}
	return resp.AppendInt(dst, int64(count))
}

// AnswerSize is how many bytes the answer about a name takes at most.
func AnswerSize(name []byte) int { return len(name) + 96 }

// Message is what was published on a channel. Kind is Channel or Shard.
type Message struct {
	Kind    Kind
	Channel []byte
	Payload []byte
	Frame   []byte // for those who subscribe to the channel; Channel and Payload may be views of it
}

// Clone returns a copy of the message, whose views are of a frame of its own.
func (m Message) Clone() Message {
	m, _ = ParseMessage(bytes.Clone(m.Frame))
	return m
}

// FrameSize is how many bytes the frame of a message takes at most.
func FrameSize(channel, payload []byte) int { return len(channel) + len(payload) + 64 }

// AppendMessage appends the frame of a message.
func AppendMessage(dst []byte, kind Kind, channel, payload []byte) []byte {
	dst = resp.AppendBulkString(AppendPushHeader(dst, resp.RESP3, 3), messages[kind])
	return resp.AppendBulk(resp.AppendBulk(dst, channel), payload)
}

// AppendFrame appends a frame of RESP3 in another version.
func AppendFrame(dst []byte, v resp.Version, frame []byte) []byte {
	at := len(dst)
	dst = append(dst, frame...)
	if v == resp.RESP2 {
		dst[at] = '*'
	}
	return dst
}

// appendPatternMessage appends the frame for those whose pattern matches.
func appendPatternMessage(dst []byte, pattern string, m *Message) []byte {
	dst = resp.AppendBulkString(AppendPushHeader(dst, resp.RESP3, 4), messages[Pattern])
	dst = resp.AppendBulkString(dst, pattern)
	return resp.AppendBulk(resp.AppendBulk(dst, m.Channel), m.Payload)
}

// DropMessages removes the messages of a topic from frames of messages, in their memory.
func DropMessages(frames []byte, kind Kind, name []byte) (left []byte) {
	of := resp.AppendBulk(resp.AppendBulkString(nil, messages[kind]), name)
	left = frames[:0]
	for len(frames) > 0 {
		var scanner resp.Scanner
		if scanner.Scan(frames) != resp.Done {
			panic("BUG: what is no frame waits for a reply")
		}
		frame := frames[:scanner.Len()]
		frames = frames[len(frame):]
		if !bytes.HasPrefix(frame[len(">3\r\n"):], of) {
			left = append(left, frame...)
		}
	}
	return left
}

// ParseMessage reads what AppendMessage wrote. The message has views of frame.
func ParseMessage(frame []byte) (m Message, ok bool) {
	rest, ok := bytes.CutPrefix(frame, []byte(">3\r\n"))
	if !ok {
		return m, false
	}
	verb, rest, ok := cutBulk(rest)
	if !ok {
		return m, false
	}
	switch string(verb) {
	case messages[Channel]:
		m.Kind = Channel
	case messages[Shard]:
		m.Kind = Shard
	default:
		return m, false
	}
	var ok1, ok2 bool
	m.Channel, rest, ok1 = cutBulk(rest)
	m.Payload, rest, ok2 = cutBulk(rest)
	m.Frame = frame
	return m, ok1 && ok2 && len(rest) == 0
}

// cutBulk cuts the bulk string at the front of b.
func cutBulk(b []byte) (s, rest []byte, ok bool) {
	line, rest, ok := bytes.Cut(b, []byte("\r\n"))
	if !ok || len(line) < 2 || line[0] != '$' {
		return nil, nil, false
	}
	n, ok := resp.ParseInt(line[1:])
	if !ok || n < 0 || n > int64(len(rest)-2) || rest[n] != '\r' || rest[n+1] != '\n' {
		return nil, nil, false
	}
	return rest[:n:n], rest[n+2:], true
}
