package session

import (
	"bytes"
	"slices"
	"strings"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/internal/tracking"
)

// CLIENT TRACKING and its like. A connection that tracks is Aside, so that others pay nothing; the caller asks
// TracksNow for each of its commands, and marks the keys of those that read. ActionTracking tells the caller
// that Tracking has changed.

// Limits of prefixes. Redis has none, but each change of a key is compared with all lengths of prefixes.
const (
	maxPrefixes    = 64
	maxPrefixBytes = 4 << 10
)

// Texts of Redis, and three of Dunlin's own.
const (
	errRedirectTwice  = "ERR A client can only redirect to a single other client"
	errRedirectNobody = "ERR The client ID you want redirect to does not exist"
	errPrefixAlone    = "ERR PREFIX option requires BCAST mode to be enabled"
	errSwitchBCast    = "ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then re-enabling it with a different mode."
	errOptBCast       = "ERR OPTIN and OPTOUT are not compatible with BCAST"
	errOptBoth        = "ERR You can't specify both OPTIN mode and OPTOUT mode"
	errSwitchOpt      = "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then re-enabling it with a different mode."
	errCachingOff     = "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled"
	errCachingYes     = "ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode."
	errCachingNo      = "ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode."
	errManyPrefixes   = "ERR too many prefixes: a connection can have 64"
	errLongPrefix     = "ERR the prefix is too long: 4096 bytes are allowed"
)

// Tracking is what a connection has asked for by CLIENT TRACKING ON.
type Tracking struct {
	BCast, OptIn, OptOut, NoLoop bool

	Redirect uint64   // whose connection gets the invalidations; 0: the own one
	Broken   bool     // that connection has gone
	Prefixes []string // with BCAST: one at least, sorted
	caching  bool     // CLIENT CACHING was given: the next command, or transaction, is the exception
}

// TracksNow reports whether the keys that the present command reads are tracked.
func (st *State) TracksNow() bool {
	t := st.Tracking
	switch {
	case t == nil || t.BCast:
		return false
	case t.OptIn:
		return t.caching
	case t.OptOut:
		return !t.caching
	}
	return true
}

// TracksOnly reports whether the connection is Apart for nothing but its tracking.
func (st *State) TracksOnly() bool {
	return st.Tracking != nil && st.muting == 0 && !st.paused && !st.Blocked && !st.Multi && !st.listensOnly()
}

// SetTracking has the connection track, or not if t is nil.
func (st *State) SetTracking(t *Tracking) {
	st.Tracking = t
	st.setApart()
}

// Directory returns the connections of the process by their ids.
func (s *Server) Directory() *tracking.Directory { return &s.directory }

// endCaching forgets CLIENT CACHING behind the command that it was about.
func (st *State) endCaching() {
	if !st.Multi && !isOfClient(st.LastCmd) {
		st.Tracking.caching = false
	}
}

// isOfClient reports whether a command is a subcommand of CLIENT.
func isOfClient(id command.ID) bool {
	c := command.ByID(id)
	return c != nil && strings.HasPrefix(c.Name, "client|")
}

// clientTracking executes CLIENT TRACKING ON|OFF [REDIRECT id] [PREFIX prefix]... [BCAST] [OPTIN] [OPTOUT] [NOLOOP].
func clientTracking(s *Server, st *State, args [][]byte, dst []byte) ([]byte, Action) {
	asked, refusal := s.parseTracking(args[3:])
	switch on := command.EqualFold(args[2], "on"); {
	case refusal == "" && on:
		refusal = st.refuseTracking(asked)
	case refusal == "" && !command.EqualFold(args[2], "off"):
		refusal = command.ErrSyntax
	case refusal == "":
		asked = nil
	}
	if refusal != "" {
		return resp.AppendError(dst, refusal), ActionNone
	}
	if asked != nil && asked.BCast {
		if asked.Prefixes = append(asked.Prefixes, st.prefixes()...); len(asked.Prefixes) == 0 {
			asked.Prefixes = []string{""}
		}
		slices.Sort(asked.Prefixes)
		asked.Prefixes = slices.Compact(asked.Prefixes)
	}
	if asked != nil && st.Tracking != nil {
		asked.caching = st.Tracking.caching
	}
	st.SetTracking(asked)
	return resp.AppendOK(dst), ActionTracking
}

// parseTracking parses the options of CLIENT TRACKING.
func (s *Server) parseTracking(options [][]byte) (t *Tracking, refusal string) {
	if len(options) > 4*maxPrefixes {
		return nil, errManyPrefixes
	}
	t = new(Tracking)
	for i := 0; i < len(options); i++ {
		more := i+1 < len(options)
		switch option := options[i]; {
		case command.EqualFold(option, "redirect") && more:
			i++
			if t.Redirect != 0 {
				return nil, errRedirectTwice
			}
			id, ok := resp.ParseInt(options[i])
			if !ok {
				return nil, command.ErrNotInteger
			}
			if s.directory.Find(uint64(id)) == nil {
				return nil, errRedirectNobody
			}
			t.Redirect = uint64(id)
		case command.EqualFold(option, "bcast"):
			t.BCast = true
		case command.EqualFold(option, "optin"):
			t.OptIn = true
		case command.EqualFold(option, "optout"):
			t.OptOut = true
		case command.EqualFold(option, "noloop"):
			t.NoLoop = true
		case command.EqualFold(option, "prefix") && more:
			i++
			t.Prefixes = append(t.Prefixes, string(options[i]))
		default:
			return nil, command.ErrSyntax
		}
	}
	return t, ""
}

