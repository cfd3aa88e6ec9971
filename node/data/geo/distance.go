package geo

import "math"

// earthRadius is the quadratic mean of the earth's radii, in metres.
const earthRadius = 6372797.560856

const perRadian = math.Pi / 180

func radians(degrees float64) float64 { return degrees * perRadian }

func degrees(radians float64) float64 { return radians / perRadian }

// distance is how far two places lie apart, in metres, on a sphere: the haversine formula. It is
// what Redis computes, to the last digit. Conversions keep the compiler from fusing operations,
// which would round otherwise.
func distance(a, b point) float64 {
	from, to, v := angles(a, b)
	v = sine(v).high
	if v == 0 {
		return latitudeDistance(a.latitude, b.latitude)
	}
	u := sine((to - from) / 2).high
	h := float64(u*u) + float64(float64(float64(cosine(from).high*cosine(to).high)*v)*v)
	return 2 * earthRadius * arcSine(math.Sqrt(h))
}

// roughDistance is distance with an error of less than roughly times it, and a tenth of the time.
func roughDistance(a, b point) float64 {
	from, to, v := angles(a, b)
	v = math.Sin(v)
	u := math.Sin((to - from) / 2)
	return 2 * earthRadius * math.Asin(math.Sqrt(u*u+math.Cos(from)*math.Cos(to)*v*v))
}

const roughly = 1e-9

// angles are the latitudes of two places, and half of the difference of their longitudes, in
// radians.
func angles(a, b point) (from, to, v float64) {
	return radians(a.latitude), radians(b.latitude), (float64(radians(b.longitude)) - float64(radians(a.longitude))) / 2
}

// within reports whether two places lie at most so many metres apart.
func within(a, b point, metres float64) bool {
	d := roughDistance(a, b)
	if math.Abs(d-metres) > roughly*(d+metres)+1e-6 {
		return d < metres
	}
	return distance(a, b) <= metres
}

// latitudeDistance is the distance of two places on one meridian.
func latitudeDistance(a, b float64) float64 {
	return earthRadius * math.Abs(float64(radians(b))-float64(radians(a)))
}

// region is what a search looks in: a circle, or a box whose edges lie on parallels and meridians.
type region struct {
	center        point
	unit          float64 // metres; the lengths are so many units
	radius        float64
	isBox         bool
	width, height float64
}

// has reports whether a place is inside.
func (s *region) has(p point) bool {
	if !s.isBox {
		return within(s.center, p, s.radius*s.unit)
	}
	return latitudeDistance(p.latitude, s.center.latitude) <= s.height*s.unit/2 &&
		within(p, point{s.center.longitude, p.latitude}, s.width*s.unit/2)
}
