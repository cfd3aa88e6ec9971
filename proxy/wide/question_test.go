package wide

import (
	"testing"

	"github.com/dunlin-cache/dunlin/internal/command"
)

// Every command that all nodes execute has a question, and so have the others that this test lists.
func TestEveryWideCommandHasAQuestion(t *testing.T) {
	for id := command.ID(1); id < command.NumIDs; id++ {
		c := command.ByID(id)
		if c != nil && c.Built && c.Route == command.AllNodes && questions[id] == nil {
			t.Errorf("%s has no question", c.Name)
		}
	}
	for id := range questions {
		if c := command.ByID(id); c == nil || !c.Built {
			t.Errorf("there is a question for command %d, which is not built", id)
		}
	}
}
