package streams

import (
	"encoding/binary"
	"fmt"

	"github.com/dunlin-cache/dunlin/node/data/shape"
	"github.com/dunlin-cache/dunlin/node/engine"
)

// A delta of a big stream is a sequence of words, each a byte and what it needs:
//
//	meta        last │ max deleted │ added │ next group
//	add         ID │ payload                           an entry
//	stub        ID │ length │ lengths of its strings   an entry whose bytes come in fills
//	fill        ID │ offset │ bytes                    offset: in the payload, and behind it in the strings
//	delete      ID                                     an entry
//	trim        ID                                     the entries up to that one
//	group       number │ last │ read │ next consumer │ name   as it is now
//	destroy     number                                 of a group
//	consumer    group │ number │ seen │ active │ name  as it is now
//	unconsumer  group │ number
//	pending     group │ ID │ consumer │ delivered │ count
//	ack         group │ ID
//	sweep       group │ kind │ count                   so many keys of a group that is gone
//
// IDs are two uvarints, numbers and lengths uvarints, times varints relative to the value's base. Counts of
// entries, groups, consumers and of what is pending follow from the words. A receiver in the middle of a
// snapshot gets the words on what it has (effects_within.go), so entries always come in their order.
const (
	opMeta = iota + 1
	opAdd
	opStub
	opFill
	opDelete
	opTrim
	opGroup
	opDestroy
	opConsumer
	opUnconsumer
	opPending
	opAck
	opSweep
)

// maxPiece is how many bytes of a long entry are in one delta.
const maxPiece = 32 << 10

func appendWord(dst []byte, op byte, id ID) []byte { return appendVarID(append(dst, op), id) }

func appendNumbers(dst []byte, op byte, numbers ...uint64) []byte {
	dst = append(dst, op)
	for _, n := range numbers {
		dst = binary.AppendUvarint(dst, n)
	}
	return dst
}

func appendText(dst, s []byte) []byte { return append(binary.AppendUvarint(dst, uint64(len(s))), s...) }

func appendVarID(dst []byte, id ID) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(dst, id.Ms), id.Seq)
}

func appendMeta(dst []byte, m meta) []byte {
	dst = binary.AppendUvarint(appendVarID(appendWord(dst, opMeta, m.last), m.maxDeleted), m.added)
	return binary.AppendUvarint(dst, uint64(m.nextGroup))
}

func appendAdd(dst []byte, id ID, payload []byte) []byte {
	return appendText(appendWord(dst, opAdd, id), payload)
}

func appendStub(dst []byte, id ID, l *long) []byte {
	dst = binary.AppendUvarint(appendWord(dst, opStub, id), uint64(l.length))
	dst = binary.AppendUvarint(dst, uint64(len(l.lengths)))
	for _, n := range l.lengths {
		dst = binary.AppendUvarint(dst, uint64(n))
	}
	return dst
}

func appendFill(dst []byte, id ID, offset int, piece []byte) []byte {
	return appendText(binary.AppendUvarint(appendWord(dst, opFill, id), uint64(offset)), piece)
}

func appendDelete(dst []byte, id ID) []byte { return appendWord(dst, opDelete, id) }
func appendTrim(dst []byte, id ID) []byte   { return appendWord(dst, opTrim, id) }

func appendGroup(dst []byte, g *group) []byte {
	dst = appendVarID(appendNumbers(dst, opGroup, uint64(g.number)), g.last)
	dst = binary.AppendUvarint(binary.AppendVarint(dst, g.read), uint64(g.next))
	return appendText(dst, g.name)
}

func appendDestroy(dst []byte, group uint32) []byte {
	return appendNumbers(dst, opDestroy, uint64(group))
}

func appendConsumer(dst []byte, group uint32, c *consumer, seen, active int64) []byte {
	dst = appendNumbers(dst, opConsumer, uint64(group), uint64(c.number))
	return appendText(binary.AppendVarint(binary.AppendVarint(dst, seen), active), c.name)
}

func appendUnconsumer(dst []byte, group, number uint32) []byte {
	return appendNumbers(dst, opUnconsumer, uint64(group), uint64(number))
}

func appendSetPending(dst []byte, group uint32, p *pending, delivered int64) []byte {
	dst = binary.AppendUvarint(appendVarID(appendNumbers(dst, opPending, uint64(group)), p.id), uint64(p.consumer))
	return binary.AppendUvarint(binary.AppendVarint(dst, delivered), p.count)
}

func appendAck(dst []byte, group uint32, id ID) []byte {
	return appendVarID(appendNumbers(dst, opAck, uint64(group)), id)
}

func appendSweep(dst []byte, group uint32, kind byte, count int) []byte {
	return appendNumbers(dst, opSweep, uint64(group), uint64(kind), uint64(count))
}

