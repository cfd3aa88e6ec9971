package exporter

import (
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/figures"
)

// latency is a distribution of durations for each family of commands.
type latency[S any] struct {
	name string
	help string
	get  func(*S) *[command.NumFamilies]figures.Durations
}

// bounds are the upper bounds of the classic buckets, in nanoseconds: powers of two minus one, at
// which buckets of figures.Durations end, so that every count is exact. They double from a quarter
// of a microsecond (a GET in a node) to 16 ms, and then quadruple to 17 s.
var bounds = func() (all []time.Duration) {
	for e := 8; e <= 34; {
		all = append(all, 1<<e-1)
		if e++; e > 25 {
			e++
		}
	}
	return all
}()

// nativeSchema has four buckets for each doubling, as figures.Durations has, but with other bounds:
// a bucket of figures.Durations counts in the native bucket that contains its longest time.
const nativeSchema = 2

// dual is one histogram in two forms: native buckets in Prometheus's binary format only, classic
// ones in both formats.
type dual struct{ classic, native prometheus.Metric }

func (d dual) Desc() *prometheus.Desc { return d.native.Desc() }

// Write is called by the registry.
func (d dual) Write(out *dto.Metric) error {
	var classic dto.Metric
	if err := d.classic.Write(&classic); err != nil {
		return err
	}
	if err := d.native.Write(out); err != nil {
		return err
	}
	out.Histogram.Bucket = classic.Histogram.Bucket
	return nil
}

// newDual returns the histogram of d; since is when counting began.
func newDual(desc *prometheus.Desc, d *figures.Durations, since time.Time, label string) prometheus.Metric {
	upTo := make(map[float64]uint64, len(bounds))
	native := make(map[int]int64)
	seen, next := uint64(0), 0
	d.Each(func(longest time.Duration, n int64) {
		for ; next < len(bounds) && bounds[next] < longest; next++ {
			upTo[bounds[next].Seconds()] = seen
		}
		seen += uint64(n)
		native[int(math.Ceil(math.Log2(longest.Seconds())*(1<<nativeSchema)))] += n
	})
	for ; next < len(bounds); next++ {
		upTo[bounds[next].Seconds()] = seen
	}
	sum := d.Sum().Seconds()
	return dual{
		prometheus.MustNewConstHistogram(desc, seen, sum, upTo, label),
		prometheus.MustNewConstNativeHistogram(desc, seen, sum, native, nil, 0, nativeSchema, 0, since, label),
	}
}
