package main

import (
	"log/slog"
	"syscall"
)

const (
	// tlsDescriptors is how many descriptors a connection with TLS takes: its socket, and both ends of
	// a socket pair.
	tlsDescriptors = 3
	// spareDescriptors are kept for what is no client's: members, gossip, the admin address, files.
	spareDescriptors = 1024
)

// fitDescriptors lowers --maxclients to what the process's limit of descriptors allows. Otherwise
// clients could take the last descriptor, and neither members nor the admin address would answer.
func (o *options) fitDescriptors(log *slog.Logger) {
	var files syscall.Rlimit // Go has raised the soft limit to the hard one
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return
	}
	most := clientsFor(files.Cur, o.clientTLS.Cert != "" || o.clusterTLS.Cert != "")
	if uint64(o.maxClients) <= most {
		return
	}
	log.Warn("--maxclients is lowered to what the limit of open files allows", "maxclients", o.maxClients, "lowered_to", most,
		"open_files", files.Cur, "advice", "raise the limit: ulimit -n, LimitNOFILE of systemd, nofile of the container")
	o.maxClients = int(most)
}

// clientsFor returns how many clients fit into so many descriptors: at least one, and at most three
// quarters of them.
func clientsFor(descriptors uint64, tls bool) uint64 {
	most := descriptors - min(spareDescriptors, descriptors/4)
	if tls {
		most /= tlsDescriptors
	}
	return max(1, most)
}
