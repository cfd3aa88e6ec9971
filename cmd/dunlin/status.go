package main

import (
	"context"
	"encoding/json"
	"net"
	"time"

	"github.com/spf13/cobra"

	"github.com/dunlin-cache/dunlin/metrics/status"
)

func statusCommand() *cobra.Command {
	var (
		admin     string
		tokenFile string
		asJSON    bool
		timeout   time.Duration
	)
	c := &cobra.Command{
		Use:   "status",
		Short: "Show the members of a cluster, their state and load",
		Long: "Status asks one member for the members that it knows, then each of them for its\n" +
			"figures. Operations and hit ratio cover the last 15 seconds.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := loadSettings(cmd, ""); err != nil {
				return err
			}
			token, err := readToken(tokenFile)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(status.WithToken(cmd.Context(), token), timeout)
			defer cancel()
			r, err := status.ReadReport(ctx, reachable(admin))
			if err != nil {
				return err
			}
			if asJSON {
				e := json.NewEncoder(cmd.OutOrStdout())
				e.SetIndent("", "  ")
				return e.Encode(r)
			}
			return printReport(cmd.OutOrStdout(), r)
		},
	}
	c.Flags().StringVar(&admin, "admin", loopback(adminPort), "admin address of any member")
	addTokenFile(c, &tokenFile)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().DurationVar(&timeout, "timeout", 5*time.Second, "how long to wait for all members to answer")
	return c
}

// reachable turns the address that a member binds into one to connect to: a command that runs
// beside a member also finds DUNLIN_ADMIN=0.0.0.0:9180 in its environment.
func reachable(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		return loopback(port)
	}
	return address
}
