package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/metrics/admin"
)

// process is what node, proxy and local have in common: the admin server and the event loops, with
// members on them.
type process struct {
	*console
	o      *options
	known  *credentials
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
	known, err := newCredentials(o)
	if err != nil {
		return err
	}
	o.fitDescriptors(con.log)
	p := &process{
		console: con, o: o, known: known,
		stop: stopStack{log: con.log, limit: stopTime + o.drainTimeout},
	}
	defer p.stop.stopAll()
	if err := p.startAdmin(); err != nil {
		return err
	}
	if err := p.startTLS(ctx); err != nil {
		return err
	}
	kept := keptBuffers(int64(nodes)*int64(o.memory), o.loops)
	if err := p.startLoops(kept); err != nil {
		return err
	}
	system := os.DirFS("/")
	container := containerMemory(system)
	p.warnMemory(int64(nodes)*int64(o.memory), container)
	p.memory = newMemoryShares(o.loops, kept, p.loops.SetKeep, proxyMemory(container, machineMemory(system)))
	if err := start(ctx, p); err != nil {
		return err
	}
	p.followCredentials(ctx)
	forgetting := time.AfterFunc(startTime, p.forgetProgram)
	defer forgetting.Stop()
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
		Orders:  p.known.orders,
		Readers: p.known.readers,
		Log:     p.log,
	})
	if err != nil {
		return adviseAddress(err, "admin")
	}
	p.admin = server
	for _, f := range p.known.files {
		server.AddCredentials(f.flag, f)
	}
	p.stop.push("admin HTTP", server.Close)
	return nil
}

// followCredentials makes the process follow its files of credentials until it stops.
func (p *process) followCredentials(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	var fresh sync.WaitGroup
	fresh.Go(func() { p.known.keepFresh(ctx, p.log) })
	p.stop.push("credentials", func(context.Context) error {
		cancel()
		fresh.Wait()
		return nil
	})
}

// startLoops starts event loops, each of which keeps so many bytes of free buffers. While they are
// strained, clients that are connected come before those that shake hands. Members' handshakes never
// wait.
func (p *process) startLoops(kept int64) error {
	loops, err := netloop.NewGroup(netloop.Config{
		Loops: p.o.loops, Logger: p.log, Keep: int(kept),
		BusyPoll: p.o.busyPoll, Processors: containerProcessors(os.DirFS("/")),
	})
	if err != nil {
		return fmt.Errorf("cannot start event loops: %w", err)
	}
	p.loops = loops
	if s := p.tls.forClients; s != nil {
		s.RestWhile(loops.IsStrained)
	}
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
