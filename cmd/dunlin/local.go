package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/dunlin-cache/dunlin/metrics/status"
)

// serveLocal runs a whole cluster in this process: --nodes nodes and a proxy, which share one set
// of event loops and one admin address. The members find each other by gossip, like any others, on
// ports that the system chooses. So two local clusters never meet by accident.
func serveLocal(ctx context.Context, o *options, con *console) error {
	return serve(ctx, o, con, o.nodes, func(ctx context.Context, p *process) error {
		var (
			join  []string // the first node's gossip address, once it is known
			nodes []string
		)
		for i := range o.nodes {
			listen, err := portAfter(o.listen, i+1)
			if err != nil {
				return err
			}
			m, err := p.startNode(ctx, memberOptions{
				id:     fmt.Sprintf("node-%d", i+1),
				listen: listen,
				gossip: loopback("0"),
				join:   join,
				whole:  true,
			}, o.nodes)
			if err != nil {
				return err
			}
			join = []string{m.gossip}
			nodes = append(nodes, m.addr)
		}
		p.stop.push("streams", func(context.Context) error { // before any of those who receive them
			for _, n := range p.memory.nodes {
				n.EndStreams()
			}
			return nil
		})
		m, err := p.startProxy(ctx, memberOptions{
			id:     "proxy",
			listen: o.listen,
			gossip: loopback("0"),
			join:   join,
			whole:  true,
		}, &nodesBudget{nodes: p.memory.nodes})
		if err != nil {
			return err
		}
		p.introduce(m.addr, nodes)
		return nil
	})
}

// introduce prints what runs where, for a person at a terminal.
func (p *process) introduce(proxy string, nodes []string) {
	fmt.Fprintf(p.out, "Dunlin runs %d nodes of %s and a proxy.\n\n", len(nodes), status.BytesText(int64(p.o.memory)))
	fmt.Fprintf(p.out, "  clients  %s\n", proxy)
	fmt.Fprintf(p.out, "  nodes    %s\n", strings.Join(nodes, " "))
	fmt.Fprintf(p.out, "  admin    http://%s\n\n", p.admin.Addr())
	if host, port, err := net.SplitHostPort(proxy); err == nil {
		tls := ""
		if p.o.clientTLS.Cert != "" {
			tls = " --tls"
		}
		fmt.Fprintf(p.out, "Try:  redis-cli -h %s -p %s%s set greeting hello\n", host, port, tls)
	}
	fmt.Fprintf(p.out, "      %s status --admin %s\n\n", os.Args[0], reachable(p.admin.Addr()))
}
