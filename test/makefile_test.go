package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// makefileList is a variable of the Makefile that lists tests: `NAME = ^TestPrefix(One|Two)$$`, or one test alone.
var makefileList = regexp.MustCompile(`(?m)^([A-Z_]+) *= \^(Test\w*)(?:\(([\w|]+)\))?\$\$$`)

// TestListsOfTheMakefile: each test that a list of the Makefile names exists. No package but node and proxy, which run
// those of SLOW_RACED without the race detector, has one of the same name: it would run nowhere. `clusters` leaves those
// of RACED_CLUSTERS to the race detector, so that none of these may be shorter under it, or skip itself.
func TestListsOfTheMakefile(t *testing.T) {
	text, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	tests, lists := readTree(t).tests, map[string][]string{}
	for _, m := range makefileList.FindAllStringSubmatch(string(text), -1) {
		for _, rest := range strings.Split(m[3], "|") {
			lists[m[1]] = append(lists[m[1]], m[2]+rest)
			if len(tests[m[2]+rest]) == 0 {
				t.Errorf("%s of the Makefile names %s, which does not exist", m[1], m[2]+rest)
			}
		}
	}
	for _, name := range []string{"SLOW_RACED", "RACED_CLUSTERS", "RACED_FAULTS", "LATER_LAWS", "LATER_SCENARIOS", "LATER_UPGRADES"} {
		if len(lists[name]) == 0 {
			t.Errorf("the Makefile has no list %s", name)
		}
	}
	for _, name := range lists["SLOW_RACED"] {
		for _, dir := range tests[name] {
			if dir != "node" && dir != "proxy" {
				t.Errorf("SLOW_RACED names %s, which %s has as well", name, dir)
			}
		}
	}
	files, err := filepath.Glob("cluster/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("awk", slices.Concat([]string{"-f", "unraced.awk"}, files, []string{"again=1"}, files)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range regexp.MustCompile(`\w+`).FindAllString(string(out), -1) {
		if slices.Contains(lists["RACED_CLUSTERS"], name) {
			t.Errorf("RACED_CLUSTERS names %s, which is shorter under the race detector, or skips itself", name)
		}
	}
}
