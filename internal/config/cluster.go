package config

import (
	"fmt"
	"strings"
)

// Some parameters hold for the whole cluster: a change at one member applies to all members,
// including those that join or restart later. These parameters say how the service behaves
// (eviction policy, slow log, idle timeout), not what a process may take of its machine (maxmemory,
// maxclients). Their values are in the cluster's settings document, as "config/NAME"; a parameter
// that is not in it has the value with which the process was started.
//
// A member of an older build keeps a document with parameters that it does not know, and applies them once it
// is upgraded. The limits of encodings need no level of their own: collections, which they are about, are there
// from ring.CollectionsLevel on.

// clusterPrefix begins the names of parameters in the settings document.
const clusterPrefix = "config/"

// split separates the parameters of the cluster from the others; without a cluster, all are others.
func split(changes []change, cluster bool) (here, ofCluster []change) {
	for _, c := range changes {
		if cluster && c.p.cluster {
			ofCluster = append(ofCluster, c)
		} else {
			here = append(here, c)
		}
	}
	return here, ofCluster
}

// SetsOfCluster reports whether CONFIG SET, a whole request, names a parameter of the cluster.
func SetsOfCluster(args [][]byte) bool {
	for i := 2; i < len(args); i += 2 {
		if p := findParameter(args[i]); p != nil && p.cluster {
			return true
		}
	}
	return false
}

// clusterValues returns the changes under the names of the settings document.
func clusterValues(changes []change) map[string]string {
	values := make(map[string]string, len(changes))
	for _, c := range changes {
		values[clusterPrefix+c.p.name] = c.new
	}
	return values
}

// ClusterValue returns the present value of a parameter by its name in the settings document.
func (c *Config) ClusterValue(name string) (value string, known bool) {
	short, ours := strings.CutPrefix(name, clusterPrefix)
	if p := findParameter([]byte(short)); ours && p != nil && p.cluster {
		return c.get(p.name), true
	}
	return "", false
}

// ApplyCluster applies the parameters of the cluster. get reads the settings document. The error
// names the values that this build does not accept, which are skipped, and those that could not be
// applied.
func (c *Config) ApplyCluster(get func(name string) (value string, set bool)) error {
	var problems []string
	for i := range parameters {
		p := &parameters[i]
		if !p.cluster || c.immutable(p) {
			continue
		}
		value, set := get(clusterPrefix + p.name)
		if !set {
			value = c.initial[i]
		} else if checked, problem := p.check(value, c.initial[i]); problem != "" {
			problems = append(problems, p.name+": "+problem)
			continue
		} else {
			value = checked
		}
		if value == c.get(p.name) {
			continue
		}
		if err := c.apply(p, value); err != nil {
			problems = append(problems, p.name+": "+err.Error())
		}
	}
	if problems != nil {
		return fmt.Errorf("cannot apply settings of the cluster: %s", strings.Join(problems, "; "))
	}
	return nil
}
