package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/spf13/pflag"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/tlsbridge"
)

// addClusterTLS registers the flags of TLS between members.
func (o *options) addClusterTLS(f *pflag.FlagSet) {
	f.StringVar(&o.clusterTLS.Cert, "cluster-tls-cert", "",
		"PEM certificate of this member, for TLS between members and for clients of a node")
	f.StringVar(&o.clusterTLS.Key, "cluster-tls-key", "", "private key of --cluster-tls-cert")
	f.StringVar(&o.clusterTLS.CA, "cluster-tls-ca", "",
		"PEM certificate of the CA that signs all members' certificates; both ends of a connection verify")
}

// addClientTLS registers the flags of TLS for clients.
func (o *options) addClientTLS(f *pflag.FlagSet) {
	f.StringVar(&o.clientTLS.Cert, "tls-cert", "",
		"PEM certificate for clients; the client address then speaks TLS only")
	f.StringVar(&o.clientTLS.Key, "tls-key", "", "private key of --tls-cert")
	f.StringVar(&o.clientTLS.CA, "tls-ca", "",
		"PEM certificate of the CA that must sign clients' certificates (default: clients need none)")
}

// checkTLS refuses an incomplete set of TLS flags.
func (o *options) checkTLS() error {
	client, cluster := o.clientTLS, o.clusterTLS
	switch {
	case (client.Cert == "") != (client.Key == ""):
		return errors.New("--tls-cert and --tls-key belong together: give both or neither")
	case client.CA != "" && client.Cert == "":
		return errors.New("--tls-ca needs TLS for clients: give --tls-cert and --tls-key too")
	case cluster != tlsbridge.Files{} && (cluster.Cert == "" || cluster.Key == "" || cluster.CA == ""):
		return errors.New("--cluster-tls-cert, --cluster-tls-key and --cluster-tls-ca belong together: give all or none")
	}
	return nil
}

// encryption holds the certificates of the process. A nil field means plain TCP.
type encryption struct {
	forClients *tlsbridge.Server
	forMembers *tlsbridge.Server
	toMembers  *tlsbridge.Dialer
}

// startTLS reads the certificates and keeps them fresh until the process stops.
func (p *process) startTLS(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var fresh sync.WaitGroup
	p.stop.push("certificates", func(context.Context) error {
		cancel()
		fresh.Wait()
		return nil
	})
	p.stop.push("TLS", p.tls.drain)
	load := func(flag string, f tlsbridge.Files) (*tlsbridge.Certificates, error) {
		c, err := tlsbridge.Load(f)
		if err != nil {
			return nil, fmt.Errorf("--%s: %w", flag, err)
		}
		fresh.Go(func() { c.KeepFresh(ctx, p.log) })
		return c, nil
	}
	if p.o.clientTLS.Cert != "" {
		c, err := load("tls-cert", p.o.clientTLS)
		if err != nil {
			return err
		}
		p.tls.forClients = tlsbridge.NewServer(c, p.log)
		p.admin.AddTLS("clients", p.tls.forClients)
	}
	if p.o.clusterTLS.Cert != "" {
		c, err := load("cluster-tls-cert", p.o.clusterTLS)
		if err != nil {
			return err
		}
		p.tls.forMembers, p.tls.toMembers = tlsbridge.NewServer(c, p.log), tlsbridge.NewDialer(c)
		p.admin.AddTLS("members", p.tls.forMembers)
	}
	return nil
}

// drain waits until the bridges have sent everything that was written to them.
func (e *encryption) drain(ctx context.Context) error {
	var errs []error
	for _, s := range []*tlsbridge.Server{e.forClients, e.forMembers} {
		if s != nil {
			errs = append(errs, s.Drain(ctx))
		}
	}
	return errors.Join(errs...)
}

// clients returns the wrapper of the connections that a proxy accepts.
func (e *encryption) clients() netloop.Wrapper { return wrapper(e.forClients) }

// members returns the wrapper of the connections that a node accepts.
func (e *encryption) members() netloop.Wrapper { return wrapper(e.forMembers) }

func wrapper(s *tlsbridge.Server) netloop.Wrapper {
	if s == nil {
		return nil // a nil *Server in an interface would not be nil
	}
	return s
}

// dialer connects to nodes for callers that may block, pipeDialer for loops.
func (e *encryption) dialer() member.Dialer {
	if e.toMembers == nil {
		return nil
	}
	return e.toMembers.Dial
}

func (e *encryption) pipeDialer() netloop.Dialer {
	if e.toMembers == nil {
		return nil
	}
	return e.toMembers.DialFD
}
