package member

import (
	"math"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/ring"
)

// Topic is what one loop of a proxy has told the owner before of a channel, see Listen.
type Topic struct {
	Boot  int64 // of the proxy's process
	Loop  int
	Kind  uint8 // pubsub.Kind
	Name  string
	Count int // of subscribers
}

// topicWords is how many arguments a Topic has.
const topicWords = 5

// AppendTopics appends TOPICS. epoch is that of the table that makes the other node the owner.
func AppendTopics(dst []byte, epoch uint64, topics []Topic) []byte {
	dst = appendUint(AppendVerb(dst, VerbTopics, 1+topicWords*len(topics)), epoch)
	for i := range topics {
		t := &topics[i]
		dst = appendUint(appendInt(appendInt(dst, t.Boot), int64(t.Loop)), uint64(t.Kind))
		dst = appendInt(resp.AppendBulkString(dst, t.Name), int64(t.Count))
	}
	return dst
}

// ParseTopics reads the arguments of TOPICS. kinds is how many kinds of topics there are.
func ParseTopics(args [][]byte, kinds uint8) (epoch uint64, topics []Topic, ok bool) {
	epoch, ok = parseUint(args[0])
	for args = args[1:]; ok && len(args) > 0; args = args[topicWords:] {
		if len(args) < topicWords {
			return 0, nil, false
		}
		boot, ok1 := resp.ParseInt(args[0])
		loop, ok2 := resp.ParseInt(args[1])
		kind, ok3 := parseUint(args[2])
		count, ok4 := resp.ParseInt(args[4])
		ok = ok1 && ok2 && ok3 && ok4 && kind < uint64(kinds) && 0 < count && count <= math.MaxInt32
		topics = append(topics, Topic{Boot: boot, Loop: int(loop), Kind: uint8(kind), Name: string(args[3]), Count: int(count)})
	}
	return epoch, topics, ok
}

// Topics tells a node who listens to channels that it is about to own.
func (p *Peer) Topics(epoch uint64, topics []Topic) error {
	_, err := p.exchange(AppendTopics(nil, epoch, topics))
	return err
}

// Missed is a message that was published at the owner before, and that some loops of proxies have not got, which listen
// to the channel: it moves on before they have followed to that owner.
type Missed struct {
	Kind             uint8 // pubsub.Kind
	Channel, Message []byte
	By               []Loop
}

// Loop is a loop of a proxy.
type Loop struct {
	Boot int64 // of the proxy's process
	Loop int
}

// loopWords is how many arguments a Loop has, behind missedWords.
const (
	missedWords = 4
	loopWords   = 2
)

// AppendMissed appends MISSED. epoch is that of the table that makes the other node the owner.
func AppendMissed(dst []byte, epoch uint64, m *Missed) []byte {
	dst = appendUint(AppendVerb(dst, VerbMissed, missedWords+loopWords*len(m.By)), epoch)
	dst = resp.AppendBulk(resp.AppendBulk(appendUint(dst, uint64(m.Kind)), m.Channel), m.Message)
	for _, l := range m.By {
		dst = appendInt(appendInt(dst, l.Boot), int64(l.Loop))
	}
	return dst
}

// ParseMissed reads the arguments of MISSED. The bytes of m are those of args.
func ParseMissed(args [][]byte, kinds uint8) (epoch uint64, m Missed, ok bool) {
	epoch, ok = parseUint(args[0])
	kind, ok1 := parseUint(args[1])
	m = Missed{Kind: uint8(kind), Channel: args[2], Message: args[3]}
	ok = ok && ok1 && kind < uint64(kinds)
	for args = args[missedWords:]; ok && len(args) > 0; args = args[loopWords:] {
		if len(args) < loopWords {
			return 0, Missed{}, false
		}
		boot, ok1 := resp.ParseInt(args[0])
		loop, ok2 := resp.ParseInt(args[1])
		ok = ok1 && ok2
		m.By = append(m.By, Loop{boot, int(loop)})
	}
	return epoch, m, ok
}

// Missed tells a node what was missed of a channel that it is about to own.
func (p *Peer) Missed(epoch uint64, m *Missed) error {
	_, err := p.exchange(AppendMissed(nil, epoch, m))
	return err
}

// Handed tells a node of which partitions the node named by has told it everything, as far as
// channels are concerned.
func (p *Peer) Handed(whole *ring.PartitionSet, by string) error {
	_, err := p.exchange(AppendHanded(nil, whole, by))
	return err
}

// AppendHanded appends HANDED.
func AppendHanded(dst []byte, whole *ring.PartitionSet, by string) []byte {
	return AppendRequest(dst, VerbHanded, whole[:], []byte(by))
}
