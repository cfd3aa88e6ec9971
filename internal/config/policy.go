package config

import "strings"

// policies pairs Redis's names of eviction policies, in its order, with Dunlin's. Dunlin has one
// order of eviction for all keys and one for those that expire; it serves every order that Redis's
// names ask for.
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

// mixedPolicy is what a proxy shows when its nodes have different ones.
const mixedPolicy = "mixed"

func policyChoices() []string {
	var names []string
	for _, p := range policies {
		names = append(names, p.redis)
	}
	return names
}

// PolicyName returns Dunlin's name (allkeys, volatile-ttl, noeviction) of a policy that is given by
// Redis's name or Dunlin's, in any case.
func PolicyName(name string) (dunlin string, known bool) {
	for _, p := range policies {
		if strings.EqualFold(name, p.redis) || strings.EqualFold(name, p.dunlin) {
			return p.dunlin, true
		}
	}
	return "", false
}

// redisPolicy returns Redis's name of a policy given by either name: clients know no other.
func redisPolicy(name string) string {
	for _, p := range policies {
		if strings.EqualFold(name, p.redis) {
			return p.redis
		}
	}
	return defaultPolicy
}

// EvictsByFrequency reports whether the policy, by its Redis name, evicts the least frequently used
// keys.
func (c *Config) EvictsByFrequency() bool {
	return strings.HasSuffix(c.get("maxmemory-policy"), "-lfu")
}

// PolicyNumber returns the policy as a number from 1 on, which nodes send to a proxy.
func (c *Config) PolicyNumber() int64 {
	name := c.get("maxmemory-policy")
	for i := range policies {
		if policies[i].redis == name {
			return int64(i) + 1
		}
	}
	panic("BUG: no policy " + name)
}

// Policy returns the Redis name of the policy that INFO shows. A process that has the hook
// SetPolicy knows its own. Other processes show that of their nodes: sum is the sum of the nodes'
// PolicyNumbers, and squares the sum of their squares.
func (c *Config) Policy(sum, squares, nodes int64) string {
	if c.o.SetPolicy == nil && nodes > 0 && sum > 0 {
		return commonPolicy(sum, squares, nodes)
	}
	return c.get("maxmemory-policy")
}

// commonPolicy returns the policy that all nodes have, or mixedPolicy. Only if all numbers are
// equal is nodes × squares equal to the square of the sum.
func commonPolicy(sum, squares, nodes int64) string {
	number := sum / nodes
	if sum*sum != squares*nodes || number < 1 || number > int64(len(policies)) {
		return mixedPolicy
	}
	return policies[number-1].redis
}
