// Package longdouble computes as C does in a long double, with which Redis adds to numbers: it
// reads their texts, and writes them as Redis does.
package longdouble
