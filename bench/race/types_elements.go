package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// filling is what a peer is filled with for one line of the table of elements: so many values of one
// type that have so many elements each.
type filling struct {
	family         *family
	values, length int
	name, text     int // bytes of an element's name, and of its value if it has one
	names, texts   []string
	zipf           *rand.Zipf
	draws          *rand.Rand
	skewed         bool
}

// family is what the operations are called on one type. A command is made of a key, an element's name,
// its number and a text; nil: the type has no such operation.
type family struct {
	name    string
	payload func(f *filling) int // bytes of an element
	insert  command
	read    command
	update  command
	ranged  command // 100 elements, or a scan of about as many
	random  command
	remove  command
	pop     command
}

type command func(f *filling, key string, i int) []string

// elementsAtLeast is how many elements all values of a filling have together at least.
const elementsAtLeast = 100_000

var families = []family{
	{
		name:    "hash",
		payload: func(f *filling) int { return f.name + f.text },
		insert: func(f *filling, key string, i int) []string {
			return []string{"HSET", key, f.names[i], f.texts[i%len(f.texts)]}
		},
		read: func(f *filling, key string, i int) []string { return []string{"HGET", key, f.names[i]} },
		update: func(f *filling, key string, i int) []string {
			return []string{"HSET", key, f.names[i], f.texts[(i+1)%len(f.texts)]}
		},
		ranged: func(_ *filling, key string, _ int) []string { return []string{"HSCAN", key, "0", "COUNT", "100"} },
		random: func(_ *filling, key string, _ int) []string { return []string{"HRANDFIELD", key} },
		remove: func(f *filling, key string, i int) []string { return []string{"HDEL", key, f.names[i]} },
	},
	{
		name:    "set",
		payload: func(f *filling) int { return f.name },
		insert:  func(f *filling, key string, i int) []string { return []string{"SADD", key, f.names[i]} },
		read:    func(f *filling, key string, i int) []string { return []string{"SISMEMBER", key, f.names[i]} },
		ranged:  func(_ *filling, key string, _ int) []string { return []string{"SSCAN", key, "0", "COUNT", "100"} },
		random:  func(_ *filling, key string, _ int) []string { return []string{"SRANDMEMBER", key} },
		remove:  func(f *filling, key string, i int) []string { return []string{"SREM", key, f.names[i]} },
		pop:     func(_ *filling, key string, _ int) []string { return []string{"SPOP", key} },
	},
	{
		name:    "sorted set",
		payload: func(f *filling) int { return f.name + 8 },
		insert:  func(f *filling, key string, i int) []string { return []string{"ZADD", key, f.score(i), f.names[i]} },
		read:    func(f *filling, key string, i int) []string { return []string{"ZSCORE", key, f.names[i]} },
		update:  func(f *filling, key string, i int) []string { return []string{"ZADD", key, f.score(i + 1), f.names[i]} },
		ranged: func(f *filling, key string, i int) []string {
			from := i % max(1, f.length-99)
			return []string{"ZRANGE", key, strconv.Itoa(from), strconv.Itoa(from + 99)}
		},
		random: func(_ *filling, key string, _ int) []string { return []string{"ZRANDMEMBER", key} },
		remove: func(f *filling, key string, i int) []string { return []string{"ZREM", key, f.names[i]} },
		pop:    func(_ *filling, key string, _ int) []string { return []string{"ZPOPMIN", key} },
	},
	{
		name:    "list",
		payload: func(f *filling) int { return f.name },
		insert:  func(f *filling, key string, i int) []string { return []string{"RPUSH", key, f.names[i]} },
		read:    func(_ *filling, key string, i int) []string { return []string{"LINDEX", key, strconv.Itoa(i)} },
		update: func(f *filling, key string, i int) []string {
			return []string{"LSET", key, strconv.Itoa(i), f.names[i]}
		},
		ranged: func(f *filling, key string, i int) []string {
			from := i % max(1, f.length-99)
			return []string{"LRANGE", key, strconv.Itoa(from), strconv.Itoa(from + 99)}
		},
		pop: func(_ *filling, key string, _ int) []string { return []string{"LPOP", key} },
	},
}

// score spreads the scores of a sorted set, so that elements are not inserted in their order.
func (f *filling) score(i int) string { return strconv.Itoa(i * 7919 % 1_000_003) }

func newFilling(of *family, length, bytes int) *filling {
	f := &filling{family: of, length: length, values: max(1, elementsAtLeast/length), name: bytes, text: bytes}
	f.draws = rand.New(rand.NewPCG(1, uint64(length)))
	f.zipf = rand.NewZipf(f.draws, 1.01, 1, uint64(length-1))
	if of.name == "hash" {
		f.name = 16
		for i := range 64 {
			f.texts = append(f.texts, fmt.Sprintf("%0*x", bytes, i))
		}
	}
	f.names = make([]string, length)
	for i := range f.names {
		f.names[i] = fmt.Sprintf("e:%0*d", f.name-2, i)
	}
	return f
}

// any draws a value and an element.
func (f *filling) any() (key string, i int) {
	if f.skewed {
		return "v:" + strconv.Itoa(int(f.zipf.Uint64())%f.values), int(f.zipf.Uint64()) * 7919 % f.length
	}
	return "v:" + strconv.Itoa(f.draws.IntN(f.values)), f.draws.IntN(f.length)
}

