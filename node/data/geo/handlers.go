package geo

import (
	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/node/data/sortedsets"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// Family has the commands on places. Their values are sorted sets.
var Family = exec.Family{
	Of: sortedsets.Family.Type,
	Handlers: map[command.ID]exec.Handler{
		command.GeoAdd:              geoAdd,
		command.GeoDist:             geoDist,
		command.GeoHash:             geoHash,
		command.GeoPos:              geoPos,
		command.GeoRadius:           geoRadius,
		command.GeoRadiusRO:         geoRadiusRO,
		command.GeoRadiusByMember:   geoRadiusByMember,
		command.GeoRadiusByMemberRO: geoRadiusByMemberRO,
		command.GeoSearch:           geoSearch,
		command.GeoSearchStore:      geoSearchStore,
	},
}
