package test

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	// documentLink is a link or an image, in Markdown or HTML.
	documentLink = regexp.MustCompile(`(?:\]\(|(?:src|srcset|href)=")([^)"\s]+)[)"]`)
	// documentCode is a fenced block or a span in backticks. Prose uses the word "make", too.
	documentCode = regexp.MustCompile("(?s)```.*?```|`[^`\n]+`")
	makeTarget   = regexp.MustCompile(`\bmake ([a-z][a-z-]*)`)
	// sourcePath is a path from the top of the repository, in backticks or in a command.
	sourcePath = regexp.MustCompile(`(?:^|[\s` + "`" + `(])(?:\./)?((?:bench|cmd|deploy|docs|internal|metrics|node|proxy|ring|test)/[\w./-]*\w)`)
	// testName is a Go test, benchmark or fuzz target.
	testName = regexp.MustCompile(`\b(?:Test|Benchmark|Fuzz)[A-Z]\w+`)
	// testDeclaration is where a test, benchmark or fuzz target begins.
	testDeclaration = regexp.MustCompile(`(?m)^func ((?:Test|Benchmark|Fuzz)[A-Z]\w+)\(`)
	ruleTargets     = regexp.MustCompile(`(?m)^([a-z][a-z-]*):`)
	heading         = regexp.MustCompile(`(?m)^#+ (.+)$`)
	notInAnchor     = regexp.MustCompile(`[^\w\- ]`)
)

// TestDocuments checks that what the documents name exists: files behind links, sections behind
// anchors, paths in the tree, targets of make, and tests. Links to other sites are not followed.
func TestDocuments(t *testing.T) {
	tree := readTree(t)
	if len(tree.documents) == 0 || len(tree.tests) == 0 || len(tree.targets) == 0 {
		t.Fatalf("found %d documents, %d tests and %d targets of make: none may be 0",
			len(tree.documents), len(tree.tests), len(tree.targets))
	}
	for name, text := range tree.documents {
		for _, m := range documentLink.FindAllStringSubmatch(text, -1) {
			if problem := tree.followLink(name, m[1]); problem != "" {
				t.Errorf("%s links to %s: %s", name, m[1], problem)
			}
		}
		code := strings.Join(documentCode.FindAllString(text, -1), "\n")
		for _, m := range makeTarget.FindAllStringSubmatch(code, -1) {
			if !tree.targets[m[1]] {
				t.Errorf("%s says `make %s`: the Makefile has no such target", name, m[1])
			}
		}
		for _, m := range sourcePath.FindAllStringSubmatch(text, -1) {
			if !tree.has(m[1]) {
				t.Errorf("%s names %s, which does not exist", name, m[1])
			}
		}
		for _, test := range testName.FindAllString(text, -1) {
			if len(tree.tests[test]) == 0 {
				t.Errorf("%s names %s, which does not exist", name, test)
			}
		}
	}
}

// sourceTree is what documents can name. Its paths have slashes and begin at the top of the
// repository.
type sourceTree struct {
	documents map[string]string   // texts by path
	tests     map[string][]string // the folders of tests, benchmarks and fuzz targets, by name
	targets   map[string]bool     // of the Makefile
}

// readTree reads the documents, the names of all tests, and the targets of make.
func readTree(t *testing.T) *sourceTree {
	t.Helper()
	tree := &sourceTree{documents: map[string]string{}, tests: map[string][]string{}, targets: map[string]bool{}}
	err := filepath.WalkDir("..", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() {
			if name == "bin" || name == "node_modules" || name == "target" ||
				file != ".." && strings.HasPrefix(name, ".") {
				return fs.SkipDir // not part of the repository
			}
			return nil
		}
		isDocument := strings.HasSuffix(file, ".md")
		if !isDocument && !strings.HasSuffix(file, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if isDocument {
			tree.documents[strings.TrimPrefix(filepath.ToSlash(file), "../")] = string(text)
			return nil
		}
		for _, m := range testDeclaration.FindAllSubmatch(text, -1) {
			name := string(m[1])
			tree.tests[name] = append(tree.tests[name], strings.TrimPrefix(filepath.ToSlash(filepath.Dir(file)), "../"))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range ruleTargets.FindAllSubmatch(makefile, -1) {
		tree.targets[string(m[1])] = true
	}
	return tree
}

// has reports whether a path exists.
func (s *sourceTree) has(name string) bool {
	_, err := os.Stat(filepath.Join("..", filepath.FromSlash(name)))
	return err == nil
}

// followLink returns what is wrong with a link in a document, or "".
func (s *sourceTree) followLink(document, link string) (problem string) {
	if strings.Contains(link, "://") || strings.HasPrefix(link, "mailto:") {
		return ""
	}
	file, anchor, _ := strings.Cut(link, "#")
	target := document
	if file != "" {
		target = path.Join(path.Dir(document), file)
	}
	if !s.has(target) {
		return "the file does not exist"
	}
	if anchor == "" || hasSection(s.documents[target], anchor) {
		return ""
	}
	return "no heading has this anchor"
}

// hasSection reports whether a document has a heading with this anchor, as GitHub forms anchors.
func hasSection(text, anchor string) bool {
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		words := notInAnchor.ReplaceAllString(strings.ToLower(m[1]), "")
		if strings.ReplaceAll(words, " ", "-") == anchor {
			return true
		}
	}
	return false
}

// TestHasSection checks the form of anchors.
func TestHasSection(t *testing.T) {
	text := "# Dunlin\n\n## Lock order\n\n### What `RETRY` forgets, and why\n"
	f := func(anchor string, want bool) {
		t.Helper()
		if got := hasSection(text, anchor); got != want {
			t.Errorf("anchor %q: %v, want %v", anchor, got, want)
		}
	}
	f("dunlin", true)
	f("lock-order", true)
	f("what-retry-forgets-and-why", true)
	f("Lock order", false)
	f("order", false)
}
