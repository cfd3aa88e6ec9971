package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math"
	"slices"
	"time"
)

// The picture has a panel of throughput and one of processor time, and in each a
// group of bars for every workload and a bar for every peer.
const (
	pictureWidth = 860
	labelWidth   = 120 // left of the first panel
	panelWidth   = 350
	panelGap     = 30
	figureWidth  = 70 // right of the longest bar
	barHeight    = 14
	headHeight   = 66 // height of the picture's head
	groupHead    = 22
	groupGap     = 10
	footHeight   = 36
)

// drawn lists the workloads of the picture.
var drawn = []string{"set1", "get1", "set16", "get16", "set64", "get64"}

// The colours are readable on the picture's own background, which is light or dark like the
// reader's page.
const pictureStyle = `
  .ground { fill: #ffffff } text { fill: #1f2328; font: 12px system-ui, sans-serif } .quiet { fill: #59636e } .strong { font-weight: 600 }
  .redis { fill: #c2584f } .memcached { fill: #7d8590 } .twemproxy { fill: #b58932 } .dunlin { fill: #2f6fbd } .part { opacity: 0.55 }
  @media (prefers-color-scheme: dark) {
    .ground { fill: #0d1117 } text { fill: #e6edf3 } .quiet { fill: #9198a1 }
    .redis { fill: #d9776e } .memcached { fill: #8b949e } .twemproxy { fill: #d0a63f } .dunlin { fill: #539bf5 }
  }
`

// bar is one peer's figure: the two parts are drawn one after the other.
type bar struct {
	first, second float64
	text          string
}

// panel is one half of the picture.
type panel struct {
	x      int
	title  string
	figure func([]*sample) bar
}

var panels = []panel{
	{labelWidth, "operations a second (k: thousands)", func(ok []*sample) bar {
		ops := medianOf(ok, func(x *sample) float64 { return x.ops })
		return bar{ops, 0, fmt.Sprintf("%.0f k", ops/1000)}
	}},
	{labelWidth + panelWidth + panelGap, "processor time per operation (faint: the proxy's)", func(ok []*sample) bar {
		node := medianOf(ok, func(x *sample) float64 { return x.cpu[roleNode] })
		proxy := medianOf(ok, func(x *sample) float64 { return x.cpu[roleProxy] })
		return bar{node, proxy, fmt.Sprintf("%.2f µs", node+proxy)}
	}},
}

// draw makes a picture of the results of the drawn workloads.
func (r *race) draw() []byte {
	var groups []group
	for _, w := range r.work {
		if slices.Contains(drawn, w.name) && r.measured(w) {
			g := r.groupOf(w)
			g.title = fmt.Sprintf("%s, pipeline %d", w.title, w.pipeline)
			groups = append(groups, g)
		}
	}
	return r.picture("Dunlin and its peers, 50 clients, values of 64 bytes; +3: a proxy before three nodes", groups)
}

// drawCurves makes a picture of the results of curves.
func (r *race) drawCurves(picked []curve) []byte {
	var groups []group
	for _, c := range picked {
		groups = append(groups, r.groupsOf(c)...)
	}
	return r.picture("What a GET of 64 bytes costs", groups)
}

func (r *race) picture(title string, groups []group) []byte {
	var body bytes.Buffer
	y := headHeight
	for _, g := range groups {
		y = drawGroup(&body, g, y)
	}
	height := y + footHeight
	var out bytes.Buffer
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="%s">`+"\n",
		pictureWidth, height, pictureWidth, height, title)
	fmt.Fprintf(&out, "<style>%s</style>\n<rect class=\"ground\" width=\"100%%\" height=\"100%%\"/>\n", pictureStyle)
	text(&out, 16, 26, "strong", title)
	for _, p := range panels {
		text(&out, p.x, 50, "quiet", p.title)
	}
	out.Write(body.Bytes())
	text(&out, 16, height-14, "quiet", fmt.Sprintf("Bars are to scale within a group; medians, rounds: %d. %s, %s.", r.rounds, r.machine, time.Now().UTC().Format(time.DateOnly)))
	out.WriteString("</svg>\n")
	return out.Bytes()
}

// drawGroup draws bars from y on, and returns where the next group begins.
func drawGroup(out *bytes.Buffer, g group, y int) int {
	text(out, 16, y+14, "strong", g.title)
	y += groupHead
	for i, x := range g.rows {
		class := ""
		if x.class == dunlin {
			class = "strong"
		}
		text(out, 16, y+i*barHeight+11, class, x.label)
	}
	for _, p := range panels {
		p.draw(out, g, y)
	}
	return y + len(g.rows)*barHeight + groupGap
}

func (p panel) draw(out *bytes.Buffer, g group, y int) {
	bars, longest := make([]bar, len(g.rows)), 0.0
	for i, x := range g.rows {
		bars[i] = bar{text: "not measured"}
		if len(x.samples) > 0 {
			bars[i] = p.figure(x.samples)
		}
		longest = max(longest, bars[i].first+bars[i].second)
	}
	scale := (panelWidth - figureWidth) / max(longest, math.SmallestNonzeroFloat64)
	for i, b := range bars {
		top, color := y+i*barHeight+1, g.rows[i].class
		first, second := b.first*scale, b.second*scale
		rect(out, float64(p.x), top, first, color)
		rect(out, float64(p.x)+first, top, second, color+" part")
		text(out, p.x+int(first+second)+6, top+10, "", b.text)
	}
}

// colorOf returns the class of a peer's bars: the first word of its name.
func colorOf(peer string) string {
	for i, c := range peer {
		if c < 'a' || c > 'z' {
			return peer[:i]
		}
	}
	return peer
}

func rect(out *bytes.Buffer, x float64, y int, width float64, class string) {
	if width > 0 {
		fmt.Fprintf(out, `<rect class="%s" x="%.1f" y="%d" width="%.1f" height="%d"/>`+"\n", class, x,
			y, width, barHeight-3)
	}
}

func text(out *bytes.Buffer, x, y int, class, words string) {
	fmt.Fprintf(out, `<text x="%d" y="%d" class="%s">`, x, y, class)
	_ = xml.EscapeText(out, []byte(words)) // a buffer has no errors
	out.WriteString("</text>\n")
}
