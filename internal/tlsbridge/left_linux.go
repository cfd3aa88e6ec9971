//go:build !portable

package tlsbridge

import (
	"encoding/binary"
	"net"
	"syscall"
)

// established is the TCP_ESTABLISHED of Linux: the first byte of what TCP_INFO says is the state.
const established = 1

// hasLeft reports whether the peer has finished sending, also if what it sent is unread.
func hasLeft(c net.Conn) (left bool) {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return true // it is closed
	}
	err = raw.Control(func(fd uintptr) {
		info, err := syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_INFO)
		var bytes [4]byte
		binary.NativeEndian.PutUint32(bytes[:], uint32(info))
		left = err == nil && bytes[0] != established
	})
	return left || err != nil
}
