package sortedsets

import "github.com/dunlin-cache/dunlin/node/data/shape"

// putPacked gives a member of a packed set a score. It returns false if the set would be too long
// for a packed one; then it is as it was.
func putPacked(p *shape.Pack, member []byte, old float64, there bool, score float64) bool {
	rank := rankOf(score)
	if !there {
		at, _ := findPacked(&p.Packed, p.Len(), rank, member)
		return p.Insert(at, rank, member, nil)
	}
	from, _ := findPacked(&p.Packed, p.Len(), rankOf(old), member)
	to, _ := findPacked(&p.Packed, p.Len(), rank, member)
	if to == from || to == from+1 {
		p.SetRank(from, rank)
		return true
	}
	p.Delete(from)
	if to > from {
		to--
	}
	return p.Insert(to, rank, member, nil) // into the room that it had
}
