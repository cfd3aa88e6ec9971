package redistest

import (
	"os/exec"
	"syscall"
)

// endWithUs has the kernel end the command when this process dies, whatever the reason.
func endWithUs(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
