package gossip

import (
	"encoding/binary"
	"errors"
	"math"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/dunlin-cache/dunlin/internal/beat"
	"github.com/dunlin-cache/dunlin/ring"
)

// What a member says about itself travels in two ways. Gossip spreads it to everybody, but takes a
// few hundred milliseconds, and sometimes fails: of two broadcasts of the same length, memberlist's
// queue (v0.7.0) may lose one, because it reuses their numbers while they are being sent. The next
// chance would be the exchange of states after 10 s. So the coordinator also sends its announcement
// to every member, and every member to the coordinator, in a packet of its own: as soon as
// something has changed, and again every second in case a packet was lost.

const tellInterval = time.Second

// announcement is a member as it describes itself. The one with the greater seq is newer; the two
// ways may deliver them in any order.
type announcement struct {
	seq uint64
	ring.Member
	has settingsMark // the settings that it has applied
}

func (m announcement) encode() []byte {
	b := binary.LittleEndian.AppendUint64(make([]byte, 0, 128), m.seq)
	b = ring.AppendMember(b, m.Member)
	if m.has.version == 0 && m.TableLevel == 0 {
		return b // builds without levels refuse announcements that are longer than theirs
	}
	// Later levels append their own fields behind these.
	return binary.AppendUvarint(m.has.append(b), uint64(m.TableLevel))
}

// decodeAnnouncement copies what it needs of b. It skips what a build of a later level has
// appended. The member's level is not in b.
func decodeAnnouncement(b []byte) (announcement, error) {
	if len(b) < 8 {
		return announcement{}, errors.New("cannot decode announcement: too short")
	}
	m, rest, err := ring.DecodeMember(b[8:])
	has, rest := parseMark(rest)
	if level, n := binary.Uvarint(rest); n > 0 {
		m.TableLevel = uint8(min(level, math.MaxUint8))
	}
	return announcement{seq: binary.LittleEndian.Uint64(b), Member: m, has: has}, err
}

// hear handles a member's announcement about itself. Only gossip can introduce a member.
func (a *Agent) hear(b []byte) {
	heard, err := decodeAnnouncement(b)
	if err != nil {
		return
	}
	a.mu.Lock()
	p, known := a.peers[heard.Name()]
	news := known && heard.seq > p.seq
	if news {
		heard.Level = p.Level
		p.announcement = heard
		a.peers[heard.Name()] = p
	}
	a.mu.Unlock()
	if news {
		poke(a.wake)
	}
}

// tell sends this member's announcement to its audience if it is new or was last sent long ago, and
// returns when to do so again.
func (a *Agent) tell(alive []ring.Member) time.Duration {
	s := &a.steering
	own := a.ownAnnouncement()
	if wait := time.Until(s.tellAt); own.seq == s.toldSeq && wait > 0 {
		return wait
	}
	next := beat.Until(tellInterval)
	s.tellAt, s.toldSeq = time.Now().Add(next), own.seq
	coordinator, ok := ring.Coordinator(alive)
	if !ok {
		return next
	}
	message := own.encode()
	for _, to := range a.audience(coordinator.Name()) {
		// A lost packet is told again; an address that cannot be reached will soon be found dead.
		_ = a.list.SendToAddress(to, message)
	}
	return next
}

// audience returns all members if this member is the coordinator, otherwise the coordinator.
func (a *Agent) audience(coordinator string) []memberlist.Address {
	a.mu.Lock()
	defer a.mu.Unlock()
	var to []memberlist.Address
	for name, p := range a.peers {
		if coordinator == a.name || coordinator == name {
			to = append(to, memberlist.Address{Addr: p.gossipAddr, Name: name})
		}
	}
	return to
}
