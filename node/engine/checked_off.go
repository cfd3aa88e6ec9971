//go:build !checked

package engine

const checked = false
