package shape

// A value changes its form in one piece: at most MaxEntries entries, or a block of a list.

// Unpack gives an empty table the entries of a packed value. It changes all of the table or nothing:
// after an error the value is to be deleted. p must not be a view of the record that has become the
// root of the table's value.
func (t *Table) Unpack(w *Work, p *Packed) error {
	w.beginTexts()
	expires := false
	p.Each(0, func(_ int, first, second Item, expireAt int64) bool {
		w.addText(first)
		if t.Items > 1 {
			w.addText(second)
		}
		expires = expires || expireAt != 0
		return true
	})
	elements := w.texts()
	if err := t.Reserve(w, elements, expires); err != nil {
		return err
	}
	for i := range p.Len() {
		value := []byte(nil)
		if t.Items > 1 {
			value = elements[i*t.Items+1]
		}
		if _, err := t.Set(elements[i*t.Items], value, p.ExpireAt(i)); err != nil {
			return err
		}
	}
	return nil
}

// Unpack gives an empty tree without ranks the entries of a packed value, as Table.Unpack does.
func (t *Tree) Unpack(w *Work, p *Packed) error {
	w.beginTexts()
	p.Each(0, func(_ int, first, second Item, _ int64) bool {
		w.addText(first)
		if t.Items > 1 {
			w.addText(second)
		}
		return true
	})
	entries := w.texts()
	if err := t.ReserveAt(w, 0, entries); err != nil {
		return err
	}
	defer t.Settle()
	for i := range p.Len() {
		first, second := t.pair(entries, i)
		if err := t.InsertAt(i, first, second); err != nil {
			return err
		}
	}
	return nil
}

func (t *Tree) pair(entries [][]byte, i int) (first, second []byte) {
	if t.Items > 1 {
		return entries[i*2], entries[i*2+1]
	}
	return entries[i], nil
}

// Small reports whether the table's elements make a packed value within half of its limits.
func (t *Table) Small(kind *Kind) bool {
	bytes := blockHead + t.Bytes() - t.Len()*tagFront
	return t.Len() <= kind.Most/2 && bytes <= kind.UpTo/2 && t.V.Count(t.Away) == 0
}

// Small reports whether the tree's entries make a packed value within half of its limits.
func (t *Tree) Small(kind *Kind) bool {
	bytes := blockHead + t.Bytes() - t.Len()*(t.front()-kind.front())
	return t.Len() <= kind.Most/2 && bytes <= kind.UpTo/2 && t.V.Count(t.Away) == 0
}

// PackTable begins with the elements of a table that is Small, those that have expired left out.
func (p *Pack) PackTable(w *Work, kind *Kind, t *Table) {
	p.Open(kind, nil, t.V.Base())
	for number := range t.V.Len(t.Blocks) {
		t.Each(number, func(e Element) {
			w.beginTexts()
			w.addText(e.Key)
			second := []byte(nil)
			if t.Items > 1 {
				w.addText(e.Value)
			}
			texts := w.texts()
			if t.Items > 1 {
				second = texts[1]
			}
			if !p.Insert(p.Len(), 0, texts[0], second) || !p.SetExpireAt(p.Len()-1, e.ExpireAt) {
				panic("BUG: a small table does not fit a record")
			}
		})
	}
}

// PackTree begins with the entries of a tree that is Small.
func (p *Pack) PackTree(w *Work, kind *Kind, t *Tree) {
	p.Open(kind, nil, t.V.Base())
	t.Walk(0, func(x Entry) bool {
		w.beginTexts()
		w.addText(x.First)
		if t.Items > 1 {
			w.addText(x.Second)
		}
		first, second := t.pair(w.texts(), 0)
		if !p.Insert(p.Len(), x.Rank, first, second) {
			panic("BUG: a small tree does not fit a record")
		}
		return true
	})
}

// beginTexts, addText and texts make strings of items, in memory that is used again.
func (w *Work) beginTexts() { w.text, w.ends = w.text[:0], w.ends[:0] }

func (w *Work) addText(i Item) {
	w.text = i.Append(w.text)
	w.ends = append(w.ends, len(w.text))
}

func (w *Work) texts() [][]byte {
	w.args = w.args[:0]
	from := 0
	for _, end := range w.ends {
		w.args = append(w.args, w.text[from:end:end])
		from = end
	}
	return w.args
}
