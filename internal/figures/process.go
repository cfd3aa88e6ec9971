package figures

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"os"
	"runtime/metrics"
	"strconv"
	"syscall"
	"time"
)

// Identity is what a process says about itself in INFO.
type Identity struct {
	Version string // dunlin_version
	Role    string // "node" or "proxy", shown as dunlin_role
	RunID   string // 40 hexadecimal digits; drawn at random if ""
	Start   time.Time
	Port    int

	// Hooks are called for each INFO, by the goroutine that answers it.
	Now        func() time.Time // nil: time.Now
	MaxClients func() int
	Blocked    func() int64 // client connections that wait
	// Policy returns Redis's name of the nodes' eviction policy. sum is the sum of the numbers of
	// their policies, squares the sum of the squares of these numbers.
	Policy func(sum, squares, nodes int64) string
}

// Process answers INFO. It is safe for all goroutines.
type Process struct {
	Identity
	totalMemory int64 // bytes of the machine
	osName      string
}

// NewProcess completes an Identity with what the operating system knows.
func NewProcess(id Identity) *Process {
	if id.Now == nil {
		id.Now = time.Now
	}
	if id.RunID == "" {
		id.RunID = randomID()
	}
	p := &Process{Identity: id}
	p.totalMemory, p.osName = machine()
	return p
}

// FillProcess stores a node's share of the process's memory and processor time. nodes is the number
// of nodes in the process. All shares are equal, so that their sum over a cluster is right. counted
// is how many bytes of what the process has for itself are in UsedMemory. FillProcess reads a file
// of /proc: call it for an INFO, not for each request.
func FillProcess(c *Counters, nodes int, counted int64) {
	of := int64(max(nodes, 1))
	resident, program := residentBytes()
	c.RSS, c.Process = resident/of, max(0, (program+heapBytes())/of-counted)
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) == nil {
		c.CPUSysMicros = u.Stime.Nano() / 1000 / of
		c.CPUUserMicros = u.Utime.Nano() / 1000 / of
	}
}

// residentBytes returns the resident memory, and the part of it that is the program's file. Both
// are 0 if /proc cannot be read.
func residentBytes() (all, program int64) {
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, 0
	}
	fields := bytes.Fields(statm) // total, resident, of files, ... in pages
	if len(fields) < 3 {
		return 0, 0
	}
	pages := func(field []byte) int64 {
		n, _ := strconv.ParseInt(string(field), 10, 64)
		return n * int64(os.Getpagesize())
	}
	return pages(fields[1]), pages(fields[2])
}

// heapBytes returns what the Go runtime has from the system.
func heapBytes() int64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return int64(samples[0].Value.Uint64() - samples[1].Value.Uint64())
}

func randomID() string {
	var b [20]byte
	rand.Read(b[:]) // never fails: crypto/rand ends the process instead
	return hex.EncodeToString(b[:])
}
