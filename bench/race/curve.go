package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
)

// curve shows how the cost of a command changes with one thing. Its peers run only while it is
// measured.
type curve struct {
	name, title string
	peers       []peer
	points      []point
}

// point is one point of a curve. Points of one series are shown together.
type point struct {
	series, label string
	peer          string
	work          workload
}

func (c curve) at(p point) cell { return cell{c.name + ": " + p.series, p.label} }

var curves = []curve{nodesCurve(), connectionsCurve(), loopsCurve(), hotCurve()}

func curveName(c curve) string { return c.name }

func get(clients, pipeline int) workload {
	return workload{title: "GET", clients: clients, pipeline: pipeline, gets: 1, data: small}
}

func nodesCurve() curve {
	c := curve{name: "nodes", title: "more nodes behind one proxy"}
	for _, n := range []int{3, 9, 27} {
		c.peers = append(c.peers, cluster(fmt.Sprintf("dunlin+%d", n), n, 1))
	}
	for _, pipeline := range []int{1, 16, 64} {
		for i, n := range []int{3, 9, 27} {
			c.points = append(c.points, point{fmt.Sprintf("pipeline %d", pipeline),
				fmt.Sprintf("%d nodes", n), c.peers[i].name, get(50, pipeline)})
		}
	}
	return c
}

func connectionsCurve() curve {
	c := curve{name: "connections", title: "more clients, all of them busy, pipeline 1",
		peers: []peer{peerNamed("redis"), peerNamed("dunlin-node"), peerNamed("dunlin+3")}}
	for _, p := range c.peers {
		for _, clients := range []int{50, 500, 2500, 10_000} {
			c.points = append(c.points, point{p.name, fmt.Sprintf("%d clients", clients), p.name, get(clients, 1)})
		}
	}
	return c
}

func loopsCurve() curve {
	c := curve{name: "loops", title: "more loops in the node, and in the proxy before three nodes with one each"}
	for _, pipeline := range []int{1, 16} {
		for _, kind := range []string{"node", "proxy"} {
			for _, loops := range []int{1, 2, 4} {
				name := fmt.Sprintf("dunlin-%s-%d", kind, loops)
				c.points = append(c.points, point{fmt.Sprintf("%s, pipeline %d", kind, pipeline),
					fmt.Sprintf("loops: %d", loops), name, get(50, pipeline)})
			}
		}
	}
	for _, loops := range []int{1, 2, 4} {
		c.peers = append(c.peers, single(fmt.Sprintf("dunlin-node-%d", loops), loops),
			cluster(fmt.Sprintf("dunlin-proxy-%d", loops), backends, loops))
	}
	return c
}

func hotCurve() curve {
	c := curve{name: "hot", title: "one key takes a share of the commands, pipeline 16",
		peers: []peer{single("dunlin-node-2", 2), peerNamed("dunlin+3")}}
	for i, series := range []string{"node with two loops", "proxy and three nodes"} {
		for _, percent := range []int{0, 10, 25, 50} {
			w := get(50, 16)
			w.hot = float64(percent) / 100
			c.points = append(c.points, point{series, fmt.Sprintf("%d %% hot", percent), c.peers[i].name, w})
		}
	}
	return c
}

func peerNamed(name string) peer {
	i := slices.IndexFunc(peers, func(p peer) bool { return p.name == name })
	return peers[i]
}

// runCurves measures curves one after the other: in each the points take turns, as peers do in a
// race.
func (r *race) runCurves(ctx context.Context, s *stable, picked []curve) (err error) {
	for _, c := range picked {
		bad := r.prepare(ctx, s, c.peers)
		if bad == nil {
			bad = r.runCurve(ctx, c)
		}
		for _, l := range r.live {
			l.end()
		}
		r.live = nil
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		err = errors.Join(err, bad) // the other curves do not depend on it
	}
	return err
}

func (r *race) runCurve(ctx context.Context, c curve) error {
	for round := range r.rounds {
		for i := range c.points {
			p := c.points[(i+round)%len(c.points)]
			at := slices.IndexFunc(r.live, func(l *live) bool { return l.name == p.peer })
			if at < 0 {
				continue // the peer was left out, and a note says so
			}
			fmt.Fprintf(r.say, "round %d of %d: %s, %s, %s\n", round+1, r.rounds, c.name, p.series, p.label)
			x, err := r.measure(ctx, p.work, r.live[at])
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err != nil {
				r.notef("%s, %s, %s failed in round %d: %v", c.name, p.series, p.label, round+1, err)
			}
			r.results[c.at(p)] = append(r.results[c.at(p)], x)
		}
	}
	return nil
}

// groupsOf returns the series of a curve that were measured.
func (r *race) groupsOf(c curve) (all []group) {
	for _, p := range c.points {
		ok := succeeded(r.results[c.at(p)])
		if len(ok) == 0 {
			continue
		}
		title := c.at(p).work
		if len(all) == 0 || all[len(all)-1].title != title {
			all = append(all, group{title: title})
		}
		g := &all[len(all)-1]
		g.rows = append(g.rows, row{label: p.label, class: colorOf(p.peer), samples: ok})
	}
	return all
}

// writeCurves prints everything that was measured.
func (r *race) writeCurves(w io.Writer, picked []curve) {
	limited := false
	r.writeLegend(w)
	for _, c := range picked {
		fmt.Fprintf(w, "\n%s\n", c.title)
		for _, g := range r.groupsOf(c) {
			limited = writeGroup(w, g) || limited
		}
	}
	r.writeNotes(w, limited)
}
