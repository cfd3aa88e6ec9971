package command

// IdempotentCall reports whether this call may be sent again after its reply
// was lost. args is the whole request, read during the call only.
func (c *Command) IdempotentCall(args [][]byte) bool {
	if c.Flags&Idempotent == 0 {
		return false
	}
	return c.repeatable == nil || c.repeatable(args)
}

// plainSet reports whether a SET has no options but an expiry. The result of NX, XX and GET depends
// on what the first execution left. An option that is not known here counts as one of those.
func plainSet(args [][]byte) bool { return plainOptions(args[min(3, len(args)):]) }

// plainMSetEx does for MSETEX what plainSet does for SET.
func plainMSetEx(args [][]byte) bool {
	n, ok := count(args[1])
	return ok && n <= (len(args)-2)/2 && plainOptions(args[2+2*n:])
}

func plainOptions(options [][]byte) bool {
	for i := 0; i < len(options); i++ {
		switch {
		case EqualFold(options[i], "KEEPTTL"):
		case EqualFold(options[i], "EX"), EqualFold(options[i], "PX"),
			EqualFold(options[i], "EXAT"), EqualFold(options[i], "PXAT"):
			i++ // its argument
		default:
			return false
		}
	}
	return true
}

// plainExpire reports whether EXPIRE, or a command like it, has no condition and a time above zero.
// With zero or less it deletes the key, and a second reply says 0 where the first said 1. An
// absolute time in the past does so too, but is rarely intended.
func plainExpire(args [][]byte) bool {
	return len(args) == 3 && len(args[2]) > 0 && '1' <= args[2][0] && args[2][0] <= '9'
}
