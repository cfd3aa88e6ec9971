package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/metrics/admin"
)

// process is what node, proxy and local have in common: the admin server and the event loops, with
// members on them.
type process struct {
	*console
	o      *options
	secret []byte // the cluster's, for gossip; nil: none
	proof  []byte // the secret that members prove to know at each other's data ports; nil: none
	admin  *admin.Admin
	loops  *netloop.Group
	tls    encryption
	memory *memoryShares
	stop   stopStack
}

// serve starts what every server process has, calls start to start its members, and runs until ctx
// ends. nodes is how many of the members are nodes. serve stops whatever was started, also if a
// later part fails to start.
func serve(ctx context.Context, o *options, con *console, nodes int, start func(context.Context, *process) error) error {
	if err := checkTrust(ctx, o); err != nil {
		return err
	}
	if o.loops == 0 {
		o.loops = netloop.DefaultLoops()
	}
	if err := o.checkMemory(nodes, o.loops); err != nil {
		return err
	}
	secret, err := readSecret(o.secretFile)
	if err != nil {
		return err
	}
	p := &process{
		console: con, o: o,
		secret: secret, proof: member.Secret(secret, o.requirePass),
		stop: stopStack{log: con.log, limit: stopTime + o.drainTimeout},
	}
	defer p.stop.stopAll()
	if err := p.startAdmin(); err != nil {
		return err
	}
	if err := p.startTLS(ctx); err != nil {
		return err
	}
	if err := p.startLoops(); err != nil {
		return err
	}
	container := containerMemory(os.DirFS("/"))
	p.warnMemory(int64(nodes)*int64(o.memory), container)
	p.memory = newMemoryShares(o.loops, container)
	if err := start(ctx, p); err != nil {
		return err
	}
	p.memory.run(ctx)
	con.log.Info("stopping")
	p.admin.Drain()
	return nil
}

func (p *process) startAdmin() error {
	server, err := admin.Listen(p.o.admin, admin.Options{
		Version: version(),
		Cluster: p.o.cluster,
		Pprof:   p.o.pprof,
		Token:   adminToken(p.secret),
		Log:     p.log,
	})
	if err != nil {
		return adviseAddress(err, "admin")
	}
	p.admin = server
	p.stop.push("admin HTTP", server.Close)
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

// adviseAddress adds advice to an error about an address that is in use: the usual first obstacle,
// on a machine that already runs a Redis. It compares texts, because memberlist does not wrap
// errors.
func adviseAddress(err error, flag string) error {
	if strings.Contains(err.Error(), syscall.EADDRINUSE.Error()) {
		return fmt.Errorf("%w (--%s chooses another address)", err, flag)
	}
	return err
}
