package script

import (
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"strings"
	"sync/atomic"

	"github.com/dunlin-cache/dunlin/internal/lua"
)

// A Script is a compiled body, or a function of a library. It never changes, but for what is known of its runs.
type Script struct {
	SHA   string // of the body: 40 hexadecimal digits in lower case; of a function, its name
	Body  string // of a function: its library
	Flags Flags

	proto    *lua.Prototype
	function *Function // not nil: proto is its library

	skips atomic.Int32 // so many runs are not tried
	longs atomic.Int32 // so many trials in a row were too long
}

const (
	// maxTried is how long the body of a script is at most that is tried, in bytes: code without jumps and calls is
	// executed without a look.
	maxTried = 16 << 10
	// maxSkips is how many runs are not tried after many trials in a row that were too long. After the first such
	// trial, which may have been interrupted, it is one.
	maxSkips int32 = 128
)

// MayTry reports whether the next run may be a trial, and counts it.
func (s *Script) MayTry() bool {
	if len(s.Body) > maxTried {
		return false
	}
	for n := s.skips.Load(); n > 0; n = s.skips.Load() {
		if s.skips.CompareAndSwap(n, n-1) {
			return false
		}
	}
	return true
}

// NoteTrial notes whether a trial was too long. The longer this goes on, the fewer are the trials.
func (s *Script) NoteTrial(long bool) {
	if long {
		s.skips.Store(min(maxSkips, 1<<min(s.longs.Add(1)-1, 30)))
	} else if s.longs.Load() > 0 {
		s.longs.Store(0)
	}
}

// Flags are those of a script's first line: #!lua flags=no-writes,allow-stale
type Flags uint8

// The flags of Redis 7. Only NoWrites changes what a script may do here.
const (
	NoWrites Flags = 1 << iota
	AllowOOM
	AllowStale
	NoCluster
	AllowCrossSlotKeys
)

var flagNames = map[string]Flags{
	"no-writes": NoWrites, "allow-oom": AllowOOM, "allow-stale": AllowStale, "no-cluster": NoCluster,
	"allow-cross-slot-keys": AllowCrossSlotKeys,
}

// chunkName is how messages name a script.
const chunkName = "@user_script"

// SHA1 returns the name of a body.
func SHA1(body []byte) string {
	sum := sha1.Sum(body)
	return hex.EncodeToString(sum[:])
}

// Compile compiles a body. The error is the text of the reply.
func Compile(body string) (*Script, error) {
	s := &Script{SHA: SHA1([]byte(body)), Body: body}
	code, err := s.readShebang()
	if err != nil {
		return nil, err
	}
	if s.proto, err = lua.Compile(chunkName, code); err != nil {
		return nil, errors.New(cut("ERR Error compiling script (new function): " + err.Error()))
	}
	return s, nil
}

// readShebang reads the first line, if it begins with "#!", and returns the code behind it.
func (s *Script) readShebang() (code string, err error) {
	if !strings.HasPrefix(s.Body, "#!") {
		return s.Body, nil
	}
	line, _, found := strings.Cut(s.Body, "\n")
	if !found {
		return "", errors.New("ERR Invalid script shebang")
	}
	words := strings.Fields(line)
	if words[0] != "#!lua" {
		return "", errors.New(cut("ERR Unexpected engine in script shebang: " + words[0]))
	}
	for _, word := range words[1:] {
		list, ok := strings.CutPrefix(word, "flags=")
		if !ok {
			return "", errors.New(cut("ERR Unknown lua shebang option: " + word))
		}
		for name := range strings.SplitSeq(list, ",") {
			flag := flagNames[name]
			if flag == 0 && name != "" {
				return "", errors.New(cut("ERR Unexpected flag in script shebang: " + name))
			}
			s.Flags |= flag
		}
	}
	return s.Body[len(line):], nil // with the end of the line, so that lines are counted from 1
}

// CompileCost is about how many bytes a body of n bytes takes while it is compiled, and then.
func CompileCost(n int) int64 { return int64(n)*(lua.CompileCost+1) + 512 }
