package main

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"
)

// advertiseIP returns the address under which others reach a socket bound to
// bound. A name is resolved once, here: tables and redirects carry addresses,
// so that no client and no member needs this cluster's name service.
func advertiseIP(ctx context.Context, advertise, bound string) (string, error) {
	host := advertise
	if host == "" {
		h, _, err := net.SplitHostPort(bound)
		if err != nil {
			return "", fmt.Errorf("cannot advertise %q: %w", bound, err)
		}
		host = h
	}
	if ip := net.ParseIP(host); ip != nil && !ip.IsUnspecified() {
		return ip.String(), nil
	}
	if host == "" || net.ParseIP(host) != nil {
		return interfaceIP()
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	ips, err := net.DefaultResolver.LookupIPAddr(ctx, host)
	if err != nil {
		return "", fmt.Errorf("cannot advertise %q: %w", host, err)
	}
	return ips[0].IP.String(), nil
}

// interfaceIP chooses among this machine's own addresses when it listens on all
// of them: the first private IPv4 one, else the first that is not loopback.
func interfaceIP() (string, error) {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return "", fmt.Errorf("cannot list interface addresses: %w", err)
	}
	best := ""
	for _, a := range addresses {
		n, ok := a.(*net.IPNet)
		if !ok || !n.IP.IsGlobalUnicast() {
			continue
		}
		if n.IP.To4() != nil && n.IP.IsPrivate() {
			return n.IP.String(), nil
		}
		if best == "" {
			best = n.IP.String()
		}
	}
	if best == "" {
		return "", fmt.Errorf("cannot choose an address to advertise: this machine has loopback only (give --advertise)")
	}
	return best, nil
}

// portAfter returns address with its port raised by n. Port 0 stays: the system
// chooses each time.
func portAfter(address string, n int) (string, error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return "", fmt.Errorf("cannot use address %q: %w", address, err)
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return "", fmt.Errorf("cannot use address %q: port: %w", address, err)
	}
	if port == 0 {
		return address, nil
	}
	if port+uint64(n) > 65535 {
		return "", fmt.Errorf("cannot use address %q: %d ports after it are needed", address, n)
	}
	return net.JoinHostPort(host, strconv.FormatUint(port+uint64(n), 10)), nil
}
