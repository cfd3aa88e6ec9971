package harness

import (
	"bufio"
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

type sample struct {
	name  string // with its labels
	value float64
}

// Samples are the series of one scrape, in the order of the text.
type Samples []sample

var sampleLine = regexp.MustCompile(`^([a-zA-Z_:][a-zA-Z0-9_:]*(?:\{(?:[a-zA-Z_]\w*="(?:[^"\\]|\\.)*",?)*\})?) (\S+)$`)

// Scrape reads /metrics, which may take long on a busy machine. The test fails if a line breaks the text format, or a
// series appears twice.
func Scrape(t testing.TB, admin string) (all Samples) {
	t.Helper()
	body, err := getWithin(ReplyTimeout, admin, "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for lines := bufio.NewScanner(bytes.NewReader(body)); lines.Scan(); {
		line := lines.Text()
		if strings.HasPrefix(line, "# HELP ") || strings.HasPrefix(line, "# TYPE ") {
			continue
		}
		parts := sampleLine.FindStringSubmatch(line)
		if parts == nil || seen[parts[1]] {
			t.Fatalf("malformed or repeated series: %q", line)
		}
		seen[parts[1]] = true
		value, err := strconv.ParseFloat(parts[2], 64)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		all = append(all, sample{parts[1], value})
	}
	return all
}

// Figure reads /metrics of a member, and adds up the series whose names, with labels, begin with
// prefix. It looks at no other line, which under the race detector takes most of the time of a
// Scrape.
func (m *Member) Figure(prefix string) (total float64, err error) {
	body, err := getWithin(ReplyTimeout, m.Admin, "/metrics")
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(body) {
		if !bytes.HasPrefix(line, []byte(prefix)) {
			continue
		}
		fields := bytes.Fields(line)
		value, err := strconv.ParseFloat(string(fields[len(fields)-1]), 64)
		if err != nil {
			return 0, fmt.Errorf("%s: %q: %w", m.ID, line, err)
		}
		total += value
	}
	return total, nil
}

// Sum adds up the series whose names, with labels, begin with prefix. found reports whether there
// is any.
func (all Samples) Sum(prefix string) (total float64, found bool) {
	for _, s := range all {
		if strings.HasPrefix(s.name, prefix) {
			total, found = total+s.value, true
		}
	}
	return total, found
}
