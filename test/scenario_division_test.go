package test

import "time"

// While a cluster is divided, both sides serve what they can reach, and clients of one
// side do not see what those of the other write. When it is whole again one side's
// data is dropped where they differ. So until then any write of a key may show; from
// then on the clients judge as strictly as ever.

// unite has the clients judge again: what each key shows next is what it holds.
func (s *scenario) unite() {
	s.t.Helper()
	s.pause.Lock()
	defer s.pause.Unlock()
	s.judgeAbsences(time.Now()) // of before
	s.mu.Lock()
	s.absences = nil
	s.mu.Unlock()
	for _, h := range s.keys {
		h.forget()
	}
	for _, p := range s.probers {
		for _, h := range p.keys {
			h.forget()
		}
	}
	for _, h := range s.archive.keys {
		h.forget()
	}
	s.era.Add(1)
	s.divided.Store(false)
}
