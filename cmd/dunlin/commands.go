package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
)

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "dunlin",
		Short: "A Redis-protocol cache cluster",
		Long: "Dunlin is a Redis-protocol cache cluster: connect any Redis client to a proxy;\n" +
			"add and remove nodes at any time.\n\n" +
			"Every flag can also be set by an environment variable (--secret-file:\n" +
			"DUNLIN_SECRET_FILE) or in the YAML file given by --config (secret-file: ...).\n" +
			"Flags override variables, and variables override the file.",
		Version: version(),
		// An error is printed once, by run, without the whole usage text after it.
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetVersionTemplate("dunlin {{.Version}}\n")
	root.AddCommand(localCommand(), nodeCommand(), proxyCommand(), statusCommand(), topCommand(),
		drainCommand(), rebalanceCommand(), versionCommand())
	return root
}

// serverCommand is the part that local, node and proxy share: settings are
// loaded and checked, then serve runs until ctx ends.
func serverCommand(use, short string, o *options, serve func(context.Context, *options, *console) error) *cobra.Command {
	var file string
	c := &cobra.Command{
		Use:   use,
		Short: short,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := loadSettings(cmd, file); err != nil {
				return err
			}
			if err := o.check(cmd.Flags()); err != nil {
				return err
			}
			con, err := newConsole(cmd, o)
			if err != nil {
				return err
			}
			return serve(cmd.Context(), o, con)
		},
	}
	c.Flags().StringVar(&file, "config", "", "YAML file with settings (also DUNLIN_CONFIG)")
	o.addCommon(c.Flags())
	return c
}

func nodeCommand() *cobra.Command {
	o := &options{}
	c := serverCommand("node", "Run a storage node", o, serveNode)
	o.addMember(c.Flags())
	o.addNode(c.Flags())
	return c
}

func proxyCommand() *cobra.Command {
	o := &options{}
	c := serverCommand("proxy", "Run a proxy, to which clients connect", o, serveProxy)
	o.addMember(c.Flags())
	o.addProxy(c.Flags())
	c.Long = "Proxy forwards the commands of any Redis client to the nodes that own their keys.\n\n" +
		"It uses the memory that its container allows or, without a container limit, a quarter\n" +
		"of the machine's. Half of that is for requests and replies in flight; a client that\n" +
		"needs more is closed."
	return c
}

func localCommand() *cobra.Command {
	o := &options{alone: true}
	c := serverCommand("local", "Run a whole cluster in this process: nodes and a proxy", o, serveLocal)
	o.addLocal(c.Flags())
	return c
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			fmt.Fprintf(cmd.OutOrStdout(), "dunlin %s\n", version())
		},
	}
}
