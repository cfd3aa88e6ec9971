package test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/command"
)

// commandWord is a command's name in the table: those of options and subcommands stand there too.
var commandWord = regexp.MustCompile(`[A-Z][A-Z_]+`)

// TestDocumentedCommands: the table in docs/compatibility.md, and the paragraph below it about
// those that are refused, name each command that a proxy or node answers, and name no other.
func TestDocumentedCommands(t *testing.T) {
	documented := map[string]bool{}
	rows, below := table(t, "../docs/compatibility.md", "## Commands")
	refused, _, _ := strings.Cut(strings.TrimSpace(below), "\n\n")
	for _, text := range append(rows, []string{"", strings.Join(documentCode.FindAllString(refused, -1), " ")}) {
		for _, name := range commandWord.FindAllString(text[1], -1) {
			documented[name] = true
		}
	}
	known := map[string]bool{}
	for _, c := range command.All() {
		name := strings.ToUpper(c.Name)
		known[name] = true
		if c.Built && !documented[name] {
			t.Errorf("docs/compatibility.md does not name %s, which is built", name)
		}
		if !c.Built && documented[name] {
			t.Errorf("docs/compatibility.md names %s, which is not built", name)
		}
		for _, sub := range c.Subs {
			_, word, _ := strings.Cut(sub.Name, "|")
			known[strings.ToUpper(word)] = true
		}
	}
	for name := range documented {
		if !known[name] && !slices.Contains(optionWords, name) {
			t.Errorf("docs/compatibility.md names %s, which is no command", name)
		}
	}
}

// optionWords are the options that the table names.
var optionWords = []string{
	"IFEQ", "IFNE", "IFDEQ", "IFDNE", "BY", "KEEPREF", "DELREF", "ACKED", "CLAIM",
	"SLEEP", // of DEBUG, which has no rows for its subcommands
}

// table returns the cells of the first table below a heading, without its head, and the text below it.
func table(t *testing.T, path, heading string) (rows [][]string, below string) {
	text, err := os.ReadFile(filepath.FromSlash(path))
	if err != nil {
		t.Fatal(err)
	}
	_, below, found := strings.Cut("\n"+string(text), "\n"+heading+"\n\n")
	if !found {
		t.Fatalf("%s has no table below %s", path, heading)
	}
	for strings.HasPrefix(below, "|") {
		var line string
		line, below, _ = strings.Cut(below, "\n")
		rows = append(rows, strings.Split(strings.Trim(line, "| "), "|"))
	}
	if len(rows) < 3 {
		t.Fatalf("%s has no table below %s", path, heading)
	}
	return rows[2:], below
}
