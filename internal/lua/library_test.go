package lua

import "testing"

// Programs that call the string, table and math libraries; lua5.1 says what they print.
var libraryPrograms = []string{
	`("x"):bad()`, `local s = "x" s.y.z = 1`, `local s = "x" s.y = 1`, `print(#"x", ("abc"):upper())`,
	`print(string.len("a\0b"), ("abc"):sub(2), ("abc"):sub(-2), ("abc"):sub(2, 2), ("abc"):sub(5), ("abc"):sub(0), ("abc"):sub(-10, 10), ("abc"):sub(3, 2), ("abc"):sub(1, -2))`,
	`print(("abc"):byte(), ("abc"):byte(2), ("abc"):byte(1, -1), ("abc"):byte(10), ("abc"):byte(0), ("abc"):byte(-1), ("").byte(""))`,
	`print(string.char(72, 105), string.char(), pcall(string.char, 256), pcall(string.char, -1), pcall(string.char, "x"))`,
	`print(("Hello"):upper(), ("Hello"):lower(), ("abc"):reverse(), ("ab"):rep(3), ("ab"):rep(0), ("ab"):rep(-1), (""):rep(100))`,
	`print(("hello world"):find("o w"), ("hello"):find("l"), ("hello"):find("xyz"), ("hello"):find(""), ("hello"):find("", 10), ("hello"):find("l", -2), ("a.b"):find(".", 1, true), ("a.b"):find("%."))`,
	`print(("key=value"):match("(%w+)=(%w+)"), ("abc"):match("b"), ("abc"):match("x"), ("abc"):match("()b()"), ("  x "):match("^%s*(.-)%s*$"), ("abc"):match(".-", 2), ("2024-01-02"):match("(%d+)-(%d+)-(%d+)"))`,
	`print(("hello"):gsub("l", "L"), ("hello"):gsub("l", "L", 1), ("hello"):gsub("", "-"), ("abc"):gsub("%w", "%0%0"), ("abc"):gsub("(a)(b)", "%2%1"), ("abc"):gsub("^a", "x"), ("aaa"):gsub("^a", "x"))`,
	`print(("hello world"):gsub("o", {o = "0"}), ("hello"):gsub("l", {}), ("abc"):gsub("%w", function(c) if c == "b" then return "X" end end), ("abc"):gsub("(a)(b)", function(a, b) return b .. a end), ("$x $y"):gsub("%$(%w+)", {x = 1, y = false}))`,
	`for k, v in ("a=1, b=2"):gmatch("(%w+)=(%w+)") do print(k, v) end for w in ("one two"):gmatch("%a+") do print(w) end for p in ("abc"):gmatch("()") do print(p) end for x in ("^a^a"):gmatch("^a") do print(x) end`,
	`print(("THE (quick) fox"):find("%((%a+)%)"), ("f(a(b)c)d"):match("%b()"), ("THE (quick) fox"):gsub("%f[%a]%a+", "X"), ("hello hello"):match("(%w+) %1"), ("x"):match("%f[%z]"), ("[[x]]"):match("%[(%b[])%]"))`,
	`print(("abc123"):match("%a+"), ("abc123"):match("%d+"), ("a_b c"):match("[%w_]+"), ("a]b"):match("[]]"), ("a-b"):match("[a%-]+"), ("a-b"):match("[a-]+"), ("x^y"):match("[x^]+"), ("abc"):match("[^b]+"), ("é"):match("[\128-\255]+"), ("\0a"):match("%z") == "\0", ("!?"):match("%p+"), ("\1"):match("%c") == "\1")`,
	`print(("aaab"):match("a-b"), ("aaab"):match("a*b"), ("aaab"):match("a+b"), ("b"):match("a?b"), ("ab"):match("a?b"), ("aab"):match("^a?b"), ("a$"):match("a$"), ("a$b"):match("a$b"), ("ab"):match("a$"))`,
	`print(pcall(string.find, "a", "[a")) print(pcall(string.find, "a", "%")) print(pcall(string.find, "a", "(a")) print(pcall(string.find, "a", "a)")) print(pcall(string.find, "a", "%1")) print(pcall(string.find, "aa", "(a)%2")) print(pcall(string.find, "a", "%b")) print(pcall(string.find, "a", "%f"))`,
	`print(pcall(string.gsub, "abc", "b", "%2")) print(pcall(string.gsub, "abc", "b", true)) print(pcall(string.gsub, "abc", "b", function() return {} end)) print(pcall(string.gsub, "abc", "(b", "x")) print(("a"):gsub("a", "%%"), ("a"):gsub("a", "%x"), #("a"):gsub("a", "%"))`,
	`print(pcall(string.rep)) print(pcall(string.rep, "x")) print(pcall(string.rep, {}, 1)) print(pcall(("x").rep, "x", {})) print(pcall(function() ("x"):rep({}) end)) print(pcall(function() string.rep("x", "y") end)) print(pcall(function() ("x").rep() end))`,
	`print(string.format("%d %5d %-5d| %05d %+d % d %.3d %5.3d", 1, 2, 3, 4, 5, 6, 7, 8)) print(string.format("%i %u %o %x %X %#x %#o %c%c", -5, 5, 8, 255, 255, 255, 8, 72, 105))`,
	`print(string.format("%u %x %o", -1, -1, -1)) print(string.format("%d %d", 2^53, -2^63)) print(string.format("%d", "10"), string.format("%s", 10), string.format("%5s|%-5s|%.2s|%5.1s", "a", "b", "cde", "fgh"))`,
	`print(string.format("%e %E %.3e %f %.2f %10.3f %-10.1f| %010.2f %+f % f %.0f %#.0f", 1.5, 1.5, 12345.678, 1.5, 2.345, 3.14159, 2.5, -3.14159, 1, 1, 2.5, 3))`,
	`print(string.format("%g %g %g %g %g %G %.3g %.10g %#g %g %g", 1, 0.1, 1e20, 1e-5, 123456789, 1e-10, 1234.5, 1/3, 1.5, 100000, 1000000))`,
	`print(string.format("%g %f %e %5g %-6g| %05g %d", 1/0, -1/0, 0/0, 1/0, -1/0, 1/0, 0)) print(string.format("%.14g %.17g %.20f %.99f", 0.1, 0.1, 0.1, 0.5))`,
	`print(string.format("%q", "a\"b\\c\nd\re\0f")) print(string.format("%%")) print(string.format("")) print(string.format("%s %s", "a", "b", "c")) print(string.format("%-10q|", "x"))`,
	`print(pcall(string.format, "%d")) print(pcall(string.format, "%d", "x")) print(pcall(string.format, "%s")) print(pcall(string.format, "%s", nil)) print(pcall(string.format, "%y", 1)) print(pcall(string.format, "%", 1)) print(pcall(string.format, "%123d", 1)) print(pcall(string.format, "%.123d", 1)) print(pcall(string.format, "%-+ #0-d", 1)) print(pcall(string.format, "%s", {}))`,
	`print(#string.format("%s", ("x"):rep(200)), #string.format("%50s", ("x"):rep(200)), #string.format("%.150s", "x"))`,
	`print(pcall(string.format, "%.20s|%.3s", ("y"):rep(50), "ab")) print(string.format("%5c|%-5c|", 65, 66)) print(string.format("%.3x %8.3x %-8x|%08x", 10, 10, 10, 10)) print(string.format("% 5d|%+5d|%-+5d|", 1, 2, 3)) print(string.format("%.0d|%.0x", 0, 0))`,
	`print(pcall(string.dump, print)) print(string.gfind == string.gmatch, type(string.gfind))`,
	`print(tostring(12):rep(2), (5 .. ""):len(), ("x"):rep(3, ","))`,

	`print(table.concat({1, 2, 3}), table.concat({1, 2, 3}, ","), table.concat({}, ","), table.concat({1, 2, 3}, ",", 2), table.concat({1, 2, 3}, ",", 2, 2), table.concat({1, 2}, ",", 3), table.concat({"a", 1.5, 2}, "-"))`,
	`print(pcall(table.concat, {1, {}, 3})) print(pcall(table.concat, {1, nil, 3}, ",", 1, 3)) print(pcall(table.concat, 1)) print(pcall(table.concat, {}, {}))`,
	`local t = {1, 2, 3} table.insert(t, 4) table.insert(t, 1, 0) table.insert(t, 3, "x") print(table.concat(t, ",")) print(table.remove(t), table.remove(t, 1), table.remove(t, 2)) print(table.concat(t, ","), table.remove({}), table.remove({}, 1), #t) print(pcall(table.insert, t)) print(pcall(table.insert, t, 1, 2, 3)) print(pcall(table.insert, nil, 1)) table.insert(t, 10, "far") print(t[10], #t)`,
	`local t = {5, 2, 8, 1, 9, 3} table.sort(t) print(table.concat(t, ",")) table.sort(t, function(a, b) return a > b end) print(table.concat(t, ",")) local w = {"b", "a", "C"} table.sort(w) print(table.concat(w, ","))`,
	`local t = {} for i = 1, 200 do t[i] = i * 7919 % 211 end table.sort(t) print(table.concat(t, ",")) local u = {} for i = 1, 100 do u[i] = {i % 5, i} end table.sort(u, function(a, b) return a[1] < b[1] end) for i = 1, 100 do u[i] = u[i][2] end print(table.concat(u, ","))`,
	`print(pcall(table.sort, {3, 1, "x"})) print(pcall(table.sort, {1, 2, 3}, 5)) print(pcall(table.sort, {3, 2, 1, 5, 4}, function() return true end)) print(pcall(table.sort, {1, 2, nil, 4}))`,
	`print(table.getn({1, 2, 3}), table.maxn({1, 2, [10] = 1, [2.5] = 1}), table.maxn({}), pcall(table.setn, {}, 1)) table.foreachi({5, 6}, print) table.foreach({7, x = 8}, print) print(table.foreach({1, 2, 3}, function(k, v) if v == 2 then return "found" end end), table.foreachi({1, 2}, function(i) return i end))`,
	`print(#table.concat({("x"):rep(1000), ("y"):rep(1000)}, ("z"):rep(1000)))`,
	`local t = setmetatable({}, {__index = function(t, i) return "i" .. i end}) print(pcall(table.concat, t, ",", 1, 2)) print(unpack(t, 1, 2))`,

	`print(math.floor(1.5), math.ceil(1.5), math.floor(-1.5), math.ceil(-1.5), math.abs(-2), math.max(1, 5, 3), math.min(4, 2, 8), math.sqrt(16), math.pi, math.huge, -math.huge)`,
	`print(math.fmod(7, 3), math.fmod(-7, 3), math.mod(7, 3), math.modf(3.7), math.modf(-3.7), math.modf(5), math.modf(1/0), math.frexp(8), math.frexp(0), math.ldexp(0.5, 4), math.pow(2, 10))`,
	`print(math.sin(1), math.cos(1), math.tan(1), math.asin(0.5), math.acos(0.5), math.atan(1), math.atan2(1, -1), math.exp(1), math.log(10), math.log10(1000), math.sinh(1), math.cosh(1), math.tanh(1), math.deg(math.pi), math.rad(180))`,
	`print(math.sqrt(-1), math.log(-1), math.log(0), math.fmod(1, 0), math.acos(2), math.asin(2), math.exp(1000), math.sin(1/0), 0/0, -(0/0), math.fmod(1, 1/0), math.pow(-8, 1/3), (-8)^(1/3), math.log10(-1))`,
	`print(pcall(math.floor)) print(pcall(math.floor, "x")) print(pcall(math.max)) print(math.floor("3.7"), pcall(math.random, 0)) print(pcall(math.random, 2, 1)) print(pcall(math.random, 1, 2, 3)) print(math.floor(2^40 + 0.5), math.ceil(-0.5), math.abs(-0))`,
	`print(2^10, 2^0.5, 2^-2, 10^20, 3^40, 1.1^100, (-2)^3, (-2)^-3, 0^0, 0^-1, 7^7, 1e10^3, 2^1023, 2^-1074, 1.5^2.5)`,
}

func TestLibraries(t *testing.T) { sameAsPeer(t, libraryPrograms) }

// What math.random returns in Redis after these seeds.
func TestRandom(t *testing.T) {
	prints(t, `print(math.random()) math.randomseed(42) print(math.random(), math.random(1000000))
		math.randomseed(0) print(math.random())`,
		"0.17082803611217\n0.74452500033403\t342702\n0.17082803611217")
}
