package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"
)

// checkTrust enforces the trust rule: members believe each other's tables and hand each other data,
// and the secret is what proves a member. Without a secret, a process binds, advertises and joins
// loopback addresses only: whoever can connect there already has access to this machine. --insecure
// lifts that rule.
//
// A password for clients says that not everybody who can connect is trusted, and clients connect to
// the ports of members. So it requires a secret, also on loopback and with --insecure; the members
// of `dunlin local` share one that the process makes up.
func checkTrust(ctx context.Context, o *options) error {
	if o.secretFile != "" {
		return nil
	}
	if (o.requirePass != "" || o.requirePassFile != "") && !o.alone {
		return errors.New("a password for clients needs --secret-file: without a secret, every client could act as a member; " +
			"give every member the same file (openssl rand -hex 32 > secret) and restart them all together, " +
			"because members with and without a secret do not hear each other")
	}
	if o.insecure {
		return nil
	}
	type address struct{ flag, value string }
	all := []address{{"listen", o.listen}, {"gossip", o.gossip}, {"admin", o.admin}, {"sentinel-listen", o.sentinel}}
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