// word is a word of a delta.
type word struct {
	op      byte
	id      ID
	meta    meta
	text    []byte // a payload, a piece or a name
	number  int    // a length, an offset or a count
	group   uint32
	name    uint32 // the number of a consumer, or a kind of keys
	times   [2]int64
	count   uint64
	strings int // of a stub
	lengths [maxOwn]int
}

// nextWord parses the first word of a delta of any content.
func nextWord(w *word, d []byte) (rest []byte, err error) {
	r := reader{rest: d}
	w.op, w.strings = r.byte(), 0
	switch w.op {
	case opMeta:
		w.meta = meta{r.id(), r.id(), r.uvarint(), uint32(r.uvarint())}
	case opAdd:
		w.id, w.text = r.id(), r.bytes()
	case opStub:
		w.id, w.number, w.strings = r.id(), r.length(), r.length()
		if w.strings > maxOwn {
			r.fail()
		}
		for i := range min(w.strings, maxOwn) {
			w.lengths[i] = r.length()
		}
	case opFill:
		w.id, w.number, w.text = r.id(), r.length(), r.bytes()
	case opDelete, opTrim:
		w.id = r.id()
	case opGroup:
		w.group, w.id, w.times[0], w.name, w.text = r.number(), r.id(), r.varint(), uint32(r.uvarint()), r.bytes()
	case opDestroy:
		w.group = r.number()
	case opConsumer:
		w.group, w.name, w.times[0], w.times[1], w.text = r.number(), r.number(), r.varint(), r.varint(), r.bytes()
	case opUnconsumer:
		w.group, w.name = r.number(), r.number()
	case opPending:
		w.group, w.id, w.name, w.times[0], w.count = r.number(), r.id(), r.number(), r.varint(), r.uvarint()
	case opAck:
		w.group, w.id = r.number(), r.id()
	case opSweep:
		w.group, w.name, w.number = r.number(), r.number(), r.length()
	default:
		r.fail()
	}
	if r.bad {
		return nil, fmt.Errorf("%w: word %d of a stream", shape.ErrMalformed, w.op)
	}
	return r.rest, nil
}

// number reads the number of a group or a consumer, which is not 0.
func (r *reader) number() uint32 {
	n := r.uvarint()
	if n == 0 || n >= 1<<32-1 {
		r.fail()
		return 0
	}
	return uint32(n)
}

// length reads a length, or a number of bytes in all strings of an entry.
func (r *reader) length() int {
	n := r.uvarint()
	if n > (maxOwn+1)*engine.MaxValueLen {
		r.fail()
		return 0
	}
	return int(n)
}

// apply applies a delta of any content.
func apply(v engine.Parts, delta []byte) error {
	b := big{v: v, spare: spares.Get().(*spare)}
	defer giveSpare(b.spare)
	var w word
	for len(delta) > 0 {
		rest, err := nextWord(&w, delta)
		if err == nil {
			err = b.apply(&w)
		}
		if err != nil {
			return err
		}
		delta = rest
	}
	b.flush()
	return nil
}

func (b *big) apply(w *word) error {
	switch w.op {
	case opMeta:
		return b.applyMeta(w.meta)
	case opAdd:
		return b.applyAdd(w)
	case opStub:
		return b.applyStub(w)
	case opFill:
		return b.applyFill(w)
	case opDelete:
		b.remove(w.id)
	case opTrim:
		t := trimming{byID: true, minID: w.id}
		ok := false
		if t.minID, ok = w.id.next(); !ok {
			t = trimming{}
		}
		for done := false; !done; {
			_, _, done = b.trim(&t, trimSteps)
		}
	case opGroup, opDestroy:
		return b.applyGroup(w)
	case opSweep:
		b.applySweep(w)
	default:
		return b.applyInGroup(w)
	}
	return nil
}

// applyMeta sets what is known besides entries and groups. No entry is above the last ID, but deleted ones may be.
func (b *big) applyMeta(m meta) error {
	if m.last.less(b.meta().last) {
		v := viewParts(b.v)
		if latest, found := v.latest(); found && m.last.less(latest) {
			return fmt.Errorf("%w: an entry of a stream is above the last ID", shape.ErrMalformed)
		}
	}
	m.nextGroup = max(m.nextGroup, b.meta().nextGroup)
	b.setMeta(m)
	return nil
}

// isNew reports whether an entry is to be appended. It is not if it is there: then it came twice.
func (b *big) isNew(id ID) (isNew bool, err error) {
	if m := b.meta(); m.last.less(id) {
		m.last = id
		b.setMeta(m)
		return true, nil
	}
	tail, ok := b.tail()
	if !ok {
		return true, nil
	}
	blk := block(b.v.Part(planeBlocks, tail))
	if blk.last().id.less(id) {
		return true, nil
	}
	if _, _, found := b.find(id); !found {
		return false, fmt.Errorf("%w: entries of a stream are out of order", shape.ErrMalformed)
	}
	return false, nil
}

