package lua

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// A generator writes random programs that end, print only what has no address in it, and fail often:
// messages and the names of variables in them are compared too.
type generator struct {
	*rand.Rand
	out    strings.Builder
	locals []string
	names  int
	depth  int // of expressions and blocks
	loops  int
	vararg bool
}

func generate(seed uint64) string {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 1))}
	g.line(`local function show(v) local t = type(v) if t == "table" then return "table" .. #v elseif t == "function" or t == "thread" then return t end return tostring(v) end`)
	g.line(`local function try(f, ...) local n = select("#", pcall(f, ...)) local r = {pcall(f, ...)} for i = 1, n do r[i] = show(r[i]) end print(unpack(r, 1, n)) end`)
	g.line(`local mt = {__index = function(t, k) return k end, __add = function(a, b) return "added" end, __concat = function(a, b) return "joined" end, __call = function(self, a) return a end, __eq = function() return true end, __lt = function() return false end, __unm = function() return "negated" end}`)
	for range 3 + g.IntN(6) {
		g.declare()
	}
	for range 4 + g.IntN(8) {
		g.writef("try(function(...)\n")
		g.vararg = true
		visible := len(g.locals)
		g.block(1 + g.IntN(4))
		if g.IntN(2) == 0 {
			g.writef("return %s\n", g.list(1+g.IntN(3)))
		}
		g.locals = g.locals[:visible]
		g.vararg = false
		g.writef("end%s)\n", g.pick("", ", 1", ", nil, \"x\"", ", 2, {}, 3"))
	}
	return g.out.String()
}

func (g *generator) writef(format string, args ...any) { fmt.Fprintf(&g.out, format, args...) }
func (g *generator) line(text string)                  { g.out.WriteString(text + "\n") }
func (g *generator) pick(from ...string) string        { return from[g.IntN(len(from))] }

func (g *generator) newName() string {
	g.names++
	return fmt.Sprintf("%s%d", g.pick("a", "b", "x", "total"), g.names)
}

func (g *generator) name() string {
	if len(g.locals) == 0 || g.IntN(12) == 0 {
		return g.pick("undefined", "G1", "G2", "_VERSION")
	}
	return g.locals[g.IntN(len(g.locals))]
}

// declare declares a variable at the outermost level, which functions capture.
func (g *generator) declare() {
	name := g.newName()
	g.writef("local %s = %s\n", name, g.pick("1", "2.5", `"text"`, `"7"`, "{1, 2, 3}", "{x = 1, y = {5}}", "nil", "true",
		"setmetatable({}, mt)", "{10, 20, nil, 40}", `"0x10"`, "-3"))
	g.locals = append(g.locals, name)
}

func (g *generator) block(n int) {
	visible := len(g.locals)
	for range n {
		g.statement()
	}
	g.locals = g.locals[:visible]
}

func (g *generator) statement() {
	if g.depth > 3 {
		g.writef("%s = %s\n", g.target(), g.expression())
		return
	}
	g.depth++
	defer func() { g.depth-- }()
	switch g.IntN(13) {
	case 0, 1:
		name := g.newName()
		value := g.expression()
		g.writef("local %s = %s\n", name, value)
		g.locals = append(g.locals, name)
	case 2:
		first, second := g.newName(), g.newName()
		g.writef("local %s, %s = %s\n", first, second, g.list(1+g.IntN(3)))
		g.locals = append(g.locals, first, second)
	case 3, 4:
		g.writef("%s = %s\n", g.target(), g.expression())
	case 5:
		g.writef("%s, %s = %s\n", g.target(), g.target(), g.list(1+g.IntN(3)))
	case 6:
		g.writef("if %s then\n", g.expression())
		g.block(1 + g.IntN(2))
		if g.IntN(2) == 0 {
			g.writef("elseif %s then\n", g.expression())
			g.block(1)
		}
		if g.IntN(2) == 0 {
			g.line("else")
			g.block(1)
		}
		g.line("end")
	case 7:
		g.loop()
	case 8:
		g.function()
	case 9:
		g.writef("print(show(%s))\n", g.expression())
	case 10:
		g.writef("print(pcall(function() return %s end) and 1)\n", g.expression())
	case 11:
		g.writef("do\n")
		g.block(2)
		g.line("end")
	case 12:
		g.writef("for k, v in %s(%s) do print(show(k), show(v)) end\n", g.pick("pairs", "ipairs"), g.pick(g.table(), g.name()))
	}
}

