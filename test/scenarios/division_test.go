package scenarios

import "time"

// While a cluster is divided, both sides serve what they can reach, and clients of one
// side do not see what those of the other write. When it is whole again one side's
// data is dropped where they differ. So until then any write of a key may show; from
// then on the clients judge as strictly as ever.

// unite has the clients judge again: what each key shows next is what it holds.
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
