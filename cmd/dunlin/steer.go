package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dunlin-cache/dunlin/metrics/control"
	"github.com/dunlin-cache/dunlin/metrics/status"
)

// steering is what the commands that change a running cluster have in common.
type steering struct {
	admin, secretFile, tokenFile string
	timeout                      time.Duration
}

func (s *steering) addTo(c *cobra.Command, timeout time.Duration) {
	c.Flags().StringVar(&s.admin, "admin", loopback(adminPort), "admin address of any member")
	c.Flags().StringVar(&s.secretFile, "secret-file", "", "file with the cluster's secret")
	addTokenFile(c, &s.tokenFile)
	c.Flags().DurationVar(&s.timeout, "timeout", timeout, "how long to wait for completion")
}

// run checks the flags that both commands share, reads the secret and calls do.
func (s *steering) run(cmd *cobra.Command, do func(ctx context.Context, token string) error) error {
	if err := loadSettings(cmd, ""); err != nil {
		return err
	}
	secrets, err := readSecrets(s.secretFile)
	if err != nil {
		return err
	}
	token := control.NoToken
	if len(secrets) > 0 {
		token = adminTokens(secrets)[0]
	}
	reader, err := readToken(s.tokenFile)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(status.WithToken(cmd.Context(), cmp.Or(reader, token)), s.timeout)
	defer cancel()
	s.admin = reachable(s.admin)
	return do(ctx, token)
}

// peer returns the first member for which meant reports true, as the member at --admin sees it.
func (s *steering) peer(ctx context.Context, meant func(status.Cluster, status.Peer) bool) (status.Peer, error) {
	seen, err := status.ReadStatus(ctx, s.admin)
	if err != nil {
		return status.Peer{}, err
	}
	for _, p := range seen.Cluster.Peers {
		if meant(seen.Cluster, p) {
			return p, nil
		}
	}
	return status.Peer{}, errors.New("there is no such node")
}

// until polls the cluster until done reports true. A member that does not answer is asked again.
func (s *steering) until(ctx context.Context, done func(status.Cluster) bool) error {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		seen, err := status.ReadStatus(ctx, s.admin)
		if err == nil && done(seen.Cluster) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not finished in time, but still in progress: %w", errors.Join(ctx.Err(), err))
		case <-tick.C:
		}
	}
}

// order posts a request that changes something to a member's admin address.
func order(ctx context.Context, admin, path string, query url.Values, token string) error {
	if admin == "" {
		return errors.New("the member has no admin address that other machines can reach")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+admin+path+"?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 1000))
		return fmt.Errorf("%s refuses: %s", admin, strings.TrimSpace(string(text)))
	}
	return nil
}
