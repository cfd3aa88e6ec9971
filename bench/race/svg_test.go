package main

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestDraw(t *testing.T) {
	r, _ := testRace(t, "redis", "dunlin+3", "twemproxy+3")
	r.machine = "a <fast> machine"
	r.results[cell{"set1", "redis"}] = []*sample{{ops: 2000, cpu: [roles]float64{4}}, nil}
	r.results[cell{"set1", "dunlin+3"}] = []*sample{{ops: 4000, cpu: [roles]float64{1, 1}}}
	r.results[cell{"mget16", "redis"}] = []*sample{{ops: 1}} // not in the picture
	picture := string(r.draw())
	for d := xml.NewDecoder(strings.NewReader(picture)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("the picture is not XML: %v", err)
		}
	}
	for _, want := range []string{
		// Bars of half the width and of the full width.
		`class="redis" x="120.0" y="89" width="140.0"`, `class="dunlin" x="120.0" y="103" width="280.0"`,
		`class="redis" x="500.0" y="89" width="280.0"`, `class="dunlin" x="500.0" y="103" width="70.0"`,
		`class="dunlin part" x="570.0" y="103" width="70.0"`,
		">2 k<", ">4.00 µs<", ">2.00 µs<", ">SET, pipeline 1<", ">not measured<", "a &lt;fast&gt; machine", "prefers-color-scheme: dark",
	} {
		if !strings.Contains(picture, want) {
			t.Errorf("the picture has no %s:\n%s", want, picture)
		}
	}
	if n := strings.Count(picture, "<rect"); n != 6 {
		t.Errorf("the picture has %d rectangles: want the ground and 5 bars", n)
	}
}
