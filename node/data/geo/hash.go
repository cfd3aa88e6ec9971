package geo

// Limits of places, as in EPSG:3857: the poles cannot be mapped.
const (
	maxLongitude = 180
	maxLatitude  = 85.05112878
	scoreSteps   = 26 // bits of either coordinate in a score
)

// point is a place in degrees.
type point struct{ longitude, latitude float64 }

func (p point) isValid() bool {
	return p.longitude >= -maxLongitude && p.longitude <= maxLongitude && p.latitude >= -maxLatitude && p.latitude <= maxLatitude
}

// cell is a part of the map: bits of the longitude and of the latitude alternate, that of the
// longitude first. The zero cell is none.
type cell struct {
	bits  uint64
	steps int // bits of either coordinate
}

// cellOf is the cell of a place, on a map that ends at a latitude.
func cellOf(p point, steps int, latitude float64) cell {
	size := float64(uint64(1) << steps)
	y := uint32((p.latitude + latitude) / (2 * latitude) * size)
	x := uint32((p.longitude + maxLongitude) / (2 * maxLongitude) * size)
	return cell{spread(y) | spread(x)<<1, steps}
}

// spread puts a zero in front of each bit.
func spread(x uint32) uint64 {
	s := uint64(x)
	s = (s | s<<16) & 0x0000FFFF0000FFFF
	s = (s | s<<8) & 0x00FF00FF00FF00FF
	s = (s | s<<4) & 0x0F0F0F0F0F0F0F0F
	s = (s | s<<2) & 0x3333333333333333
	return (s | s<<1) & 0x5555555555555555
}

// gather takes every second bit.
func gather(s uint64) uint32 {
	s &= 0x5555555555555555
	s = (s | s>>1) & 0x3333333333333333
	s = (s | s>>2) & 0x0F0F0F0F0F0F0F0F
	s = (s | s>>4) & 0x00FF00FF00FF00FF
	s = (s | s>>8) & 0x0000FFFF0000FFFF
	return uint32(s | s>>16)
}

// bounds are the corners of a cell.
type bounds struct{ min, max point }

func (c cell) bounds() (b bounds) {
	b.min.latitude, b.max.latitude = edges(gather(c.bits), c.steps, maxLatitude)
	b.min.longitude, b.max.longitude = edges(gather(c.bits>>1), c.steps, maxLongitude)
	return b
}

// edges are where the i-th of 2^steps stripes begins and ends, of which the map has as many between
// -limit and limit.
func edges(i uint32, steps int, limit float64) (from, to float64) {
	size, scale := float64(uint64(1)<<steps), 2*limit
	from = float64(float64(i)/size) * scale
	to = float64(float64(i+1)/size) * scale
	return float64(from) - limit, float64(to) - limit
}

// scores are the scores of the places in a cell: from the first one up to the second, which is not
// among them.
func (c cell) scores() (from, to float64) {
	shift := 2 * (scoreSteps - c.steps)
	return float64(c.bits << shift), float64((c.bits + 1) << shift)
}

// score is the score of a place.
func (p point) score() float64 { return float64(cellOf(p, scoreSteps, maxLatitude).bits) }

// pointOf is the place that has a score, of any sorted set.
func pointOf(score float64) point {
	bits := uint64(int64(score))
	if score >= 1<<63 {
		bits = uint64(score)
	}
	b := cell{bits, scoreSteps}.bounds()
	return point{
		min(max((b.min.longitude+b.max.longitude)/2, -maxLongitude), maxLongitude),
		min(max((b.min.latitude+b.max.latitude)/2, -maxLatitude), maxLatitude),
	}
}

const (
	oddBits  = 0xAAAAAAAAAAAAAAAA // those of the longitude
	evenBits = 0x5555555555555555
)

// moved is the neighbour of a cell that lies so many cells to the east and to the north, each -1, 0
// or 1. The map has no edges for it.
func (c cell) moved(east, north int) cell {
	shift := 64 - 2*c.steps
	x := step(c.bits&oddBits, east, oddBits>>shift, evenBits>>shift)
	y := step(c.bits&evenBits, north, evenBits>>shift, oddBits>>shift)
	return cell{x | y, c.steps}
}

// step counts a coordinate up or down. mask are its bits, gaps those between them. A place on the
// very edge of the map has one bit more, which stays if it does not move.
func step(bits uint64, by int, mask, gaps uint64) uint64 {
	switch by {
	case 1:
		return (bits + gaps + 1) & mask
	case -1:
		return ((bits | gaps) - (gaps + 1)) & mask
	}
	return bits
}

const alphabet = "0123456789bcdefghjkmnpqrstuvwxyz"

// text is the geohash of a place in 11 letters, as others write it: their map reaches to the poles,
// and of the last letter 52 bits say nothing.
func (p point) text() (text [11]byte) {
	bits := uint64(0)
	if p.isValid() {
		bits = cellOf(p, scoreSteps, 90).bits
	}
	for i := range 10 {
		text[i] = alphabet[bits>>(47-5*i)&31]
	}
	text[10] = alphabet[0]
	return text
}
