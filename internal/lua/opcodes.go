package lua

// An instruction is 64 bits:
//
//	| op 8 | a 8 | b 8 | c 8 | d 32, signed |
//
// a, b and c name registers, or are small numbers; d is the index of a constant, or how far to jump
// from the next instruction. R[x] is a register, K[x] a constant, U[x] an upvalue.
type instruction uint64

type opcode uint8

const (
	opMove      opcode = iota // R[a] = R[b]
	opLoadK                   // R[a] = K[d]
	opLoadNil                 // R[a … b] = nil
	opLoadBool                // R[a] = (b != 0); skip the next instruction if c
	opGetUpval                // R[a] = U[b]
	opSetUpval                // U[b] = R[a]
	opGetGlobal               // R[a] = globals[K[d]]
	opSetGlobal               // globals[K[d]] = R[a]
	opGetTable                // R[a] = R[b][R[c]]
	opGetField                // R[a] = R[b][K[d]], K[d] is a string
	opGetInt                  // R[a] = R[b][d]
	opSetTable                // R[a][R[b]] = R[c]
	opSetField                // R[a][K[d]] = R[c], K[d] is a string
	opSetInt                  // R[a][d] = R[c]
	opSelf                    // R[a+1] = R[b]; R[a] = R[b][K[d]]
	opNewTable                // R[a] = {} with room for d elements and c fields, both as sizeCode
	opAdd                     // R[a] = R[b] + R[c], and so on
	opSub
	opMul
	opDiv
	opMod
	opPow
	opAddK // R[a] = R[b] + K[d], K[d] is a number, and so on
	opSubK
	opMulK
	opDivK
	opModK
	opPowK
	opUnm    // R[a] = -R[b]
	opNot    // R[a] = not R[b]
	opLen    // R[a] = #R[b]
	opConcat // R[a] = R[b] .. … .. R[c]
	opJump   // jump d
	opIf     // if truthy(R[a]) == c: jump d
	opIfSet  // if truthy(R[b]) == c: R[a] = R[b], jump d
	opEq     // if (R[a] == R[b]) == c: jump d
	opLt     // if (R[a] < R[b]) == c: jump d
	opLe     // if (R[a] <= R[b]) == c: jump d
	opEqK    // if (R[a] == K[b]) == c: jump d
	opLtK    // if (R[a] < K[b]) == c: jump d, K[b] is a number
	opLeK    // if (R[a] <= K[b]) == c: jump d
	opGtK    // if (K[b] < R[a]) == c: jump d
	opGeK    // if (K[b] <= R[a]) == c: jump d
	opCall   // R[a …] = R[a](R[a+1 … a+b-1]), c-1 results; b = 0: to the top, c = 0: all results
	opTail   // return R[a](R[a+1 … a+b-1])
	opReturn // return R[a … a+b-2]; b = 0: to the top
	opForPrep
	opForLoop // R[a] += R[a+2]; if R[a] has not passed R[a+1]: R[a+3] = R[a], jump d
	opForIn   // R[a+3 … a+2+c] = R[a](R[a+1], R[a+2]); if R[a+3] ~= nil: R[a+2] = R[a+3], jump d
	opSetList // R[a][d+i] = R[a+i] for 1 <= i <= b; b = 0: to the top
	opClose   // close the upvalues of R[a] and above
	opClosure // R[a] = a closure of prototype d
	opVararg  // R[a …] = the first b-1 variable arguments; b = 0: all
)

func encode(op opcode, a, b, c int) instruction {
	return instruction(op) | instruction(uint8(a))<<8 | instruction(uint8(b))<<16 | instruction(uint8(c))<<24
}

func encodeD(op opcode, a, b, c, d int) instruction {
	return encode(op, a, b, c) | instruction(uint32(int32(d)))<<32
}

func (i instruction) op() opcode { return opcode(i) }
func (i instruction) a() uint8   { return uint8(i >> 8) }
func (i instruction) b() uint8   { return uint8(i >> 16) }
func (i instruction) c() uint8   { return uint8(i >> 24) }
func (i instruction) d() int     { return int(int32(i >> 32)) }

func (i instruction) withA(a int) instruction { return i&^(0xff<<8) | instruction(uint8(a))<<8 }
func (i instruction) withB(b int) instruction { return i&^(0xff<<16) | instruction(uint8(b))<<16 }
func (i instruction) withC(c int) instruction { return i&^(0xff<<24) | instruction(uint8(c))<<24 }
func (i instruction) withD(d int) instruction {
	return i&(1<<32-1) | instruction(uint32(int32(d)))<<32
}

// jumpsIf reports whether i is one of the instructions that jump if something equals c.
func (i instruction) jumpsIf() bool { return i.op() >= opIf && i.op() <= opGeK }

// sizeCode rounds a size hint up as Lua 5.1 does, to three bits and an exponent: the sizes that tables
// are made with decide the order in which they are walked.
func sizeCode(n int) int {
	e := 0
	for n >= 16 {
		n = (n + 1) >> 1
		e++
	}
	if n < 8 {
		return n
	}
	return (e+1)<<3 | (n - 8)
}

func codedSize(code int) int {
	if e := code >> 3; e != 0 {
		return (code&7 + 8) << (e - 1)
	}
	return code
}
