package deploy

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestDockerfile: the image builds with the Go of go.mod, holds the binary alone,
// and runs it as the user that the manifests ask for.
func TestDockerfile(t *testing.T) {
	text := string(readFile(t, "docker/Dockerfile"))
	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindSubmatch(readFile(t, "../go.mod"))
	if version == nil || !strings.Contains(text, "FROM golang:"+string(version[1])+" ") {
		t.Errorf("the build stage does not use the Go of go.mod, %s", version)
	}
	_, final, ok := strings.Cut(text, "\nFROM scratch\n")
	if !ok {
		t.Fatal("the last stage is not FROM scratch")
	}
	lines := strings.Split(final, "\n")
	for _, want := range []string{"COPY --from=build /dunlin /dunlin", "USER 65532:65532", `ENTRYPOINT ["/dunlin"]`} {
		if !slices.Contains(lines, want) {
			t.Errorf("the last stage has no line %q", want)
		}
	}
	m := decodeManifests(t, slices.Concat(
		readFile(t, base+"/node.yaml"), []byte("\n---\n"), readFile(t, base+"/proxy.yaml")))
	for _, w := range m.workloads {
		if user := w.Spec.Template.Spec.SecurityContext.RunAsUser; user != 65532 {
			t.Errorf("%s runs as user %d, the image as 65532", w.Metadata.Name, user)
		}
		for _, p := range w.Spec.Template.Spec.Containers[0].Ports {
			if !regexp.MustCompile(`EXPOSE .*\b` + strconv.Itoa(p.ContainerPort) + `\b`).MatchString(final) {
				t.Errorf("the image does not expose port %s of %s", p.Name, w.Metadata.Name)
			}
		}
	}
}
