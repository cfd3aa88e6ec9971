package session

import "strings"

// policies pairs Redis's names of eviction policies, in its order, with Dunlin's. There is one order in which keys of
// either kind go; what Redis's names say about it beyond their kind is a wish that Dunlin's does at least as well.
var policies = []struct{ redis, dunlin string }{
	{"volatile-lru", "volatile-ttl"},
	{"volatile-lfu", "volatile-ttl"},
	{"volatile-random", "volatile-ttl"},
	{"volatile-ttl", "volatile-ttl"},
	{"allkeys-lru", "allkeys"},
	{"allkeys-lfu", "allkeys"},
	{"allkeys-random", "allkeys"},
	{"noeviction", "noeviction"},
}

const defaultPolicy = "allkeys-lru"

// mixedPolicy is what a proxy shows when its nodes have not all the same one.
const mixedPolicy = "mixed"

func policyChoices() []string {
	var names []string
	for _, p := range policies {
		names = append(names, p.redis)
	}
	return names
}

// PolicyName returns Dunlin's name (allkeys, volatile-ttl, noeviction) of a policy that may be called by Redis's name
// or Dunlin's, in any case.
func PolicyName(name string) (dunlin string, known bool) {
	for _, p := range policies {
		if strings.EqualFold(name, p.redis) || strings.EqualFold(name, p.dunlin) {
			return p.dunlin, true
		}
	}
	return "", false
}

// redisPolicy is the name that clients, who know Redis's only, are shown for either kind of name.
func redisPolicy(name string) string {
	for _, p := range policies {
		if strings.EqualFold(name, p.redis) {
			return p.redis
		}
	}
	return defaultPolicy
}

// EvictsByFrequency tells whether clients are shown a policy that goes by how often keys are used.
func (s *Server) EvictsByFrequency() bool {
	return strings.HasSuffix(s.config.get("maxmemory-policy"), "-lfu")
}

// CountPolicy adds this node's policy, by the name that clients are shown.
func (s *Server) CountPolicy(c *Counters) {
	name := s.config.get("maxmemory-policy")
	for i := range policies {
		if policies[i].redis == name {
			n := int64(i) + 1
			c.Policy, c.PolicySquare = c.Policy+n, c.PolicySquare+n*n
		}
	}
}

// commonPolicy is that of all nodes, whose numbers add up to sum, and the numbers' squares to squares. Only equal ones
// have a square of the sum that is as large as that.
func commonPolicy(sum, squares, nodes int64) string {
	number := sum / nodes
	if sum*sum != squares*nodes || number < 1 || number > int64(len(policies)) {
		return mixedPolicy
	}
	return policies[number-1].redis
}
