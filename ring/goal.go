package ring

import (
	"strings"
	"sync"
)

// goal is what the ring asks for a set of node ids: for each partition, the indexes in ids of its
// owner and its follower. The follower is NoNode if there is only one node.
type goal struct {
	owner, follower [Partitions]uint16
}

// While data moves, a coordinator plans several times a second for the same nodes, and the ring's
// library takes 0.1 s for 50 of them. So goalOf keeps the last goals; a goal depends on the ids
// alone.
const keptGoals = 64

var goals struct {
	sync.Mutex
	byIDs map[string]*goal
	order []string // keys of byIDs, the oldest first
}

// goalOf returns the goal of ids, which are distinct and sorted. Callers share the goal and must
// not change it.
func goalOf(ids []string) (*goal, error) {
	key := strings.Join(ids, " ") // no id has a space
	goals.Lock()
	defer goals.Unlock()
	if g := goals.byIDs[key]; g != nil {
		return g, nil
	}
	owner, err := Target(ids)
	if err != nil {
		return nil, err
	}
	g := &goal{owner: [Partitions]uint16(owner)}
	if len(ids) > 1 {
		g.follower = followers(ids, &g.owner)
	} else {
		fill(&g.follower, NoNode)
	}
	if goals.byIDs == nil {
		goals.byIDs = make(map[string]*goal)
	}
	if len(goals.order) == keptGoals {
		delete(goals.byIDs, goals.order[0])
		goals.order = goals.order[1:]
	}
	goals.byIDs[key] = g
	goals.order = append(goals.order, key)
	return g, nil
}

func fill(all *[Partitions]uint16, with uint16) {
	for p := range all {
		all[p] = with
	}
}
