package lua

import (
	"errors"
	"strings"
	"testing"
)

func TestHostFunctions(t *testing.T) {
	s := newTestState()
	lib := s.Library("host")
	s.Register(lib, map[string]HostFunction{
		"join": func(c *Call) { c.PushString(c.CheckString(1) + c.OptString(2, "-")) },
		"map": func(c *Call) {
			for i := 2; i <= c.Len(); i++ {
				c.Push(c.Call(c.CheckFunction(1), c.Arg(i)))
			}
		},
		"fail":  func(c *Call) { c.Errorf("no %d", c.CheckInt(1)) },
		"throw": func(c *Call) { c.Throw(TableValue(c.CheckTable(1))) },
		"big":   func(c *Call) { c.Charge(1 << 40) },
	})
	lib.SetString("next", s.Function(func(c *Call) {
		n, _ := c.Captured(0).AsNumber()
		c.SetCaptured(0, Number(n+1))
		c.PushNumber(n)
	}, Number(5)))
	s.Seal()
	for _, test := range []struct{ source, want string }{
		{`return host.join(1), host.join("a", "b")`, "1- ab"},
		{`return host.map(function(x) return x * 2 end, 1, 2, 3)`, "2 4 6"},
		{`return pcall(host.fail, 3)`, "false no 3"},
		{`local ok, e = pcall(function() host.fail(3) end) return e`, "test:1: no 3"},
		{`local ok, e = pcall(host.throw, {"x"}) return e[1]`, "x"},
		{`return host.next(), host.next()`, "5 6"},
		{`host.join()`, "test:1: bad argument #1 to 'join' (string expected, got no value)"},
		{`host.map(1)`, ""},
		{`host.map(1, 2)`, "test:1: bad argument #1 to 'map' (function expected, got number)"},
		{`host:join({})`, "test:1: calling 'join' on bad self (string expected, got table)"},
		{`pcall(host.big)`, ErrMemory.Error()},
	} {
		s.Reset(testLimits)
		results, err := s.Call(s.Load(mustCompile(t, test.source)))
		var got []string
		for _, v := range results {
			if v.Kind() == KindBool {
				got = append(got, map[bool]string{true: "true", false: "false"}[v.Truthy()])
				continue
			}
			text, _ := v.ToString()
			got = append(got, text)
		}
		text := strings.Join(got, " ")
		if err != nil {
			text = err.Error()
		}
		if text != test.want {
			t.Errorf("%s\n returns %q\n want    %q", test.source, text, test.want)
		}
	}
}

func TestReadOnly(t *testing.T) {
	s := newTestState()
	s.Globals.SetReadOnly(true)
	s.Seal()
	const refusal = "Attempt to modify a readonly table"
	for source, want := range map[string]string{
		`x = 1`:                            "test:1: " + refusal,
		`_G.x = 1`:                         "test:1: " + refusal,
		`print = nil`:                      "test:1: " + refusal,
		`rawset(_G, "x", 1)`:               refusal,
		`setmetatable(_G, {})`:             refusal,
		`_G[1] = 2`:                        "test:1: " + refusal,
		`local t = {} setfenv(1, t) y = 1`: "",
	} {
		s.Reset(testLimits)
		_, err := s.Call(s.Load(mustCompile(t, source)))
		if got := errorText(err); got != want {
			t.Errorf("%s: %q, want %q", source, got, want)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestNumbers(t *testing.T) {
	for text, want := range map[string]string{
		"0": "0", "-0": "-0", "1e2": "100", "2e2": "200", " 12 ": "12", "0x1F": "31", "1e15": "1e+15", "123456789012345": "1.2345678901234e+14",
		"0.1": "0.1", "1e-5": "1e-05", "1e300": "1e+300", "99999999999999": "99999999999999", "100000000000000": "1e+14",
		"3.14159265358979": "3.1415926535898", "inf": "inf", "-inf": "-inf", "5e-324": "4.9406564584125e-324", "1.": "1", ".5": "0.5",
	} {
		n, ok := ParseNumber(text)
		if got := FormatNumber(n); !ok || got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
	for _, text := range []string{"", " ", "x", "1x", "0x", "1e", "--1", "1 1", ".", "+", "e5", "0xg", "1..2"} {
		if n, ok := ParseNumber(text); ok {
			t.Errorf("%q is %v", text, n)
		}
	}
}

// TestHost: the host gives a script more bytes, knows where it failed, and decides what pcall returns.
func TestHost(t *testing.T) {
	s := newTestState()
	given := 0
	s.More = func(need int) int {
		if given+need > 8<<20 {
			return 0
		}
		given += need
		return need
	}
	s.Caught = func(v Value) Value {
		text, _ := v.ToString()
		return String("caught " + text)
	}
	call := func(source string) (Value, *Error) {
		t.Helper()
		s.Reset(Limits{Steps: 50_000_000, Bytes: 64 << 10})
		proto, err := Compile("@test", source)
		if err != nil {
			t.Fatal(err)
		}
		results, err := s.Call(s.Load(proto))
		if err != nil {
			var failure *Error
			if !errors.As(err, &failure) {
				t.Fatal(err)
			}
			return Nil, failure
		}
		return results[0], nil
	}
	if v, failure := call("return #string.rep('x', 5e6)"); failure != nil || v != Number(5e6) || given < 4<<20 {
		t.Errorf("with more bytes: %v, %v, %d given", v, failure, given)
	}
	if _, failure := call("return #string.rep('x', 5e7)"); failure == nil || !errors.Is(failure, ErrMemory) {
		t.Errorf("beyond all bytes: %v", failure)
	}
	if v, failure := call("local ok, e = pcall(error, 'x') return e"); failure != nil || v.str() != "caught x" {
		t.Errorf("pcall returns %v, %v", v, failure)
	}
	_, failure := call("local function f()\nerror({})\nend\nf()")
	if failure == nil || failure.Chunk != "@test" || failure.Line != 2 {
		t.Errorf("failed at %+v", failure)
	}
}
