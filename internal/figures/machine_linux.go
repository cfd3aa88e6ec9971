package figures

import "syscall"

// multiplexing is the system call by which event loops wait.
const multiplexing = "epoll"

// machine returns the bytes of memory of the machine and the name of its system, which do not
// change while the process runs.
func machine() (totalMemory int64, osName string) {
	var si syscall.Sysinfo_t
	if syscall.Sysinfo(&si) == nil {
		totalMemory = int64(si.Totalram) * int64(si.Unit)
	}
	var u syscall.Utsname
	if syscall.Uname(&u) != nil {
		return totalMemory, "Linux"
	}
	return totalMemory, utsField(u.Sysname) + " " + utsField(u.Release) + " " + utsField(u.Machine)
}

func utsField(f [65]int8) string {
	b := make([]byte, 0, len(f))
	for _, c := range f {
		if c == 0 {
			break
		}
		b = append(b, byte(c))
	}
	return string(b)
}
