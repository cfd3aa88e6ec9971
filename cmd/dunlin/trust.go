package main

import (
	"context"
	"fmt"
	"net"
	"time"
)

// checkTrust enforces the trust rule: members believe each other's tables and hand each other data,
// and the secret is what proves a member. Without a secret, a process binds, advertises and joins
// loopback addresses only: whoever can connect there already has access to this machine. --insecure
// lifts the rule.
func checkTrust(ctx context.Context, o *options) error {
	if o.secretFile != "" || o.insecure {
		return nil
	}
	type address struct{ flag, value string }
	all := []address{{"listen", o.listen}, {"gossip", o.gossip}, {"admin", o.admin}}
	if o.advertise != "" {
		all = append(all, address{"advertise", net.JoinHostPort(o.advertise, "0")})
	}
	for _, j := range o.join {
		all = append(all, address{"join", j})
	}
	for _, a := range all {
		if a.value != "" && !isLoopback(ctx, a.value) {
			return fmt.Errorf("--%s %s is not a loopback address, and this member has no secret: "+
				"give every member the same --secret-file, or --insecure on a network where you trust everyone",
				a.flag, a.value)
		}
	}
	return nil
}

// isLoopback reports whether address can only mean this machine. A name does if it resolves, and to
// loopback addresses alone; no host (":6379") means every interface.
func isLoopback(ctx context.Context, address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	if ip := net.ParseIP(host); ip != nil {
		return ip.IsLoopback()
	}
	if host == "" {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	ips, err := net.DefaultResolver.LookupIPAddr(ctx, host)
	if err != nil || len(ips) == 0 {
		return false
	}
	for _, ip := range ips {
		if !ip.IP.IsLoopback() {
			return false
		}
	}
	return true
}
