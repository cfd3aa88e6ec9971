package measure

import (
	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/figures"
)

// Latencies has the times of commands by command.Family.
type Latencies [command.NumFamilies]figures.Durations

// AddTimes adds the times of a loop's commands. Commands for which always reports true, because
// every call is timed, count as FamilyHeavy whatever their own family is: beside commands of which
// only samples are timed, they would seem more frequent than they are.
func (l *Latencies) AddTimes(times *[command.NumIDs]*figures.Durations, always func(id command.ID) bool) {
	for id, d := range times {
		if d == nil {
			continue
		}
		family := command.FamilyHeavy
		if !always(command.ID(id)) {
			family = command.ByID(command.ID(id)).Family()
		}
		l[family].Add(d)
	}
}

// Add adds the times of o.
func (l *Latencies) Add(o *Latencies) {
	for i := range l {
		l[i].Add(&o[i])
	}
}
