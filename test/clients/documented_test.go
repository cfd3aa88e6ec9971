package clients

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// ofLibrary is what the name of a row adds to that of its library.
var ofLibrary = regexp.MustCompile(`('s)? (streams|Lock|asyncio|Sentinel|without a tag|cache)$`)

// TestDocumentedPrograms: docs/compatibility.md has the versions that VERSIONS.md, which a run writes, has, and says of
// each application that needs a flag or a pinned database that it does. Each program has a row in VERSIONS.md.
func TestDocumentedPrograms(t *testing.T) {
	versions := readText(t, "VERSIONS.md")
	documented := readText(t, "../../docs/compatibility.md")
	_, table, _ := strings.Cut(documented, "\n## Applications\n")
	for _, p := range slices.Concat(programs, applications) {
		row := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(p.name) + ` \| (.*?) \|`).FindStringSubmatch(versions)
		if row == nil {
			t.Errorf("VERSIONS.md has no row for %s: run `make matrix`", p.name)
			continue
		}
		numbers := strings.Split(row[1], ", ")
		for i, name := range strings.Split(p.name, ", ") {
			name = ofLibrary.ReplaceAllString(name, "")
			number := regexp.MustCompile(`^\d+\.\d+`).FindString(strings.TrimPrefix(numbers[min(i, len(numbers)-1)], "v"))
			if !regexp.MustCompile(regexp.QuoteMeta(name) + `[^|\n]*? ` + regexp.QuoteMeta(number) + `\b`).MatchString(documented) {
				t.Errorf("docs/compatibility.md does not name %s %s", name, number)
			}
		}
		if !slices.ContainsFunc(applications, func(a program) bool { return a.name == p.name }) {
			continue
		}
		needs := "" // of its libraries together
		for name := range strings.SplitSeq(p.name, ", ") {
			library := regexp.QuoteMeta(ofLibrary.ReplaceAllString(name, ""))
			line := regexp.MustCompile(`(?m)^\| [^|]*` + library + `[^|]*\|[^|]*\|([^|]*)\|`).FindStringSubmatch(table)
			if line == nil {
				t.Errorf("docs/compatibility.md has no row for %s", name)
				continue
			}
			needs += line[1]
		}
		if pinned[p.name] != "" && !strings.Contains(needs, "pinned database") {
			t.Errorf("%s runs in a pinned database; docs/compatibility.md says that it needs%s", p.name, needs)
		}
		if slices.Contains(severalSlots, p.name) && !strings.Contains(needs, "relaxed`") {
			t.Errorf("%s runs with --multi relaxed; docs/compatibility.md says that it needs%s", p.name, needs)
		}
	}
}

func readText(t *testing.T, path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
