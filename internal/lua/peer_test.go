package lua

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// peerDriver runs each of its programs in an environment of its own.
const peerDriver = `
local dir, n = arg[1], tonumber(arg[2])
for i = 1, n do
  local file = io.open(dir .. "/" .. i)
  local source = file:read("*a")
  file:close()
  io.write("\1", i, "\n")
  local f, err = loadstring(source, "@test")
  if f then
    setfenv(f, setmetatable({}, {__index = _G}))
    local ok, thrown = pcall(f)
    if not ok then
      if type(thrown) == "table" then thrown = "(error object is a table value)" end
      print("error: " .. tostring(thrown))
    end
  else
    print("error: " .. err)
  end
end
`

// peerOutputs is what lua5.1 prints for each program. It skips the test where there is no lua5.1.
func peerOutputs(t testing.TB, programs []string) []string {
	t.Helper()
	peer, err := exec.LookPath("lua5.1")
	if err != nil {
		t.Skip("lua5.1 is not installed (Debian: apt-get install lua5.1)")
	}
	dir := t.TempDir()
	for i, program := range programs {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i+1)), []byte(program), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	driver := filepath.Join(dir, "driver.lua")
	if err := os.WriteFile(driver, []byte(peerDriver), 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(peer, driver, dir, fmt.Sprint(len(programs)))
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("lua5.1: %v\n%.2000s", err, out)
	}
	parts := strings.Split("\n"+string(out), "\n\x01")[1:]
	if len(parts) != len(programs) {
		t.Fatalf("lua5.1 ran %d of %d programs", len(parts), len(programs))
	}
	for i, part := range parts {
		_, rest, _ := strings.Cut(part, "\n")
		parts[i] = strings.TrimSuffix(rest, "\n")
	}
	return parts
}

// sameAsPeer runs the programs here and in lua5.1, and reports the first few that differ.
func sameAsPeer(t *testing.T, programs []string) {
	t.Helper()
	wrong := 0
	for i, want := range peerOutputs(t, programs) {
		got := strings.TrimSuffix(run(t, programs[i]), "\n")
		if got == want {
			continue
		}
		t.Errorf("%s\n prints %q\n lua5.1 %q", programs[i], got, want)
		if wrong++; wrong == 12 {
			t.Fatal("and perhaps more")
		}
	}
}
