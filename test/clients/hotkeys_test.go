package clients

import (
	"strings"
	"testing"

	redigo "github.com/gomodule/redigo/redis"

	"github.com/dunlin-cache/dunlin/test/harness"
)

// TestHotKeysOfTheCluster checks that a proxy lists the hottest and the largest keys of all nodes.
func TestHotKeysOfTheCluster(t *testing.T) {
	t.Parallel()
	c := harness.StartCluster(t, 3, 1)
	s := dialExporter(t, c.Proxy(0).Addr)
	s.do("SET", "large", strings.Repeat("x", 30_000))
	for _, key := range []string{"a", "b", "c", "d", "e", "f"} {
		s.do("SET", key, "v")
	}
	harness.Eventually(t, harness.ReadyTimeout, "the hot keys are known", func() bool {
		for range 1000 {
			s.do("GET", "a")
			s.do("GET", "b")
		}
		found := s.keyFigures("GET", "qps")
		return found["a"] > 0 && found["b"] > 0
	})
	if found := s.keyFigures("GET", "qps"); found["large"] != 0 || found["f"] != 0 {
		t.Errorf("%v are hot, and were used once", found)
	}
	harness.Eventually(t, harness.ReadyTimeout, "the large key is known", func() bool {
		return s.keyFigures("BIG", "bytes")["large"] == 30_000+int64(len("large"))
	})
	s.do("HOTKEYS", "RESET")
	harness.Eventually(t, harness.ReadyTimeout, "the hot keys are forgotten", func() bool { return len(s.keyFigures("GET", "qps")) == 0 })
}

// keyFigures returns the reply to HOTKEYS GET or HOTKEYS BIG.
func (s exporter) keyFigures(subcommand, figure string) map[string]int64 {
	s.t.Helper()
	list, err := redigo.Values(s.do("HOTKEYS", subcommand), nil)
	if err != nil {
		s.t.Fatalf("HOTKEYS %s: %v", subcommand, err)
	}
	found := map[string]int64{}
	for _, each := range list {
		fields, err := redigo.Values(each, nil)
		if err != nil || len(fields) != 6 {
			s.t.Fatalf("HOTKEYS %s has %v, %v", subcommand, each, err)
		}
		key, _ := redigo.String(fields[1], nil)
		name, _ := redigo.String(fields[4], nil)
		if name != figure {
			s.t.Errorf("HOTKEYS %s tells %q of a key, want %q", subcommand, name, figure)
		}
		found[key], _ = redigo.Int64(fields[5], nil)
	}
	return found
}
