package wide

import (
	"testing"

	"github.com/dunlin-cache/dunlin/internal/command"
)

// Every command that all nodes execute has a question, but for WAIT, which Copies asks for many clients.
func TestEveryWideCommandHasAQuestion(t *testing.T) {
	for id := command.ID(1); id < command.NumIDs; id++ {
		c := command.ByID(id)
		if c == nil || !c.Built || c.Route != command.AllNodes {
			continue
		}
		if has := questions[id] != nil; has == (id == command.Wait) {
			t.Errorf("%s has a question: %v", c.Name, has)
		}
	}
	for id := range questions {
		if c := command.ByID(id); c == nil || !c.Built {
			t.Errorf("there is a question for command %d, which is not built", id)
		}
	}
}
