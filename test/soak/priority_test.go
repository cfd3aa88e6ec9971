package soak

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/test/harness"
)

// TestAttackLeavesTheProcessors: all threads of an attack have the lowest priority.
func TestAttackLeavesTheProcessors(t *testing.T) {
	a := attack{Behaviors: []string{"silent"}, Clients: 8, Proxies: []string{harness.FreeAddr(t)}, Nodes: []string{harness.FreeAddr(t)}}
	if behaviors[a.Behaviors[0]] == nil {
		t.Fatalf("there is no behavior %q", a.Behaviors[0])
	}
	pid, end := a.launch(t)
	defer end()
	why := ""
	harness.Eventually(t, harness.ReadyTimeout, "all threads have the lowest priority", func() bool {
		stats, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		for _, name := range stats {
			var text []byte
			if text, err = os.ReadFile(name); err != nil {
				break
			}
			_, rest, _ := strings.Cut(string(text), ") ") // behind the command
			if nice := strings.Fields(rest)[16]; nice != fmt.Sprint(lowestPriority) {
				why = fmt.Sprintf("%s has nice %s", name, nice)
				return false
			}
		}
		return err == nil && len(stats) > 2
	}, func() string { return why })
}
