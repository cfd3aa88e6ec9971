package main

import (
	"context"
	"fmt"
	"strings"
	"syscall"

	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/metrics"
	"github.com/dunlin-cache/dunlin/node"
)

// process is what node, proxy and local have in common: the admin server and
// the event loops, with members on them.
type process struct {
	*console
	o      *options
	secret []byte // of the cluster, for gossip; nil: none
	proof  []byte // what its members prove to know to each other's data ports; nil: nothing
	admin  *metrics.Admin
	loops  *netloop.Group
	stop   stopStack
}

// serve starts what every server process has, then its members by start, and
// runs until ctx ends. Whatever was started is stopped, also when a later part
// cannot be.
func serve(ctx context.Context, o *options, con *console, storage int64, start func(context.Context, *process) error) error {
	if err := checkTrust(ctx, o); err != nil {
		return err
	}
	secret, err := readSecret(o.secretFile)
	if err != nil {
		return err
	}
	p := &process{
		console: con, o: o,
		secret: secret, proof: node.InternalSecret(secret, o.requirePass),
		stop: stopStack{log: con.log},
	}
	defer p.stop.stopAll()
	con.log.Debug("memory", "storage", storage, "go_limit", limitGoMemory(storage))
	if err := p.startAdmin(); err != nil {
		return err
	}
	if err := p.startLoops(); err != nil {
		return err
	}
	if err := start(ctx, p); err != nil {
		return err
	}
	<-ctx.Done()
	con.log.Info("stopping")
	p.admin.Drain()
	return nil
}

func (p *process) startAdmin() error {
	admin, err := metrics.Listen(p.o.admin, metrics.Options{
		Version: version(),
		Cluster: p.o.cluster,
		Pprof:   p.o.pprof,
		Log:     p.log,
	})
	if err != nil {
		return adviseAddress(err, "admin")
	}
	p.admin = admin
	p.stop.push("admin HTTP", admin.Close)
	return nil
}

func (p *process) startLoops() error {
	loops, err := netloop.NewGroup(netloop.Config{Loops: p.o.loops, Logger: p.log})
	if err != nil {
		return fmt.Errorf("cannot start event loops: %w", err)
	}
	p.loops = loops
	p.admin.SetLoops(loops)
	p.stop.push("event loops", func(context.Context) error {
		loops.Close()
		return nil
	})
	return nil
}

// adviseAddress adds to an error about an address that is taken how to choose
// another one: the usual first obstacle, where a Redis already runs. By its text,
// because memberlist does not wrap errors.
func adviseAddress(err error, flag string) error {
	if strings.Contains(err.Error(), syscall.EADDRINUSE.Error()) {
		return fmt.Errorf("%w (--%s chooses another address)", err, flag)
	}
	return err
}
