package lua

// A Prototype is a compiled function. It never changes, so any number of States may run it at a time.
type Prototype struct {
	code      []instruction
	lines     []int32 // of each instruction
	constants []Value
	hashes    []uint32 // of those constants that are strings
	children  []*Prototype
	upvalues  []capture
	locals    []localRange // for messages

	chunk     string // where the source came from, as messages show it
	name      string // and as the caller of Compile has named it, cut to maxName
	line      int    // where the function begins; 0 for a whole chunk
	params    int
	registers int
	size      int // bytes, with its children
	variadic  bool
	argTable  bool // it has a local "arg", as variadic functions that do not say "..." have in Lua 5.1
}

// A capture says where a closure finds an upvalue when it is made: in a register of the function
// around it, or among that function's own upvalues.
type capture struct {
	fromRegister bool
	index        uint8
	name         string
}

// A localRange says that a local variable lives in instructions from … to-1. The n-th range that lives
// at an instruction is register n.
type localRange struct {
	name     string
	from, to int
}

// Size is about how many bytes the function takes, with those in it.
func (p *Prototype) Size() int { return p.size }

// measure sets size, about.
func (p *Prototype) measure() {
	p.size = 400 + 12*len(p.code) + 20*len(p.constants) + 24*len(p.upvalues) + 32*len(p.locals)
	for _, v := range p.constants {
		if v.isString() {
			p.size += len(v.str())
		}
	}
	for _, child := range p.children {
		p.size += child.size
	}
	if p.line == 0 { // those in it share the name
		p.size += len(p.name)
	}
}

// localName is the name of the local variable that register reg is at instruction pc.
func (p *Prototype) localName(reg, pc int) (string, bool) {
	for i := range p.locals {
		local := &p.locals[i]
		if local.from > pc {
			break
		}
		if pc < local.to {
			if reg == 0 {
				return local.name, true
			}
			reg--
		}
	}
	return "", false
}

// maxName is how much of the name of a chunk is kept, in bytes: it may be the whole source.
const maxName = 1 << 10

// chunkName is name as messages show it. "@file" and "=text" stand for themselves, as do their last and
// first characters if they are long; any other name is source text, of which the first line is shown.
func chunkName(name string) string {
	const room = 60
	switch {
	case name == "":
		return `[string ""]`
	case name[0] == '=':
		return name[1:min(len(name), room)]
	case name[0] == '@':
		name = name[1:]
		if limit := room - len(" '...' ") - 1; len(name) > limit {
			return "..." + name[len(name)-limit:]
		}
		return name
	}
	end := 0
	for end < len(name) && name[end] != '\n' && name[end] != '\r' && name[end] != 0 {
		end++
	}
	end = min(end, room-len(` [string "..."] `)-1)
	if end < len(name) {
		return `[string "` + name[:end] + `..."]`
	}
	return `[string "` + name + `"]`
}
