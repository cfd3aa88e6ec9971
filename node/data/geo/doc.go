// Package geo executes the commands on places: sorted sets whose scores are geohashes of 52 bits.
// The scores, the areas that a search visits, and so the order of results, are those of Redis.
//
//	GEOADD     longitude, latitude ─> hash.go ─> score ─> sortedsets.Add
//	GEOSEARCH  region ─> area.go: up to nine cells, each a range of scores ─> distance.go: who is inside
package geo