// operations are the columns of the table.
var operations = []string{"insert", "read", "skewed", "update", "skewed", "range", "random", "delete", "pop"}

// measureFilling fills a peer and measures all operations.
func measureFilling(ctx context.Context, l *live, f *filling, length time.Duration) (x []float64, err error) {
	t, err := dialTalk(ctx, l.addr)
	if err != nil {
		return nil, err
	}
	defer t.close()
	if _, err := t.do("FLUSHALL"); err != nil {
		return nil, err
	}
	total := f.values * f.length
	each := func(limit time.Duration, end int, c command, draw func(i int) (string, int)) error {
		if c == nil {
			x = append(x, -1)
			return nil
		}
		cost, err := costOf(l, func() (int, error) {
			return t.run(ctx, limit, func(i int) []string {
				if i >= end {
					return nil
				}
				key, element := draw(i)
				return c(f, key, element)
			})
		})
		x = append(x, cost.cpu)
		return err
	}
	inOrder := func(i int) (string, int) { return "v:" + strconv.Itoa(i%f.values), i / f.values }
	fromEnd := func(i int) (string, int) { return "v:" + strconv.Itoa(i%f.values), f.length - 1 - i/f.values }
	drawn := func(skewed bool) func(int) (string, int) {
		return func(int) (string, int) {
			f.skewed = skewed
			return f.any()
		}
	}
	if err := each(0, total, f.family.insert, inOrder); err != nil {
		return nil, err
	}
	bytes, err := footprint(t, f)
	if err != nil {
		return nil, err
	}
	x = append([]float64{bytes - float64(f.family.payload(f))}, x...)
	const forEver = 1 << 40
	for _, step := range []struct {
		c    command
		draw func(int) (string, int)
		end  int
	}{
		{f.family.read, drawn(false), forEver}, {f.family.read, drawn(true), forEver},
		{f.family.update, drawn(false), forEver}, {f.family.update, drawn(true), forEver},
		{f.family.ranged, drawn(false), forEver}, {f.family.random, drawn(false), forEver},
		{f.family.remove, fromEnd, total / 2}, {f.family.pop, inOrder, total / 4},
	} {
		if err := each(length, step.end, step.c, step.draw); err != nil {
			return nil, err
		}
	}
	return x, nil
}

// footprint is how many bytes an element takes by the server's own account, the key and all else
// included: the mean of some values.
func footprint(t *talk, f *filling) (float64, error) {
	sum, n := 0, min(f.values, 100)
	for i := range n {
		reply, err := t.do("MEMORY", "USAGE", "v:"+strconv.Itoa(i), "SAMPLES", "0")
		if err != nil {
			return 0, err
		}
		bytes, err := strconv.Atoi(reply)
		if err != nil {
			return 0, err
		}
		sum += bytes
	}
	return float64(sum) / float64(n*f.length), nil
}

// runElements measures and prints the table of elements.
func (r *race) runElements(ctx context.Context, o typesOptions, w io.Writer) error {
	lengths, sizes, length := []int{10, 1000, 100_000, 1_000_000}, []int{16, 256}, 200*time.Millisecond
	switch {
	case o.short:
		lengths, sizes, length = []int{10, 100_000}, sizes[:1], 100*time.Millisecond
	case o.huge:
		lengths = append(lengths, 10_000_000)
	}
	var lines []string
	for i := range families {
		for _, size := range sizes {
			for _, n := range lengths {
				if n > 1_000_000 && size > 16 {
					continue // more than singleMemory allows one value
				}
				line := fmt.Sprintf("%s, %d\t%d", families[i].name, size, n)
				lines = append(lines, line+r.elementsLine(ctx, newFilling(&families[i], n, size), length))
				if ctx.Err() != nil {
					break
				}
			}
		}
	}
	fmt.Fprintf(w, "\nElements: node / redis-server. Bytes an element beyond its payload (MEMORY USAGE), then processor time of the server in ns an operation, one connection, pipelines of %d."+
		"\nThe second column of read and update: elements drawn by Zipf 1.01. Elements of values with few are spread over values with %d in all.\n\n", talkAhead, elementsAtLeast)
	writeTable(w, "type, bytes\telements\tbytes\t"+strings.Join(operations, "\t"), lines)
	return context.Cause(ctx)
}

// elementsLine measures a filling on both peers.
func (r *race) elementsLine(ctx context.Context, f *filling, length time.Duration) (cells string) {
	var node, redis []float64
	for _, l := range r.live {
		fmt.Fprintf(r.say, "%s of %d elements on %s\n", f.family.name, f.length, l.name)
		x, err := measureFilling(ctx, l, f, length)
		if err != nil {
			r.notef("%s of %d elements on %s failed: %v", f.family.name, f.length, l.name, err)
		}
		if l.name == "redis" {
			redis = x
		} else {
			node = x
		}
	}
	for i := range 1 + len(operations) {
		cells += "\t" + figureOf(node, i) + "/" + figureOf(redis, i)
	}
	return cells
}

// figureOf is one figure for people.
func figureOf(x []float64, i int) string {
	switch {
	case i >= len(x) || x[i] < 0 && i > 0:
		return "-"
	case i == 0:
		return fmt.Sprintf("%.1f", x[i])
	}
	return fmt.Sprintf("%.0f", x[i])
}
