package main

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"
)

// advertiseIP returns the address under which others reach a socket bound to bound. It resolves a
// name once, here: tables and redirects carry addresses, so no client and no member needs this
// cluster's name service.
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

// interfaceIP chooses the address to advertise for a member that listens on all interfaces: the
// first private IPv4 address, or else the first address that is not loopback.
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
		return "", fmt.Errorf("cannot choose an address to advertise: this machine has only loopback addresses (give --advertise)")
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
		return "", fmt.Errorf("cannot use address %q: the %d ports after it are needed too", address, n)
	}
	return net.JoinHostPort(host, strconv.FormatUint(port+uint64(n), 10)), nil
}
