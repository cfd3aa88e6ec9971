package boottime

import "golang.org/x/sys/unix"

// On Darwin CLOCK_MONOTONIC goes on in sleep; it is CLOCK_UPTIME_RAW that stands still.
const clock = unix.CLOCK_MONOTONIC
