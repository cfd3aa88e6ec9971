package lua

import (
	"strings"
	"testing"
)

// Programs of which lua5.1 says what they print.
var languagePrograms = []string{
	// Expressions.
	`print(1+2, 10/4, 2^10, 7%3, -7%3, 7%-3, -2^2, 2^3^2, "a".."b"..1 ..2)`,
	`print(1/0, -1/0, 1e15, 123456789012345678, 0.1, 1e100, -0.5, 1e14, 99999999999999, 2^53, 1e-5, 0.0001, 3.14159265358979)`,
	`print(0x10, 0xff, 1e2, .5, 3., 5e-1, 0xA)`,
	`print("10"+5, "0x10"*2, " 7 "-1, 10 .. "", -"3", "1e1"/2)`,
	`print(1<2, 2<=2, 3>4, 4>=4, "a"<"b", "a"<="", "Z"<"a", 1==1, 1~=1, "1"==1, nil==false)`,
	`local a, b = 0/0, 1 print(a==a, a~=a, a<b, a>b, a<=b, not (a<b), not (a>=b))`,
	`print(not nil, not 0, not "", nil and 1, false or 2, 1 and 2, nil or false, 1 or error"x")`,
	`local t = {} print(t.x and t.x.y, t.x or "none", (t.x or {}).y)`,
	`local x, y = 5 print(x, y, x and y, y or x, x == 5 and "five" or "other", x ~= 5 and "a" or "b")`,
	`local function f() return 1,2,3 end print(f(), (f()), f(), {f(), f()}[3] and 1)`,
	`local function f() return 1,2,3 end local t = {f(), f()} print(#t, t[1], t[2], t[4], (f()))`,
	`local function f(...) return select("#", ...), ... end print(f(), f(nil), f(1, nil, nil))`,
	`print(#"abc", #"", #{1,2,3}, #{n=1}, #{1,2,nil,4}, #{nil}, #{nil,nil,3})`,
	`local s = "a\tb\n\\\"\065b\z" print(#s, s)`,
	"print([[\nline\n]], [==[a]]b]==], #[[\n\n]])",
	`local a = 1 local a = a + 1 do local a = a + 1 print(a) end print(a)`,
	`print(2^0.5, 10^2, 2^-1, (-8)^(1/3), 10^15, 4^0.5)`,
	`print(5 % 3, -5 % 3, 5 % -3, -5 % -3, 5.5 % 2, 1 % 0, 5 % (1/0))`,
	`print(1 .. 2, 1.5 .. "x", -1 .. "", 2^63 .. "")`,
	`local t = {1,2,3,[10]=10,x=1,["a b"]=2,;} t.y = 5 print(t[10], t.x, t["a b"], t.y, #t)`,
	`local a <const> = 1`,

	`local a, b = 3, true print((a or 255) and true or b, (a and nil) or false and 1, not ((a or 1) and false) or 5, (a and false) and 1 or 2)`,

	// Statements.
	`local s = 0 for i = 1, 10 do s = s + i end for i = 10, 1, -3 do s = s * 2 + i end print(s)`,
	`for i = 1, 0 do print(i) end for i = 1, 3 do local j = i i = 10 print(j, i) end`,
	`for i = 1, 2, 0.5 do print(i) end for i = 3, 1 do print(i) end for i = "1", "3" do print(i) end`,
	`local n = 0 while true do n = n + 1 if n > 5 then break end end print(n)`,
	`local n = 0 repeat local done = n >= 3 n = n + 1 until done print(n)`,
	`local fs, i = {}, 0 repeat local j = i fs[#fs+1] = function() return j end i = i + 1 until j >= 2 print(fs[1](), fs[2](), fs[3]())`,
	`local fs = {} for i = 1, 3 do fs[i] = function() i = i + 1 return i end end print(fs[1](), fs[1](), fs[2](), fs[3]())`,
	`local fs = {} for k, v in ipairs{5,6,7} do fs[k] = function() return k + v end if k == 2 then break end end print(fs[1](), fs[2](), fs[3])`,
	`local fs = {} local i = 1 while i < 4 do local j = i fs[i] = function() j = j + 1 return j end i = i + 1 end print(fs[1](), fs[1](), fs[3]())`,
	`local a, b, c = 1, 2 a, b = b, a print(a, b, c) local t = {} t[1], t[2], t[3] = 1, 2 print(#t) local i = 1 i, t[i] = i + 1, 20 print(i, t[1], t[2])`,
	`local a = {} local i = 3 i, a[i] = i + 1, 20 print(i, a[3], a[4])`,
	`local t = {{}} local x = t x[1], x = 5, 6 print(t[1], x)`,
	`if nil then print(1) elseif false then print(2) elseif 0 then print(3) else print(4) end if false then else print(5) end`,
	`local function fact(n) if n <= 1 then return 1 end return n * fact(n - 1) end print(fact(10), fact(20), fact(25))`,
	`local function loop(n) if n == 0 then return "done" end return loop(n - 1) end print(loop(100000))`,
	`local t = {} function t.a(x) return x end function t:b(x) return self == t, x end t.c = {} function t.c.d() return "d" end print(t.a(1), t.c.d(), t:b(2))`,
	`do return 1, 2 end`,
	`local function f(...) local a, b = ... local t = {...} return a, b, #t, select(2, ...) end print(f(1, 2, 3))`,
	`function f(a, ...) return arg and arg.n, arg and arg[1] end print(f(1, 2, 3)) function g(...) local x = ... return arg end print(g(1))`,
	`local a = {} for i = 1, 100 do a[i] = i end for i = 1, 100 do if i % 2 == 0 then a[i] = nil end end local n = 0 for k in pairs(a) do n = n + k end print(n)`,
	`local t = {} for i = 1, 60 do t[i] = i end local u = {unpack(t)} print(#u, u[60]) print((select("#", unpack(t, 1, 55))))`,
	`local t = {` + strings.Repeat("1,", 120) + `} print(#t)`,
	`goto = 1 print(goto)`,

	// Scope, closures, environments.
	`local x = 1 local function f() x = x + 1 return x end local function g() x = x * 10 return x end print(f(), g(), f(), x)`,
	`local function counter() local n = 0 return function() n = n + 1 return n end, function() return n end end local a, b = counter() a() a() print(b())`,
	`local function f() local a = 1 return function() local b = 2 return function() a = a + b return a end end end local g = f()() print(g(), g())`,
	`x = 5 local function f() return x end setfenv(f, {x = 6}) print(f(), x) print(getfenv(f).x)`,
	`local f = loadstring("return ..., x") x = 1 setfenv(f, {x = 2}) print(f(7))`,
	`print(pcall(setfenv, print, {}))`,
	`local pieces = {"return ", "1 + ", "2"} local i = 0 print(load(function() i = i + 1 return pieces[i] end)())`,
	`print(loadstring("x =")) print(loadstring("x = = 1", "=n")) print(loadstring("x = = 1\n2", "a\nb")) print(pcall(loadstring("error('m')", "@n")))`,

	// Metatables.
	`local t = setmetatable({}, {__index = function(t, k) return k .. "!" end}) print(t.foo, t[1], rawget(t, "foo"))`,
	`local a = setmetatable({}, {__index = setmetatable({x = 1}, {__index = {y = 2}})}) print(a.x, a.y, a.z)`,
	`local log = {} local t = setmetatable({}, {__newindex = function(t, k, v) rawset(t, k, v * 2) end}) t.x = 2 t.x = 3 print(t.x)`,
	`local store = {} local t = setmetatable({}, {__newindex = store}) t.x = 1 print(rawget(t, "x"), store.x)`,
	`local mt = {} for _, n in ipairs{"add","sub","mul","div","mod","pow","unm","concat"} do mt["__" .. n] = function(a, b) return n .. type(a) .. type(b) end end
	 local v = setmetatable({}, mt) print(v + 1, 1 - v, v * v, v / 2, v % "x", 2 ^ v, -v, v .. "s", 1 .. v, "a" .. "b" .. v)`,
	`local mt = {__eq = function() return true end, __lt = function() return true end, __le = function() return false end}
	 local a, b = setmetatable({}, mt), setmetatable({}, mt) print(a == b, a ~= b, a < b, a <= b, a > b, a >= b, a == 1)`,
	`local mt = {__lt = function() return false end} local a, b = setmetatable({}, mt), setmetatable({}, mt) print(a <= b, a >= b)`,
	`local t = setmetatable({}, {__call = function(self, a, ...) return a, select("#", ...) end}) print(t(1, 2, 3), pcall(t, 5))`,
	`local t = setmetatable({}, {__tostring = function() return "me" end, __metatable = "locked"}) print(tostring(t), getmetatable(t), pcall(setmetatable, t, {}))`,
	`local t = setmetatable({}, {__len = function() return 42 end}) print(#t)`,
	`local t = {} t.__index = t function t.new(x) return setmetatable({x = x}, t) end function t:get() return self.x end print(t.new(7):get())`,
	`local a = setmetatable({}, {__index = function(t, k) return k end}) local function f() return a[1], a.x, a[nil], a[true] end print(f())`,
	`local t = setmetatable({}, {__concat = function(a, b) return "c" end}) print(t .. t, t .. "x" .. "y", "x" .. "y" .. t)`,

	// Errors.
	`foo()`, `local x x.y = 1`, `local x = {} x.y.z = 1`, `x.y = 1`, `local t = {} t:foo()`, `local a = "x" + 1`, `local a = {} + 1`,
	`local a = {} .. "x"`, `local a = 1 < "2"`, `local a = {} < {}`, `local a = nil < 1`, `local a = #5`, `local a = -{}`, `local t = {} t[nil] = 1`,
	`local t = {} t[0/0] = 1`, `error("m")`, `error("m", 0)`, `error("m", 2)`, `error({})`, `error()`, `error(nil)`, `error(5)`,
	`local function f() error("deep", 2) end
	 f()`,
	`for i = 1, "x" do end`, `for i = {}, 1 do end`, `for i = 1, 2, {} do end`, `for k in 5 do end`, `for k, v in pairs(nil) do end`, `for k in nil do end`,
	`print(pcall(error, "m", 0)) print(pcall(error)) print(pcall(function() error(true) end))`,
	`print(xpcall(function() error("m") end, function(e) return e .. "!" end)) print(xpcall(function() return 1, 2 end, print))`,
	`print(pcall(nil)) print(pcall(pcall)) print(pcall(5))`,
	`assert(false)`, `assert(nil, "m")`, `assert()`, `print(assert(1, 2, 3))`, `assert(false, {})`,
	`local t = {} t.a.b()`, `local t = {a = {}} t.a.b()`, `local t = {a = {}} t.a:b()`, `local x = 5 x()`, `(1)()`, `local a = ({})[1].x`,
	`local function r() return r() + 1 end print(pcall(r))`,
	`local function g() local function f() return x.y.z end return f() end g()`,
	`tostring()`, `tonumber()`, `setmetatable(1, {})`, `setmetatable({}, 1)`, `setmetatable({})`, `rawset({}, nil, 1)`, `rawget(1)`, `next({}, 1)`, `select(0)`, `unpack()`, `ipairs()`,
	`local t = setmetatable({}, {__index = function(t, k) error("no " .. k) end}) print(pcall(function() return t.x end))`,
	`a.b.c = 1`, `local a = {} ; a.b.c.d = 1`, `local a b = a.x`, `return (nil)[1]`, `local t = {} local k = "x" ; t[k].y = 1`, `local u local function f() u.x = 1 end f()`,
	`tonumber("x", 99)`, `tonumber("10", 1)`, `unpack({}, 1, 1e7)`, `unpack({}, 1, 8000)`,
	`local a = 1 local b = a .. {}`, `local a = nil .. "x"`,

	// Syntax errors.
	`x =`, `x = = 1`, `local 5`, `if x`, `if x then`, `for`, `for x`, `for x = 1`, `for x = 1, 2`, `while`, `repeat`, `function`, `function f`, `function f(`, `local function`,
	`return return`, `break`, `x = {`, `x = {1, 2`, "x = [[", `x = "abc`, "x = 'a\nb'", `x = "\300"`, `x = 1e`, `x = 0x`, `x = 3x`, `x = 1..2`, `--[[ unfinished`, `x = }`, `f(`, `f(1`, "f\n(1)", `x.1 = 2`, `a.b:c = 1`,
	`a + 1`, `x, y`, `"x" = 1`, `local x = ~ 1`, `x = @`, `x = $`, "x = \x01", `f() = 1`, `(a) = 1`, `x = [=`, `x = [=[ ]]`, `and`, `x = a b`, `do`, `end`, `else`, `until x`, `x = function() return ... end`,
	`return 1,`, `local a, = 1`, `x = {a = }`, `x = {[1] }`, `x = {[1]= }`, "if x then\n\n\nelse\n\n", "function f()\n\n\n", "for i=1,2 do\n\n", "x = (\n\n1", `local function f() local a = 1 ; return a ; print(1) end`,
	"x = \"a\\", `x = [[ [[ ]] ]]`, `;`, `x=1;;`, `local a; local b;`,

	// Base library.
	`print(tostring(nil), tostring(true), tostring(1.5), tostring("x"), type(print), type(nil), type({}), type("x"), type(2), type(true))`,
	`print(tonumber("10"), tonumber("  0x1F  "), tonumber("1e1"), tonumber(""), tonumber("abc"), tonumber("1 2"), tonumber(nil), tonumber({}), tonumber("0x"), tonumber("1e"), tonumber("."), tonumber("5."), tonumber(".5"))`,
	`print(tonumber("ff", 16), tonumber("zz", 36), tonumber("8", 8), tonumber("777", 8), tonumber("-ff", 16), tonumber("  11  ", 2), tonumber("0xff", 16), tonumber("1.5", 16), tonumber("99999999999999999999", 10), tonumber("99999999999999999999", 16), tonumber("", 16))`,
	`print(tonumber("inf"), tonumber("nan"), tonumber("-inf"), tonumber("infinity"), tonumber("0x1p4"), tonumber("0x.8"), tonumber("1e400"), tonumber("1e-400"), tonumber("1\0"), tonumber("nan(x)"), tonumber("1_000"), tonumber("1f"))`,
	`print(select("#"), select("#", nil), select(2, 1, 2, 3), select(-1, 1, 2, 3)) print(pcall(select, -5, 1))`,
	`print(rawequal("a", "a"), rawequal({}, {}), rawget({5}, 1), rawset({}, 1, 2)[1])`,
	`print(next({})) print(next({10})) print(next({10}, 1)) print(next({a = 1}))`,
	`print(unpack({1, 2, 3})) print(unpack({1, 2, 3}, 2)) print(unpack({1, 2, 3}, 2, 5)) print(unpack({}, 1, 0)) print((unpack({1, 2})))`,
	`for i, v in ipairs({1, 2, nil, 4}) do print(i, v) end`,
	`local t = {} for i = 1, 10 do t["k" .. i] = i end for k, v in pairs(t) do print(k, v) end`,
	`local t = {} for i = 1, 40 do t[i * 7 % 41] = i end for k, v in pairs(t) do print(k, v) end print(#t)`,
	`local t = {5, 6, x = 1, y = 2, z = 3, [1.5] = 4, [true] = 5, [false] = 6, [-1] = 7, [0] = 8, [2^40] = 9} for k, v in pairs(t) do print(k, v) end`,
	`local t = {} for i = 1, 20 do t[i] = i end for i = 1, 15 do t[i] = nil end for k, v in pairs(t) do print(k, v) end t.x = 1 t.y = 2 for k, v in pairs(t) do print(k, v) end print(#t)`,
	`local t = {x = 1, y = 2, z = 3} for k in pairs(t) do t[k] = nil end print(next(t)) for i = 1, 5 do t[i * 1.5] = i end for k, v in pairs(t) do print(k, v) end`,
	`local t = {} t[3] = 3 t[2] = 2 t[1] = 1 print(#t) t[4] = 4 print(#t) t[5] = 5 t[7] = 7 print(#t) t[5] = nil print(#t)`,
	`print(_VERSION, _G._VERSION, collectgarbage("collect"), type(collectgarbage("count")))`,
	`print(loadstring("return 1")(), loadstring("syntax error here"))`,

	// Coroutines.
	`local co = coroutine.create(function(a, b) print(a, b) local c = coroutine.yield(a + b) print(c) local d, e = coroutine.yield(c * 2) return d + e end)
	 print(coroutine.resume(co, 1, 2)) print(coroutine.status(co)) print(coroutine.resume(co, 10)) print(coroutine.resume(co, 3, 4)) print(coroutine.status(co), coroutine.resume(co))`,
	`local function gen(n) return coroutine.wrap(function() for i = 1, n do coroutine.yield(i) end end) end local s = 0 for v in gen(10) do s = s + v end print(s)`,
	`local co = coroutine.create(function() error("oops") end) print(coroutine.resume(co)) print(coroutine.status(co)) local w = coroutine.wrap(function() error("in wrap") end) print(pcall(w))`,
	`print(coroutine.resume(coroutine.create(function() return pcall(coroutine.yield, 1) end))) print(pcall(coroutine.yield, 1)) print(coroutine.running())`,
	`local co co = coroutine.create(function() print(coroutine.status(co), coroutine.resume(co)) local c2 = coroutine.create(function() print(coroutine.status(co)) end) coroutine.resume(c2) end) coroutine.resume(co)`,
	`local co = coroutine.wrap(function(...) local n = select("#", ...) while true do n = n + select("#", coroutine.yield(n)) end end) print(co(1, 2), co(), co(nil, nil, nil))`,
	`local co = coroutine.wrap(function() return coroutine.yield(1) end) print(co()) print(co(5, 6)) print(pcall(co))`,
	`local up = 1 local co = coroutine.wrap(function() local x = 5 local f = function() x = x + up return x end coroutine.yield(f) up = 10 coroutine.yield(f()) end) local f = co() print(f(), co(), f())`,
	`local function tree(n) if n > 0 then tree(n - 1) coroutine.yield(n) tree(n - 1) end end for v in coroutine.wrap(function() tree(3) end) do print(v) end`,
	`print(pcall(coroutine.resume)) print(pcall(coroutine.create)) print(pcall(coroutine.status, 1))`,
	`local co = coroutine.wrap(function() for k, v in (function() return coroutine.yield end)() do print(k) end end) print(pcall(co))`,
}

func TestLanguage(t *testing.T) { sameAsPeer(t, languagePrograms) }