// refuseTracking returns why the connection cannot track in this way, or "".
func (st *State) refuseTracking(t *Tracking) string {
	old := st.Tracking
	switch {
	case !t.BCast && len(t.Prefixes) > 0:
		return errPrefixAlone
	case old != nil && old.BCast != t.BCast:
		return errSwitchBCast
	case t.BCast && (t.OptIn || t.OptOut):
		return errOptBCast
	case t.OptIn && t.OptOut:
		return errOptBoth
	case old != nil && (t.OptIn && old.OptOut || t.OptOut && old.OptIn):
		return errSwitchOpt
	case len(t.Prefixes)+len(st.prefixes()) > maxPrefixes:
		return errManyPrefixes
	}
	for i, p := range t.Prefixes {
		if len(p) > maxPrefixBytes {
			return errLongPrefix
		}
		for _, q := range st.prefixes() {
			if overlap(p, q) {
				return overlapError(p, "an existing", q)
			}
		}
		for _, q := range t.Prefixes[i+1:] {
			if overlap(p, q) {
				return overlapError(p, "another provided", q)
			}
		}
	}
	return ""
}

func (st *State) prefixes() []string {
	if st.Tracking == nil {
		return nil
	}
	return st.Tracking.Prefixes
}

func overlap(p, q string) bool { return strings.HasPrefix(p, q) || strings.HasPrefix(q, p) }

func overlapError(p, which, q string) string {
	return "ERR Prefix '" + oneLine(p) + "' overlaps with " + which + " prefix '" + oneLine(q) +
		"'. Prefixes for a single client must not overlap."
}

// oneLine is p as it may stand in an error.
func oneLine(p string) string { return string(bytes.Map(lineRune, []byte(p))) }

func lineRune(r rune) rune {
	if r == '\r' || r == '\n' {
		return ' '
	}
	return r
}

// clientCaching executes CLIENT CACHING YES|NO.
func clientCaching(_ *Server, st *State, args [][]byte, dst []byte) ([]byte, Action) {
	refusal, t := "", st.Tracking
	switch yes := command.EqualFold(args[2], "yes"); {
	case t == nil:
		refusal = errCachingOff
	case yes && !t.OptIn:
		refusal = errCachingYes
	case !yes && !command.EqualFold(args[2], "no"):
		refusal = command.ErrSyntax
	case !yes && !t.OptOut:
		refusal = errCachingNo
	default:
		t.caching = true
		return resp.AppendOK(dst), ActionNone
	}
	return resp.AppendError(dst, refusal), ActionNone
}

// redirect is what CLIENT GETREDIR answers.
func (st *State) redirect() int64 {
	if st.Tracking == nil {
		return -1
	}
	return int64(st.Tracking.Redirect)
}

func clientGetRedir(_ *Server, st *State, _ [][]byte, dst []byte) ([]byte, Action) {
	return resp.AppendInt(dst, st.redirect()), ActionNone
}

func clientTrackingInfo(_ *Server, st *State, _ [][]byte, dst []byte) ([]byte, Action) {
	flags := st.Tracking.flags()
	dst = resp.AppendMap(dst, st.Version, 3)
	dst = resp.AppendBulkString(dst, "flags")
	dst = resp.AppendSet(dst, st.Version, len(flags))
	for _, f := range flags {
		dst = resp.AppendBulkString(dst, f)
	}
	dst = resp.AppendBulkString(dst, "redirect")
	dst = resp.AppendInt(dst, st.redirect())
	dst = resp.AppendBulkString(dst, "prefixes")
	dst = resp.AppendArray(dst, len(st.prefixes()))
	for _, p := range st.prefixes() {
		dst = resp.AppendBulkString(dst, p)
	}
	return dst, ActionNone
}

// flags are the words of CLIENT TRACKINGINFO.
func (t *Tracking) flags() (words []string) {
	if t == nil {
		return []string{"off"}
	}
	words = []string{"on"}
	for _, f := range []struct {
		on   bool
		word string
	}{
		{t.BCast, "bcast"},
		{t.OptIn, "optin"}, {t.OptIn && t.caching, "caching-yes"},
		{t.OptOut, "optout"}, {t.OptOut && t.caching, "caching-no"},
		{t.NoLoop, "noloop"}, {t.Broken, "broken_redirect"},
	} {
		if f.on {
			words = append(words, f.word)
		}
	}
	return words
}
