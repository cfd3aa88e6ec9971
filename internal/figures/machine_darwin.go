package figures

import (
	"strings"
	"syscall"
)

// multiplexing is the system call by which event loops wait.
const multiplexing = "poll"

// machine returns the bytes of memory of the machine and the name of its system, which do not
// change while the process runs. What the system does not answer is left out.
func machine() (totalMemory int64, osName string) {
	memory, _ := syscall.Sysctl("hw.memsize") // eight bytes, little end first, a trailing zero cut off
	for i := len(memory) - 1; i >= 0; i-- {
		totalMemory = totalMemory<<8 | int64(memory[i])
	}
	var names []string
	for _, about := range []string{"kern.ostype", "kern.osrelease", "hw.machine"} {
		if name, err := syscall.Sysctl(about); err == nil {
			names = append(names, name)
		}
	}
	return totalMemory, strings.Join(names, " ")
}
