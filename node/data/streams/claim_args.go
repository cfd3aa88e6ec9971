package streams

import "github.com/dunlin-cache/dunlin/node/exec"

// claimNamed is an XCLAIM.
type claimNamed struct {
	claiming
	next   int  // the argument that is parsed next; 0: the first one
	parsed bool // all are
	ids    int  // IDs among them
	done   int  // so many of which are dealt with
	last   ID   // LASTID
}

// firstClaimed is the argument that is the first ID of XCLAIM.
const firstClaimed = 5

// parse parses the arguments of XCLAIM, not more than checkedAtOnce in each run. The first one that is no ID
// is the first option.
func (c *claimNamed) parse(args [][]byte, now int64) (problem string) {
	if c.next == 0 {
		c.next, c.delivered, c.count = firstClaimed, now, oneMore
		if c.minIdle, problem = intOption(args[4], ErrClaimIdle); problem != "" {
			return problem
		}
	}
	for range checkedAtOnce {
		if c.next >= len(args) {
			break
		}
		if c.next == firstClaimed+c.ids {
			if _, ok := parseID(args[c.next], 0); ok {
				c.ids++
				c.next++
				continue
			}
		}
		if problem = c.parseOption(args, now); problem != "" {
			return problem
		}
	}
	c.parsed = c.next >= len(args)
	return ""
}

// parseOption parses the option that is the next argument.
func (c *claimNamed) parseOption(args [][]byte, now int64) (problem string) {
	option, more := args[c.next], c.next+1 < len(args)
	c.next++
	switch {
	case exec.Is(option, "FORCE"):
		c.force = true
		return ""
	case exec.Is(option, "JUSTID"):
		c.justID = true
		return ""
	case !more:
		return unrecognized(option)
	}
	arg, n, ok := args[c.next], int64(0), false
	c.next++
	switch {
	case exec.Is(option, "IDLE"):
		if n, problem = intOption(arg, ErrClaimIdleOpt); problem == "" {
			c.deliver(now-n, now)
		}
	case exec.Is(option, "TIME"):
		if n, problem = intOption(arg, ErrClaimTime); problem == "" {
			c.deliver(n, now)
		}
	case exec.Is(option, "RETRYCOUNT"):
		n, problem = intOption(arg, ErrClaimRetry)
		c.count = max(n, oneMore)
	case exec.Is(option, "LASTID"):
		if c.last, ok = parseID(arg, 0); !ok {
			problem = ErrID
		}
	default:
		problem = unrecognized(option)
	}
	return problem
}

// deliver sets the time of delivery. Times that make no sense count as now.
func (c *claimNamed) deliver(at, now int64) {
	if c.delivered = at; at < 0 || at > now {
		c.delivered = now
	}
}
