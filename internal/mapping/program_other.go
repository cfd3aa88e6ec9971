//go:build !linux || portable

package mapping

// ForgetProgram does nothing: the system does so when it lacks memory.
func ForgetProgram() error { return nil }
