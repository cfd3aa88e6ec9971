package node

import (
	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/figures"
)

// latencies has the times of commands by command.Family.
type latencies [command.NumFamilies]figures.Durations

// addTimes adds a worker's. The heavy commands are a family of their own whatever
// else they are, since all of them are timed: beside commands of which a few are,
// they would seem to be more than they are.
func (l *latencies) addTimes(times *[command.NumIDs]*figures.Durations) {
	for id, d := range times {
		if d == nil {
			continue
		}
		family := command.FamilyHeavy
		if !plans[id].timed {
			family = command.ByID(command.ID(id)).Family()
		}
		l[family].Add(d)
	}
}

func (l *latencies) add(o *latencies) {
	for i := range l {
		l[i].Add(&o[i])
	}
}
