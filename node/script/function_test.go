package script

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/lua"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

// libraryOf returns a compiled library with what it has registered.
func libraryOf(t testing.TB, m *Machine, name, body string) *FunctionLibrary {
	t.Helper()
	l, err := ParseLibrary("#!lua name=" + name + "\n" + body)
	if err == nil {
		err = l.Compile()
	}
	if err == nil {
		err = m.Register(l, &host{})
		m.End()
	}
	if err == nil { // as members have it
		l, err = DecodeLibrary(name, l.Encode())
	}
	if err == nil {
		err = l.Compile()
	}
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestEncodeLibrary: what was encoded is decoded, and nothing that is cut off or changed in its form.
func TestEncodeLibrary(t *testing.T) {
	m := NewMachine()
	l := libraryOf(t, m, "lib", `redis.register_function('b', function() end)
redis.register_function{function_name='A', description='', flags={'no-writes', 'allow-stale'}, callback=function() end}
redis.register_function{function_name='c', description='what', callback=function() end}`)
	value := l.Encode()
	got, err := DecodeLibrary("lib", value)
	if err != nil {
		t.Fatal(err)
	}
	shown := func(l *FunctionLibrary) (text string) {
		for _, f := range l.Functions {
			text += fmt.Sprintf("%s %q %t %v\n", f.Name, f.Description, f.Described, f.Flags.Names())
		}
		return text + l.Code
	}
	want := "A \"\" true [no-writes allow-stale]\nb \"\" false []\nc \"what\" true []\n" + l.Code
	if shown(l) != want || shown(got) != want || got.Name != "lib" {
		t.Errorf("decoded\n%s\nwant\n%s", shown(got), want)
	}
	head := strings.Index(value, "#!")
	for n := range head + 2 {
		if _, err := DecodeLibrary("lib", value[:n]); err == nil {
			t.Errorf("%d bytes are a library", n)
		}
	}
	for _, bad := range []string{"\x02" + value[1:], "\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", value[:1] + "\x04" + value[2:]} {
		if _, err := DecodeLibrary("lib", bad); err == nil {
			t.Errorf("%.20q is a library", bad)
		}
	}
	if _, err := DecodeLibrary("a b", value); err == nil {
		t.Error("a library has a name that none can have")
	}
}

// FuzzDecodeLibrary: no value makes a node fail, and one that is decoded is encoded as it was.
func FuzzDecodeLibrary(f *testing.F) {
	m := NewMachine()
	f.Add(libraryOf(f, m, "lib", "redis.register_function{function_name='f', description='d', callback=function() end}").Encode())
	f.Fuzz(func(t *testing.T, value string) {
		l, err := DecodeLibrary("lib", value)
		if err != nil {
			return
		}
		again, err := DecodeLibrary("lib", l.Encode())
		if err != nil || again.Encode() != l.Encode() {
			t.Errorf("%q is decoded otherwise: %v", value, err)
		}
	})
}

// TestJoin: names of libraries and functions are taken once.
func TestJoin(t *testing.T) {
	m := NewMachine()
	lib := func(name, function string) *FunctionLibrary {
		return libraryOf(t, m, name, "redis.register_function('"+function+"', function() end)")
	}
	var s *FunctionSet
	join := func(replace bool, want string, more ...*FunctionLibrary) {
		t.Helper()
		next, err := s.Join(more, replace)
		if got := fmt.Sprint(err); got != want {
			t.Errorf("Join says %s, want %s", got, want)
		}
		if err == nil {
			s = next
		}
	}
	const ok = "<nil>"
	join(false, ok, lib("a", "f"), lib("b", "g"))
	join(false, "ERR Library a already exists", lib("c", "h"), lib("a", "i"))
	join(true, "ERR Function G already exists", lib("a", "G"))
	join(true, "ERR Function h already exists", lib("c", "h"), lib("d", "h"))
	join(true, ok, lib("a", "g"), lib("b", "f")) // they change places
	if s.Function([]byte("G")) != s.Library("a").Functions[0] || s.Count() != 2 || s.Function([]byte("h")) != nil {
		t.Error("the functions are not those of the libraries")
	}
	if s.Function([]byte(strings.Repeat("f", 1000))) != nil || (*FunctionSet)(nil).Function(nil) != nil {
		t.Error("there are functions that there are not")
	}
}

// TestCallFunction: a function gets keys and arguments. Behind it the machine is as it was for scripts, also when it or
// its library ends with an error.
func TestCallFunction(t *testing.T) {
	m, h := NewMachine(), &host{}
	l := libraryOf(t, m, "lib", `local own = 1
redis.register_function('f', function(keys, args) own = own + 1 return {keys[1], args[1], own} end)
redis.register_function('g', function() return own.x.y end)`)
	reply := func() string {
		var all []byte
		if err := m.Reply(resp.RESP2, func(part []byte) bool { all = append(all, part...); return true }); err != nil {
			t.Fatal(err)
		}
		m.End()
		return string(all)
	}
	for range 3 {
		err := m.Run(Run{Script: l.Functions[0].Script(), Keys: [][]byte{[]byte("k")}, Args: [][]byte{[]byte("a")}, Host: h})
		if got := reply(); err != nil || got != "*3\r\n$1\r\nk\r\n$1\r\na\r\n:2\r\n" {
			t.Errorf("f answers %q, %v", got, err)
		}
		var thrown *Error
		err = m.Run(Run{Script: l.Functions[1].Script(), Host: h})
		if m.End(); !errors.As(err, &thrown) || !strings.HasSuffix(thrown.Text, " script: g, on @user_function:4.") {
			t.Errorf("g ends with %v", err)
		}
		mustRun(t, m, h, "return {#KEYS, type(redis.call), type(redis.register_function), type(rawget(_G, 'keys'))}")
		if got := reply(); got != "*4\r\n:0\r\n$8\r\nfunction\r\n$3\r\nnil\r\n$3\r\nnil\r\n" {
			t.Errorf("a script answers %q", got)
		}
	}
	h.end = errors.New("gone")
	bad, err := ParseLibrary("#!lua name=bad\nlocal n = 0 while true do n = n + 1 end")
	if err == nil {
		err = bad.Compile()
	}
	if err != nil {
		t.Fatal(err)
	}
	if err = m.Register(bad, h); !errors.Is(err, h.end) {
		t.Errorf("a library that the host ends ends with %v", err)
	}
	m.End()
	h.end = nil
	if m.library.callback != lua.Nil || m.library.found != nil {
		t.Error("the machine keeps something of a library")
	}
}

func BenchmarkMachine(b *testing.B) {
	m, h := NewMachine(), &host{}
	s, err := Compile("return redis.call('GET', KEYS[1])")
	if err != nil {
		b.Fatal(err)
	}
	small := libraryOf(b, m, "small", "redis.register_function('f', function(keys) return redis.call('GET', keys[1]) end)")
	big := "local function helper(x) return x end\n"
	for i := range 50 {
		big += fmt.Sprintf("redis.register_function('f%d', function(keys) return helper(redis.call('GET', keys[1])) end)\n", i)
	}
	keys := [][]byte{[]byte("key")}
	for name, s := range map[string]*Script{
		"Script": s, "Function": small.Functions[0].Script(), "Function/Of50": libraryOf(b, m, "big", big).Functions[0].Script(),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if err := m.Run(Run{Script: s, Keys: keys, Host: h}); err != nil {
					b.Fatal(err)
				}
				m.End()
			}
		})
	}
}