func (b *big) applyAdd(w *word) error {
	isNew, err := b.isNew(w.id)
	switch {
	case !isNew || err != nil:
		return err
	case len(w.text) > maxInside:
		l := longOf(w.text, nil)
		return b.appendLong(w.id, &l)
	case !checkPayload(w.text):
		return fmt.Errorf("%w: an entry of a stream", shape.ErrMalformed)
	}
	return b.append(w.id, w.text)
}

func (b *big) applyStub(w *word) error {
	if isNew, err := b.isNew(w.id); !isNew || err != nil {
		return err
	}
	l := long{length: w.number, lengths: w.lengths[:w.strings]}
	if l.all() > 1<<40 || l.length > engine.MaxValueLen-16 {
		return engine.ErrValueTooLarge
	}
	for _, n := range l.lengths {
		if n > engine.MaxValueLen-16 {
			return engine.ErrValueTooLarge
		}
	}
	return b.appendLong(w.id, &l)
}

// applyFill fills a piece of a long entry. If the entry is gone, that was noted.
func (b *big) applyFill(w *word) error {
	_, x, found := b.find(w.id)
	if !found || x.kind != kindAway {
		return nil
	}
	offset := w.number
	for numbers := x.body; len(numbers) > 0; {
		number := int(binary.LittleEndian.Uint32(numbers))
		n := len(shape.AwayString(b.v.Part(planeAway, number)))
		if offset < n {
			return shape.FillAway(b.v, planeAway, number, offset, w.text)
		}
		offset -= n
		if len(numbers) == len(x.body) {
			numbers = numbers[1:] // how many strings there are
		}
		numbers = numbers[partNumber:]
	}
	return fmt.Errorf("%w: a fill beyond the end of an entry", shape.ErrMalformed)
}

func (b *big) applyGroup(w *word) error {
	g, found := b.numbered(w.group)
	switch {
	case w.op == opDestroy && found:
		b.destroyGroup(&g)
	case w.op == opDestroy:
	case found && string(g.name) == string(w.text):
		b.setGroup(w.group, w.id, w.times[0])
		r := b.groupRecord(w.group)
		r.setNext(max(r.next(), w.name))
	case len(w.text) > maxName:
		return fmt.Errorf("%w: the name of a group", shape.ErrMalformed)
	default:
		if _, other := b.group(w.text); found || other || b.groupRecord(w.group) != nil {
			return fmt.Errorf("%w: two groups of a stream are one", shape.ErrMalformed)
		}
		_, err := b.createGroup(w.group, w.text, w.id, w.times[0])
		if err == nil {
			b.groupRecord(w.group).setNext(w.name)
		}
		return err
	}
	return nil
}

// applyInGroup applies a word on what is in a group.
func (b *big) applyInGroup(w *word) error {
	g, found := b.numbered(w.group)
	if !found {
		return fmt.Errorf("%w: word %d on a group that is not there", shape.ErrMalformed, w.op)
	}
	switch w.op {
	case opConsumer:
		return b.applyConsumer(&g, w)
	case opUnconsumer:
		if c, found := b.consumerOf(&g, w.name); found {
			if c.pending != 0 {
				return fmt.Errorf("%w: a consumer goes that has pending entries", shape.ErrMalformed)
			}
			b.deleteConsumer(&g, &c)
		}
	case opAck:
		b.ack(&g, w.id)
	case opPending:
		if _, found := b.consumerOf(&g, w.name); !found {
			return fmt.Errorf("%w: an entry is pending for nobody", shape.ErrMalformed)
		}
		return b.setPending(&g, &pending{w.id, w.name, b.base() + w.times[0], w.count})
	}
	return nil
}

func (b *big) applyConsumer(g *group, w *word) error {
	c, found := b.consumerOf(g, w.name)
	if found && string(c.name) == string(w.text) {
		b.consumerRecord(g.number, w.name).setTimes(w.times[0], w.times[1])
		return nil
	}
	if _, other := b.consumer(g, w.text); found || other || len(w.text) > maxName {
		return fmt.Errorf("%w: the name of a consumer", shape.ErrMalformed)
	}
	_, err := b.createConsumer(g, w.name, w.text, w.times[0], w.times[1])
	return err
}

func (b *big) applySweep(w *word) {
	if r := b.groupRecord(w.group); r == nil || !r.isGone() {
		return
	}
	if w.name == keyGroup {
		b.sweepAll(w.group)
		return
	}
	if w.name >= keyOf && w.name <= keyOwed {
		b.sweepKind(byte(w.name), w.group, w.number, w.number+1)
	}
}
