package lua

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// What libraries do within a call is within the budgets, too.
func TestBudgetsOfRedisLibraries(t *testing.T) {
	const nested = `local t = {} for i = 1, 30 do t = {t, t} end `
	for source, want := range map[string]error{
		`while true do bit.bor(1, 2, 3) end`: ErrSteps,

		nested + `cjson.encode(t)`: ErrMemory,
		`local t = {} for i = 1, 1000 do t[i] = i end while true do cjson.encode(t) end`:      ErrSteps,
		`cjson.encode_sparse_array(false, 0) cjson.encode({[2^31 - 1] = 1})`:                  ErrMemory,
		`local s = ("\1"):rep(2^16) while true do cjson.encode(s) end`:                        ErrSteps,
		`local t = {} for i = 1, 2^15 do t[i] = "\1\1\1\1\1\1\1\1\1\1\1" end cjson.encode(t)`: ErrMemory,
		`local t = {[2^20] = 1} for i = 1, 2^13 do t["k" .. i] = 1 end
			for k in pairs(t) do t[k] = nil end while true do cjson.encode(t) end`: ErrSteps,

		`local s = "[" .. ("[],"):rep(2^18) .. "1]" cjson.decode(s)`:                                         ErrMemory,
		`local s = "[" .. ("1,"):rep(2^20) .. "1]" cjson.decode(s)`:                                          ErrMemory,
		`local s = '"' .. ("\\u0041"):rep(2^16) .. '"' while true do cjson.decode(s) end`:                    ErrSteps,
		`local s = '"' .. ("\\n"):rep(2^17) while true do pcall(cjson.decode, s) end`:                        ErrSteps,
		`local s = '"' .. ("x"):rep(2^20) while true do pcall(cjson.decode, s) end`:                          ErrSteps,
		`local s = (" "):rep(2^20) while true do pcall(cjson.decode, s) end`:                                 ErrSteps,
		`local s = ("1"):rep(2^20) while true do pcall(cjson.decode, s) end`:                                 ErrSteps,
		`while true do pcall(cjson.decode, "[") end`:                                                         ErrSteps,
		`local t = {} while true do t[#t + 1] = cjson.new() end`:                                             ErrMemory,
		`local t, s = {}, '["' .. ("\\u0041"):rep(50) .. '"]' while true do t[#t + 1] = cjson.decode(s) end`: ErrMemory,

		`local t = {} for i = 1, 15 do t = {t, t, t, t} end cmsgpack.pack(t)`:                 ErrMemory,
		`local s = ("x"):rep(2^16) while true do cmsgpack.pack(s) end`:                        ErrSteps,
		`local s = "\221\0\255\255\255" .. ("\1"):rep(2^20) cmsgpack.unpack(s)`:               ErrMemory,
		`local s = "\221\0\15\255\255" .. ("\144"):rep(2^20) cmsgpack.unpack(s)`:              ErrMemory,
		`while true do pcall(cmsgpack.unpack, "\221\255\255\255\255") end`:                    ErrSteps,
		`while true do pcall(cmsgpack.unpack, "\219\255\255\255\255") end`:                    ErrSteps,
		`local s = ("\145"):rep(9000) while true do pcall(cmsgpack.unpack, s) end`:            ErrSteps,
		`local s = ("\1"):rep(9000) while true do pcall(cmsgpack.unpack, s) end`:              ErrSteps,
		`local f = ("s"):rep(2^16) while true do pcall(struct.pack, f, "x") end`:              ErrSteps,
		`local f = ("x"):rep(2^20) while true do struct.size(f) end`:                          ErrSteps,
		`local f = ("x"):rep(2^18) while true do struct.pack(f) end`:                          ErrSteps,
		`local s = ("x"):rep(2^20) while true do pcall(struct.unpack, "s", s) end`:            ErrSteps,
		`local f = ("c2147483647"):rep(100) while true do pcall(struct.size, f) end`:          ErrSteps,
		`local f, s = ("b"):rep(7000), ("x"):rep(7000) while true do struct.unpack(f, s) end`: ErrSteps,
	} {
		endsSoon(t, source, want)
	}
}

