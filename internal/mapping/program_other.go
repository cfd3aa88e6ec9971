//go:build !linux || portable

package mapping

// ForgetProgram does nothing: the system does so when it lacks memory.
func ForgetProgram() error { return nil }

// ProgramMemory returns 0: it is not known.
func ProgramMemory() (int64, error) { return 0, nil }
