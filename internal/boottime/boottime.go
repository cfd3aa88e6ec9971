package boottime

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Now returns the time since an arbitrary moment before the process started. It never steps, and it
// counts the time in which the machine was suspended. It is a system call: a hundred nanoseconds or
// two.
func Now() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(clock, &t); err != nil {
		panic(fmt.Sprintf("BUG: cannot read clock %d: %v", clock, err))
	}
	return time.Duration(t.Nano())
}
