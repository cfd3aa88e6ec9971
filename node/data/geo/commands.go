package geo

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/data/sortedsets"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// parsePoint reads a longitude and a latitude.
func parsePoint(args [][]byte) (p point, problem string) {
	longitude, ok1 := sortedsets.ParseScore(args[0])
	latitude, ok2 := sortedsets.ParseScore(args[1])
	if !ok1 || !ok2 {
		return p, errNotFloat
	}
	if p = (point{longitude, latitude}); !p.isValid() {
		text := fmt.Sprintf("ERR invalid longitude,latitude pair %f,%f", longitude, latitude)
		return p, strings.NewReplacer("+Inf", "inf", "-Inf", "-inf").Replace(text) // as C writes it
	}
	return p, ""
}

// geoAdd: GEOADD key [NX|XX] [CH] longitude latitude member...
func geoAdd(r *exec.Request) {
	var o sortedsets.Options
	args := r.Args[2:]
options:
	for ; len(args) > 0; args = args[1:] {
		switch {
		case exec.Is(args[0], "NX"):
			o.IfNew = true
		case exec.Is(args[0], "XX"):
			o.IfOld = true
		case exec.Is(args[0], "CH"):
			o.CountChanged = true
		default:
			break options
		}
	}
	if len(args) == 0 || len(args)%3 != 0 || o.IfNew && o.IfOld {
		r.Fail(exec.ErrSyntax)
		return
	}
	sortedsets.Add(r, o, args, 3, func(element [][]byte) (score float64, member []byte, problem string) {
		p, problem := parsePoint(element)
		if problem != "" {
			return 0, nil, problem
		}
		return p.score(), element[2], ""
	})
}

// geoDist: GEODIST key member member [M|KM|FT|MI]
func geoDist(r *exec.Request) {
	unit := 1.0
	switch {
	case len(r.Args) > 5:
		r.Fail(exec.ErrSyntax)
		return
	case len(r.Args) == 5:
		var ok bool
		if unit, ok = parseUnit(r.Args[4]); !ok {
			r.Fail(errUnit)
			return
		}
	}
	t, ok := r.Lock()
	if !ok {
		return
	}
	defer t.Unlock()
	s, ok := sortedsets.Read(r, t, r.Args[1])
	if !ok {
		return
	}
	a, ok1 := s.Score(r.Args[2])
	b, ok2 := s.Score(r.Args[3])
	if !ok1 || !ok2 {
		r.ReplyNull()
		return
	}
	r.Out = appendDistance(r.Out, distance(pointOf(a), pointOf(b))/unit)
}

// appendDistance appends a distance with four digits behind the point.
func appendDistance(dst []byte, d float64) []byte {
	var room [32]byte
	if scaled := math.RoundToEven(d * 1e4); scaled < 1<<53 {
		d = scaled / 1e4
	}
	return resp.AppendBulk(dst, strconv.AppendFloat(room[:0], d, 'f', 4, 64))
}

// appendPoint appends a place: two numbers with up to 17 digits behind the point.
func appendPoint(dst []byte, v resp.Version, p point) []byte {
	dst = resp.AppendArray(dst, 2)
	return appendCoordinate(appendCoordinate(dst, v, p.longitude), v, p.latitude)
}

func appendCoordinate(dst []byte, v resp.Version, f float64) []byte {
	var room [40]byte
	text := strconv.AppendFloat(room[:0], f, 'f', 17, 64)
	for text[len(text)-1] == '0' {
		text = text[:len(text)-1]
	}
	if text[len(text)-1] == '.' {
		text = text[:len(text)-1]
	}
	if string(text) == "-0" {
		text = text[1:]
	}
	if v == resp.RESP3 {
		return append(append(append(dst, ','), text...), '\r', '\n')
	}
	return resp.AppendBulk(dst, text)
}

// geoHash: GEOHASH key [member...]
func geoHash(r *exec.Request) {
	eachMember(r, func(p point, found bool) {
		if !found {
			r.ReplyNull()
			return
		}
		text := p.text()
		r.Out = resp.AppendBulk(r.Out, text[:])
	})
}

// geoPos: GEOPOS key [member...]
func geoPos(r *exec.Request) {
	eachMember(r, func(p point, found bool) {
		if !found {
			r.Out = resp.AppendNullArray(r.Out, r.Version())
			return
		}
		r.Out = appendPoint(r.Out, r.Version(), p)
	})
}

// eachMember answers an array with what f replies for each member, in runs.
func eachMember(r *exec.Request, f func(p point, found bool)) {
	run, ok := r.LockElementRun(r.Args[2:], 1)
	if !ok {
		return
	}
	defer run.Release()
	s, ok := sortedsets.Read(r, run.Txn, r.Args[1])
	if !ok {
		return
	}
	if run.IsFirst() {
		r.Out = resp.AppendArray(r.Out, len(r.Args)-2)
	}
	for _, member := range r.Args[2+run.First : 2+run.End] {
		if !r.Room(2 * exec.LineRoom) {
			return
		}
		score, found := s.Score(member)
		f(pointOf(score), found)
	}
	if !run.GoesOn(0) {
		run.Whole()
	}
}
