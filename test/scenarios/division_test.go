package scenarios

import "time"

// While a cluster is divided, each side serves the partitions that it can reach, and clients of one
// side do not see the writes of the other. When it is whole again, one side's data is dropped where
// the sides differ. So until then clients accept any write of a key, and from then on they judge
// strictly again.

// unite lets the clients judge again: the next value that a key shows is its value.
func (s *scenario) unite() {
	s.T.Helper()
	s.Pause.Lock()
	defer s.Pause.Unlock()
	s.JudgeAbsences(time.Now()) // of before
	s.Mu.Lock()
	s.Absences = nil
	s.Mu.Unlock()
	for _, h := range s.Keys {
		h.Forget()
	}
	for _, c := range s.Collections {
		for _, h := range c.Elements {
			h.Forget()
		}
	}
	for _, p := range s.Probers {
		for _, h := range p.Keys {
			h.Forget()
		}
	}
	for _, h := range s.archive.keys {
		h.Forget()
	}
	s.Era.Add(1)
	s.Divided.Store(false)
}
