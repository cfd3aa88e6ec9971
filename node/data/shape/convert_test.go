package shape

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
)

// A packed value becomes a table or tree, and one that is small a packed value again, with the same
// content.
func TestConvert(t *testing.T) {
	for i, kind := range packedKinds {
		convert(t, i, kind)
	}
}

func convert(t *testing.T, i int, kind *Kind) {
	e := openEngine(t, 64<<20)
	x := e.Lock(1, 1)
	defer x.Unlock()
	m := &packedModel{tb: t, kind: kind}
	m.p.Open(kind, nil, 1000)
	for j := uint64(0); ; j++ {
		x := packedEntry{first: fmt.Sprint("key:", j), second: ""}
		if j%3 == 0 {
			x.first = fmt.Sprint(j * 1000)
		}
		if kind.Items > 1 {
			x.second = fmt.Sprint("value:", j)
		}
		if kind.Ranked {
			x.rank = j / 2 * 2
			x.first = fmt.Sprintf("member:%04d", j)
		}
		if !m.p.Insert(int(j), x.rank, []byte(x.first), []byte(x.second)) {
			break
		}
		if kind.Timed && j%5 == 0 && m.p.SetExpireAt(int(j), 2000+int64(j)) {
			x.expireAt = 2000 + int64(j)
		}
		m.want = append(m.want, x)
	}
	m.value = slices.Clone(m.p.Bytes())
	p := ReadPacked(kind, m.value)
	w, back := Work{}, Pack{}
	table, tree := makeTable(t, x, "table", kind.Items), makeTree(t, x, "tree", kind.Items, kind.Ranked)
	isTable := i < 2
	var err error
	switch {
	case isTable:
		err = table.Unpack(&w, &p)
	case tree.Ranked:
		for _, x := range m.want {
			_, insertErr := tree.Insert(x.rank, []byte(x.first), nil)
			err = cmpErr(err, insertErr)
		}
	default:
		err = tree.Unpack(&w, &p)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := cmpErr(table.Check(), tree.Check()); err != nil {
		t.Fatal(err)
	}
	var got []byte
	if isTable {
		if table.Len() != p.Len() || table.Small(kind) {
			t.Errorf("%d elements of %d, small %t", table.Len(), p.Len(), table.Small(kind))
		}
		for !table.Small(kind) {
			last := m.want[len(m.want)-1]
			table.Delete([]byte(last.first))
			m.want = m.want[:len(m.want)-1]
		}
		back.PackTable(&w, kind, table)
	} else {
		if tree.Len() != p.Len() || tree.Small(kind) {
			t.Errorf("%d entries of %d, small %t", tree.Len(), p.Len(), tree.Small(kind))
		}
		for !tree.Small(kind) {
			tree.Delete(tree.Len() - 1)
			m.want = m.want[:len(m.want)-1]
		}
		back.PackTree(&w, kind, tree)
	}
	got = back.Bytes()
	if err := CheckPacked(kind, got); err != nil {
		t.Fatal(err)
	}
	// Where some elements expire all entries of a record have a byte for that, but not those of all blocks.
	if q := ReadPacked(kind, got); !slices.Equal(texts(&q, isTable), wants(m.want, isTable)) || !q.Small() && !kind.Timed {
		t.Errorf("kind %d: %d entries, want %d, or others; small %t", i, q.Len(), len(m.want), q.Small())
	}
}

func cmpErr(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// texts is the content of a packed value, sorted if it has no order.
func texts(p *Packed, sorted bool) (all []string) {
	p.Each(0, func(entry int, first, second Item, expireAt int64) bool {
		rank := uint64(0)
		if p.Kind.Ranked {
			rank = p.Rank(entry)
		}
		all = append(all, fmt.Sprintf("%d %q %q %d", rank, first.Append(nil), bytes.TrimSpace(second.Append(nil)), expireAt))
		return true
	})
	if sorted {
		slices.Sort(all)
	}
	return all
}

func wants(entries []packedEntry, sorted bool) (all []string) {
	for _, e := range entries {
		all = append(all, fmt.Sprintf("%d %q %q %d", e.rank, e.first, bytes.TrimSpace([]byte(e.second)), e.expireAt))
	}
	if sorted {
		slices.Sort(all)
	}
	return all
}
