package lua

import (
	"errors"
	"strings"
	"testing"
)

// testLimits are enough for every ordinary test.
var testLimits = Limits{Steps: 50_000_000, Bytes: 64 << 20}

// run runs source with all libraries and returns what it printed, and the text of its error.
func run(t testing.TB, source string) string {
	t.Helper()
	return runLimited(t, source, testLimits)
}

func runLimited(t testing.TB, source string, limits Limits) string {
	t.Helper()
	var out strings.Builder
	s := newTestState()
	s.Print = func(line string) { out.WriteString(line + "\n") }
	s.Reset(limits)
	proto, err := Compile("@test", source)
	if err == nil {
		_, err = s.Call(s.Load(proto))
	}
	var failure *Error
	if errors.As(err, &failure) && failure.Cause == nil && failure.Value.IsNil() {
		out.WriteString("error: nil\n")
	} else if err != nil {
		out.WriteString("error: " + err.Error() + "\n")
	}
	return out.String()
}

func newTestState() *State {
	s := NewState()
	OpenString(s)
	OpenTable(s)
	OpenMath(s)
	OpenOS(s)
	OpenBit(s)
	OpenCJSON(s)
	OpenCMsgpack(s)
	OpenStruct(s)
	s.Seal()
	return s
}

// prints reports where what source prints is not want.
func prints(t *testing.T, source, want string) {
	t.Helper()
	if got := strings.TrimSuffix(run(t, source), "\n"); got != want {
		t.Errorf("%s\n prints %q\n want   %q", source, got, want)
	}
}
