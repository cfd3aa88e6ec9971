# Prints, as a pattern for -run, the tests that the race detector or -short skips or shortens. These
# run without them, too. The files are read twice:
#
#	awk -f test/unraced.awk FILES again=1 FILES
#
# The first reading finds the functions that skip the tests that call them, except oneGoroutine, of node/engine: its
# tests run with the build tag checked (Makefile, checked), and would show nothing more without.

BEGIN { telltale = "testing\\.Short\\(\\)|[rR]ace(Detector|Enabled|Factor)|SkipUnderRace\\(|AllocsPerRun\\(" }

FNR == 1 { unseen = 0; name = "" }
/^\/\/go:build .*!race/ { unseen = 1 } # the race detector does not get the whole file
/^func / { name = $2; sub(/[([].*/, "", name) }

name == "" { next }
!again { if (name !~ /^(Test|Fuzz|Bench)/ && name != "oneGoroutine" && $0 ~ telltale) skips[name] = 1; next }
name ~ /^(Test|Fuzz)/ && !(name in found) {
	is = unseen || $0 ~ telltale
	for (s in skips) is = is || index($0, s "(")
	if (is) { found[name] = 1; all = all (all ? "|" : "") name }
}

END { print "^(" all ")$" }