// endsSoon is ends with smaller budgets.
func endsSoon(t *testing.T, source string, want error) {
	t.Helper()
	s := newTestState()
	limits := Limits{Steps: 4_000_000, Bytes: 4 << 20}
	if want != ErrSteps {
		limits.Steps = 50_000_000
	}
	s.Reset(limits)
	begin := time.Now()
	_, err := s.Call(s.Load(mustCompile(t, source)))
	if took := time.Since(begin); took > patience {
		t.Errorf("%.200s\n takes %v", source, took)
	}
	if !errors.Is(err, want) {
		t.Errorf("%.200s\n ends with %v, want %v", source, err, want)
	}
}

// What scripts set is forgotten before the next one runs.
func TestJSONSettingsEnd(t *testing.T) {
	s := newTestState()
	for range 2 {
		s.Reset(testLimits)
		results, err := s.Call(s.Load(mustCompile(t, `local depth = cjson.encode_max_depth() cjson.encode_max_depth(1) return depth`)))
		if err != nil {
			t.Fatal(err)
		}
		if depth, _ := results[0].AsNumber(); depth != 1000 {
			t.Errorf("depth is %v", depth)
		}
	}
}

// FuzzJSON requires that what can be decoded is encoded to a text that becomes one of the same length
// again; the order of keys may change.
func FuzzJSON(f *testing.F) {
	for _, seed := range []string{
		`{"a":[1,2.5,null,true],"b":"\u00e9\ud83d\ude00"}`, `[[],{}]`, `"\`, `[1e400,-0,0x10,nan]`, "12\x0034", `{"a":{"a":`,
	} {
		f.Add(seed)
	}
	again := mustCompile(f, `local function again(text) return cjson.encode(cjson.decode(text)) end
		local once = again((...)) assert(#again(once) == #once)`)
	s := newTestState()
	f.Fuzz(func(t *testing.T, text string) {
		s.Reset(Limits{Steps: 5_000_000, Bytes: 16 << 20})
		_, err := s.Call(s.Load(again), String(strings.Clone(text)))
		if err != nil && strings.Contains(err.Error(), "assertion failed") {
			t.Errorf("%q is not stable", text)
		}
	})
}

// FuzzMsgpack requires the same of cmsgpack, once nil and what is too deep are lost.
func FuzzMsgpack(f *testing.F) {
	for _, seed := range []string{
		"\x82\xa1a\x93\x01\xcb?\xb9\x99\x99\x99\x99\x99\x9a\xc0\xa1b\xc3", "\xdd\xff\xff\xff\xff\x01", "\xdb\xff\xff\xff\xff", "\x81\xc0\x01",
	} {
		f.Add(seed)
	}
	again := mustCompile(f, `local function again(text) return cmsgpack.pack((cmsgpack.unpack(text))) end
		local twice = again(again((...))) assert(#again(twice) == #twice)`)
	s := newTestState()
	f.Fuzz(func(t *testing.T, text string) {
		s.Reset(Limits{Steps: 5_000_000, Bytes: 16 << 20})
		_, err := s.Call(s.Load(again), String(strings.Clone(text)))
		if err != nil && strings.Contains(err.Error(), "assertion failed") {
			t.Errorf("%q is not stable", text)
		}
	})
}

// FuzzStruct requires that no format and no data do harm.
func FuzzStruct(f *testing.F) {
	f.Add(">!8i4s c3<dfI9xT", "0123456789abcdef\x000123456789abcdef", 1.0)
	f.Add("bc0", "\x03abc", 2.0)
	all := mustCompile(f, `local f, data, n = ...
		pcall(struct.size, f) pcall(struct.unpack, f, data, n) pcall(struct.pack, f, n, data, n, data, n)`)
	s := newTestState()
	f.Fuzz(func(t *testing.T, format, data string, n float64) {
		s.Reset(Limits{Steps: 5_000_000, Bytes: 16 << 20})
		_, err := s.Call(s.Load(all), String(strings.Clone(format)), String(strings.Clone(data)), Number(n))
		if err != nil {
			t.Errorf("%q with %q and %v: %v", format, data, n, err)
		}
	})
}
