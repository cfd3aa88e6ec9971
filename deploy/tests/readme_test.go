package tests

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDocuments: files and objects that the documents name are there.
func TestDocuments(t *testing.T) {
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
	link := regexp.MustCompile(`\]\(([a-zA-Z/_.]+)\)|\b(deploy/[a-z/_.]+[a-z])`)
	object := regexp.MustCompile(`\b(?:statefulset|deployment|service)/[a-z-]+|-n [a-z-]+`)
	for _, document := range []string{"README.md", "RUNBOOK.md"} {
		text := string(readFile(t, filepath.Join("..", document)))
		found := link.FindAllStringSubmatch(text, -1)
		if len(found) == 0 {
			t.Errorf("%s names no file", document)
		}
		for _, l := range found {
			file := filepath.Join("..", l[1])
			if l[2] != "" {
				file = filepath.Join(top, l[2])
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s names %s: %v", document, l[1]+l[2], err)
			}
		}
		for _, name := range object.FindAllString(text, -1) {
			if !names[name] {
				t.Errorf("%s names %q, which no overlay has", document, name)
			}
		}
	}
}

// TestSecretsStay: who follows the documents twice keeps the secrets of the first time.
func TestSecretsStay(t *testing.T) {
	for _, file := range []string{"../README.md", "../kubernetes/secrets"} {
		if !strings.Contains(string(readFile(t, file)), "deploy/kubernetes/secrets | kubectl create -f -") {
			t.Errorf("%s does not have the secrets created: applied, they replace what members run with", file)
		}
	}
}
