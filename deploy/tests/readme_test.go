package tests

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDocumentsNameObjects checks that the overlays have each object and namespace that the
// documents name. test/documents_test.go checks the files that they name.
func TestDocumentsNameObjects(t *testing.T) {
	names := map[string]bool{}
	for _, overlay := range clusters {
		m := load(t, overlay)
		for _, w := range m.workloads {
			names[strings.ToLower(w.kind)+"/"+w.name] = true
		}
		for _, s := range m.services {
			names["service/"+s.Name] = true
		}
		for _, n := range m.namespaces {
			names["-n "+n.Name] = true
		}
	}
	object := regexp.MustCompile(`\b(?:statefulset|deployment|service)/[a-z-]+|-n [a-z-]+`)
	for _, document := range []string{"README.md", "RUNBOOK.md"} {
		text := string(readFile(t, filepath.Join("..", document)))
		found := object.FindAllString(text, -1)
		if len(found) == 0 {
			t.Errorf("%s names no object of Kubernetes", document)
		}
		for _, name := range found {
			if !names[name] {
				t.Errorf("%s names %q, which no overlay has", document, name)
			}
		}
	}
}

// TestSecretsStay checks that a second run of the documents' commands keeps the secrets of the
// first.
func TestSecretsStay(t *testing.T) {
	for _, file := range []string{"../README.md", "../kubernetes/secrets"} {
		if !strings.Contains(string(readFile(t, file)), "deploy/kubernetes/secrets | kubectl create -f -") {
			t.Errorf("%s does not have the secrets created: applied, they replace what members run with", file)
		}
	}
}