func (g *generator) loop() {
	if g.loops > 1 {
		return
	}
	g.loops++
	name := g.newName()
	switch g.IntN(3) {
	case 0:
		g.writef("for %s = %s, %s, %s do\n", name, g.pick("1", "3", "-1", "0.5"), g.pick("3", "5", "-2", `"4"`), g.pick("1", "2", "-1", "0.75"))
	case 1:
		g.writef("local %s = 0\nwhile %s < 3 do\n%s = %s + 1\n", name, name, name, name)
	case 2:
		g.writef("local %s = 0\nrepeat\n%s = %s + 1\n", name, name, name)
	}
	g.locals = append(g.locals, name+" + 0")
	repeats := strings.HasSuffix(g.out.String(), "repeat\n"+name+" = "+name+" + 1\n")
	visible := len(g.locals)
	g.block(1 + g.IntN(2))
	g.locals = g.locals[:visible-1]
	if g.IntN(4) == 0 && !repeats {
		g.writef("if %s then break end\n", g.expression())
	}
	if repeats {
		g.writef("until %s >= 3 or %s\n", name, g.expression())
	} else {
		g.line("end")
	}
	g.loops--
}

func (g *generator) function() {
	name, vararg, loops := g.newName(), g.vararg, g.loops
	parameter := g.newName()
	g.vararg = g.IntN(2) == 0
	g.loops = 2
	g.writef("local function %s(%s%s)\n", name, parameter, map[bool]string{true: ", ...", false: ""}[g.vararg])
	visible := len(g.locals)
	g.locals = append(g.locals, parameter)
	g.block(1 + g.IntN(2))
	g.writef("return %s\nend\n", g.list(1+g.IntN(2)))
	g.locals = append(g.locals[:visible], name)
	g.vararg, g.loops = vararg, loops
}

// target is something that can be assigned to.
func (g *generator) target() string {
	name := g.name()
	if strings.Contains(name, " ") || name == "_VERSION" {
		name = "G1"
	}
	switch g.IntN(6) {
	case 0:
		return name + ".x"
	case 1:
		return fmt.Sprintf("%s[%s]", name, g.pick("1", "2", `"y"`, "i", "1.5", "true"))
	case 2:
		return g.pick("G1", "G2")
	}
	return name
}

func (g *generator) list(n int) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = g.expression()
	}
	return strings.Join(parts, ", ")
}

func (g *generator) table() string {
	switch g.IntN(4) {
	case 0:
		return "{" + g.list(1+g.IntN(4)) + "}"
	case 1:
		return fmt.Sprintf("{x = %s, [%s] = %s, %s}", g.expression(), g.pick("1", "2", `"y"`, "5"), g.expression(), g.expression())
	}
	return g.pick("{}", "{1, 2, 3}", `{"a", "b", nil, "d"}`, "{a = 1, b = 2, c = 3, 7}", "setmetatable({1, 2}, mt)", "{n = 5, [0] = 1, [-1] = 2, [3.5] = 3}")
}

func (g *generator) expression() string {
	if g.depth > 5 || g.IntN(4) == 0 {
		return g.atom()
	}
	g.depth++
	defer func() { g.depth-- }()
	switch g.IntN(14) {
	case 0, 1, 2:
		return fmt.Sprintf("%s %s %s", g.operand(), g.pick("+", "-", "*", "/", "%", "^"), g.operand())
	case 3:
		return fmt.Sprintf("%s .. %s", g.operand(), g.operand())
	case 4, 5:
		return fmt.Sprintf("%s %s %s", g.operand(), g.pick("==", "~=", "<", "<=", ">", ">="), g.operand())
	case 6, 7:
		return fmt.Sprintf("%s %s %s", g.operand(), g.pick("and", "or"), g.operand())
	case 8:
		return g.pick("not ", "- ", "#") + g.operand()
	case 9:
		return fmt.Sprintf("%s[%s]", g.pick(g.name2(), "("+g.table()+")"), g.expression())
	case 10:
		return g.name2() + g.pick(".x", ".y", ".x.y", ".len", "[1]")
	case 11:
		return g.libraryCall()
	case 12:
		return g.table()
	}
	return fmt.Sprintf("(function(p) return %s end)(%s)", g.plain(), g.expression())
}

