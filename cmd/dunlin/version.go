package main

import "runtime/debug"

// release is set by the Makefile and the image build (-ldflags -X main.release=v1.2.3).
var release = "dev"

// version returns the release, with the commit where the build knows it.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return release
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return release + " (" + s.Value[:12] + ")"
		}
	}
	return release
}
