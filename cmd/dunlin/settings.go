package main

import (
	"fmt"
	"sort"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/spf13/viper"
)

// loadSettings gives every flag of cmd that was not on the command line the value of its DUNLIN_*
// variable or, failing that, of the configuration file. Values go through the flag's own parser, so
// that the same code reads and refuses "memory: 2gb" in YAML and --memory 2gb.
func loadSettings(cmd *cobra.Command, file string) error {
	v := viper.New()
	v.SetEnvPrefix("dunlin")
	v.SetEnvKeyReplacer(strings.NewReplacer("-", "_"))
	v.AutomaticEnv()
	if file == "" {
		file = v.GetString("config")
	}
	if file != "" {
		v.SetConfigFile(file)
		v.SetConfigType("yaml") // whatever the name: a mounted file often has no suffix
		if err := v.ReadInConfig(); err != nil {
			return fmt.Errorf("cannot read settings of %q: %w", file, err)
		}
		if err := checkKeys(cmd.Root(), v.AllKeys()); err != nil {
			return fmt.Errorf("cannot use settings of %q: %w", file, err)
		}
	}

	var failed error
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if failed != nil || f.Changed || !isSetting(f.Name) || !v.IsSet(f.Name) {
			return
		}
		text := v.GetString(f.Name)
		if f.Value.Type() == "stringSlice" {
			text = strings.Join(v.GetStringSlice(f.Name), ",")
		}
		if err := cmd.Flags().Set(f.Name, text); err != nil {
			failed = fmt.Errorf("cannot use setting %q: %w", f.Name, err)
		}
	})
	return failed
}

// isSetting reports whether a flag is a setting, rather than an option of one invocation.
func isSetting(flag string) bool {
	switch flag {
	case "config", "help", "json", "undo", "pause", "resume":
		return false
	}
	return true
}

// checkKeys refuses a key that is a flag of no command at all: a misspelt "max-clients" must not be
// ignored in silence. Keys of other commands are allowed, so that nodes and proxies can share one
// file.
func checkKeys(root *cobra.Command, keys []string) error {
	known := map[string]bool{}
	for _, c := range root.Commands() {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) { known[f.Name] = isSetting(f.Name) })
	}
	sort.Strings(keys)
	for _, k := range keys {
		if !known[k] {
			return fmt.Errorf("unknown setting %q (settings are named as the flags of 'dunlin node --help')", k)
		}
	}
	return nil
}