// plain is an expression without "...".
func (g *generator) plain() string {
	vararg := g.vararg
	g.vararg = false
	defer func() { g.vararg = vararg }()
	return g.expression()
}

// name2 is a name that can be followed by an index or a call.
func (g *generator) name2() string {
	name := g.name()
	if strings.Contains(name, " ") {
		return "(" + name + ")"
	}
	return name
}

func (g *generator) operand() string {
	e := g.expression()
	if g.IntN(3) > 0 {
		return "(" + e + ")"
	}
	return e
}

func (g *generator) atom() string {
	if g.vararg && g.IntN(8) == 0 {
		return g.pick("...", "(...)", "select('#', ...)")
	}
	if g.IntN(2) == 0 {
		return g.name()
	}
	return g.pick("1", "2", "3", "10", "0.5", "1e3", "255", "7", `"a"`, `"abc"`, `"10"`, `"1e1"`, `""`, "nil", "true", "false", `"x y"`)
}

func (g *generator) libraryCall() string {
	s := g.pick(`"hello world"`, `"a=1,b=2"`, `"  x  "`, `"aaa"`, g.name(), g.operand())
	pattern := g.pick(`"%w+"`, `"(%w)=(%w)"`, `"a"`, `"."`, `"^%s*(.-)%s*$"`, `"[a-c]+"`, `"o"`, `"x*"`, `"(a)(a)"`, `"%d"`, `"()"`, `"[^a]-l"`, `"%f[%w]%w+"`)
	switch g.IntN(16) {
	case 0:
		return fmt.Sprintf("string.find(%s, %s)", s, pattern)
	case 1:
		return fmt.Sprintf("string.match(%s, %s)", s, pattern)
	case 2:
		return fmt.Sprintf("string.gsub(%s, %s, %s)", s, pattern, g.pick(`"<%0>"`, `"%1"`, "string.upper", "{a = 1, o = true}", "function(c) return #c > 1 and c end"))
	case 3:
		return fmt.Sprintf("string.sub(%s, %s, %s)", s, g.atom(), g.atom())
	case 4:
		return fmt.Sprintf("string.format(%s, %s)", g.pick(`"%d"`, `"%s"`, `"%5.2f"`, `"%x"`, `"%q"`, `"%g"`, `"%-5s|"`, `"%05d"`), g.expression())
	case 5:
		return fmt.Sprintf("string.rep(%s, %s)", s, g.pick("2", "3", "0", `"2"`))
	case 6:
		return fmt.Sprintf("string.byte(%s, %s)", s, g.atom())
	case 7:
		return fmt.Sprintf("table.concat(%s, %s)", g.table(), g.pick(`","`, `""`, "1"))
	case 8:
		return fmt.Sprintf("tonumber(%s)", g.expression())
	case 9:
		return fmt.Sprintf("math.%s(%s)", g.pick("floor", "ceil", "abs", "max", "sqrt"), g.expression())
	case 10:
		return fmt.Sprintf("select(%s, %s)", g.pick("1", "2", "-1", "'#'"), g.list(2))
	case 11:
		return fmt.Sprintf("(%s):%s()", s, g.pick("upper", "len", "reverse", "nothing"))
	case 12:
		return fmt.Sprintf("pcall(error, %s, 0)", g.pick(`"e"`, g.atom()))
	case 13:
		return fmt.Sprintf("type(%s)", g.expression())
	case 14:
		return fmt.Sprintf("(function(...) local t = %s table.%s return show(t) end)()", g.table(), g.pick("sort(t)", "insert(t, 5)", "remove(t, 1)", "insert(t, 1, 'n')", "sort(t, function(a, b) return show(a) < show(b) end)"))
	}
	return fmt.Sprintf("#(%s)", g.table())
}
