package geo

import "math"

// mercatorMax is half of the map's width, in metres.
const mercatorMax = 20037726.37

// stepsFor is how many steps cells have nine of which cover a radius, in metres, around most places
// of a latitude.
func stepsFor(metres, latitude float64) int {
	if metres == 0 {
		return scoreSteps
	}
	steps := 1
	for ; metres < mercatorMax; metres *= 2 {
		steps++
	}
	steps -= 2
	if latitude = math.Abs(latitude); latitude > 66 {
		steps--
		if latitude > 80 {
			steps--
		}
	}
	return min(max(steps, 1), scoreSteps)
}

// box is the corners of what contains the region.
func (s *region) box() (b bounds) {
	height, width := s.unit*s.radius, s.unit*s.radius
	if s.isBox {
		height, width = s.unit*(s.height/2), s.unit*(s.width/2)
	}
	up := degrees(height / earthRadius)
	edge := s.center.latitude + up // the one nearer to the pole is longer
	if s.center.latitude < 0 {
		edge = s.center.latitude - up
	}
	aside := degrees(width / earthRadius / math.Cos(radians(edge)))
	b.min = point{s.center.longitude - aside, s.center.latitude - up}
	b.max = point{s.center.longitude + aside, s.center.latitude + up}
	return b
}

// reach is the distance from the center to the farthest place, in metres.
func (s *region) reach() float64 {
	reach := s.radius
	if s.isBox {
		x, y := s.width/2, s.height/2
		reach = math.Sqrt(float64(x*x) + float64(y*y))
	}
	return reach * s.unit
}

// directions are where the nine cells of a search lie, in the order in which they are visited.
var directions = [9]struct{ east, north int }{{0, 0}, {0, 1}, {0, -1}, {1, 0}, {-1, 0}, {1, 1}, {-1, 1}, {1, -1}, {-1, -1}}

// cells are the cells that cover the region, some of them none.
func (s *region) cells() (cells [9]cell) {
	box, steps := s.box(), stepsFor(s.reach(), s.center.latitude)
	center := cellOf(s.center, steps, maxLatitude)
	if steps > 1 && !center.surrounds(box) {
		steps--
		center = cellOf(s.center, steps, maxLatitude)
	}
	inner := center.bounds()
	for i, d := range directions {
		useless := steps >= 2 && (d.north < 0 && inner.min.latitude < box.min.latitude ||
			d.north > 0 && inner.max.latitude > box.max.latitude ||
			d.east < 0 && inner.min.longitude < box.min.longitude ||
			d.east > 0 && inner.max.longitude > box.max.longitude)
		if !useless {
			cells[i] = center.moved(d.east, d.north)
		}
	}
	return dropRepeated(cells)
}

// surrounds reports whether a cell and its neighbours cover a box.
func (c cell) surrounds(box bounds) bool {
	north, south, east, west := c.moved(0, 1).bounds(), c.moved(0, -1).bounds(), c.moved(1, 0).bounds(), c.moved(-1, 0).bounds()
	return north.max.latitude >= box.max.latitude && south.min.latitude <= box.min.latitude &&
		east.max.longitude >= box.max.longitude && west.min.longitude <= box.min.longitude
}

// dropRepeated makes none of each cell that is the one visited before it: around half of the map
// neighbours are the same cell. A repetition of the first cell is not noticed, as in Redis.
func dropRepeated(cells [9]cell) [9]cell {
	last := 0
	for i, c := range cells {
		switch {
		case c == cell{}:
		case last > 0 && c == cells[last]:
			cells[i] = cell{}
		default:
			last = i
		}
	}
	return cells
}
