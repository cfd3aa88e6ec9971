package member

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/ring"
)

// FetchSettings reads the settings document of that name from the node whose data port is addr; nil
// if the node does not have it. dial and secret are as for FetchTable.
func FetchSettings(ctx context.Context, dial Dialer, addr string, secret []byte, id ring.SettingsID) (*ring.Settings, error) {
	reply, err := ask(ctx, dial, addr, secret, VerbSettings, string(id.Hash[:]))
	if err != nil {
		return nil, err
	}
	encoded, ok := resp.DecodeBulk(reply)
	if !ok {
		return nil, nil // the null
	}
	s, err := ring.DecodeSettings(encoded)
	if err == nil && s.ID() != id {
		err = fmt.Errorf("document has version %d or another hash, want version %d", s.ID().Version, id.Version)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot fetch settings from %s: %w", addr, err)
	}
	return s, nil
}

// Configure asks the coordinator, whose data port is addr, to change settings. It returns when
// every member has applied them. The error says whether the settings have changed. based is nil, or the hash of the
// document for which the changes were made: if another one holds, the error is ring.ErrSettingsChanged.
func Configure(ctx context.Context, dial Dialer, addr string, secret []byte, based *[32]byte, changes map[string]string) error {
	var args []string
	if based != nil {
		args = append(args, string(based[:]))
	}
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		args = append(args, name, changes[name])
	}
	p, err := DialPeer(ctx, dial, addr, secret, 0)
	if err != nil {
		return fmt.Errorf("cannot ask the coordinator, nothing has changed: %w", err)
	}
	defer p.Close()
	_, err = p.Call(VerbConfigure, args...)
	var refusal *Refusal
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refusal) && strings.HasSuffix(refusal.Text, ring.ErrSettingsChanged.Error()):
		return ring.ErrSettingsChanged
	case errors.As(err, &refusal):
		return errors.New(strings.TrimPrefix(refusal.Text, "ERR "))
	}
	return fmt.Errorf("the cluster's settings may have changed: the coordinator did not answer: %w", err)
}

// ParseConfigure reads the arguments of CONFIGURE, which it copies.
func ParseConfigure(args [][]byte) (based *[32]byte, changes map[string]string, ok bool) {
	if len(args)%2 != 0 {
		based = new([32]byte)
		if len(args[0]) != len(based) {
			return nil, nil, false
		}
		copy(based[:], args[0])
		args = args[1:]
	}
	changes = make(map[string]string)
	for i := 0; i < len(args); i += 2 {
		changes[string(args[i])] = string(args[i+1])
	}
	return based, changes, true
}
