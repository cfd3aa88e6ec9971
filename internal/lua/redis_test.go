package lua

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/redistest"
)

var update = flag.Bool("update", false, "write what redis-server returns into testdata")

// showResults runs the script that is its argument and returns its results, or its error, as text.
const showResults = `
local function show(v)
  if type(v) == "string" then
    return '"' .. v:gsub('[%z%c"\\\128-\255]', function(c) return ("\\%03d"):format(c:byte()) end) .. '"'
  elseif type(v) == "number" then
    return ("%.17g"):format(v)
  elseif type(v) == "table" then
    local parts = {}
    for k, e in pairs(v) do parts[#parts + 1] = "[" .. show(k) .. "]=" .. show(e) end
    return "{" .. table.concat(parts, ",") .. "}"
  elseif type(v) == "function" then
    return "function"
  end
  return tostring(v)
end
local function list(ok, ...)
  local parts = {}
  for i = 1, select("#", ...) do parts[i] = show((select(i, ...))) end
  return (ok and "" or "error ") .. table.concat(parts, " ")
end
return list(pcall(loadstring((...), "@test")))`

// TestAsRedis runs the scripts of testdata, and requires that each returns what stands behind it. The
// results are those of redis-server 7.0.15, which is asked again where it is installed.
func TestAsRedis(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.txt")
	if len(files) == 0 {
		t.Fatal("testdata has no scripts")
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			proto := mustCompile(t, showResults)
			s := newTestState()
			compareScripts(t, string(text), func(script string) string {
				s.Reset(testLimits)
				results, err := s.Call(s.Load(proto), String(script))
				if err != nil {
					return err.Error()
				}
				shown, _ := results[0].AsString()
				return shown
			})
			t.Run("redis-server", func(t *testing.T) {
				redistest.Want(t, "7.0.")
				peer := dialRedis(t)
				now := compareScripts(t, string(text), peer.eval)
				if *update {
					if err := os.WriteFile(file, []byte(now), 0o600); err != nil {
						t.Fatal(err)
					}
				}
			})
		})
	}
}

// compareScripts runs each script of text, "> script" with its result in the line below, and reports
// where the result is another. It returns the text with the results as they are.
func compareScripts(t *testing.T, text string, run func(script string) string) string {
	var now strings.Builder
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		now.WriteString(lines[i] + "\n")
		script, ok := strings.CutPrefix(lines[i], "> ")
		if !ok {
			continue
		}
		want := ""
		if i+1 < len(lines) && strings.HasPrefix(lines[i+1], "= ") {
			i++
			want = lines[i][2:]
		}
		got := run(script)
		now.WriteString("= " + got + "\n")
		if got != want && !*update {
			t.Errorf("%s\n returns %.500s\n want    %.500s", script, got, want)
		}
	}
	return now.String()
}

// A redisPeer is a connection to a redis-server.
type redisPeer struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
}

func dialRedis(t *testing.T) *redisPeer {
	conn, err := net.Dial("tcp", redistest.Start(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &redisPeer{t, conn, bufio.NewReader(conn)}
}

// eval returns what showResults returns for script. What scripts have set before is forgotten.
func (p *redisPeer) eval(script string) string {
	p.do("SCRIPT", "FLUSH", "SYNC")
	return p.do("EVAL", "return (function(...)"+showResults+"\nend)(ARGV[1])", "0", script)
}

// do sends a command and returns its reply, which is a line or a string.
func (p *redisPeer) do(args ...string) string {
	p.t.Helper()
	fmt.Fprintf(p.conn, "*%d\r\n", len(args))
	for _, arg := range args {
		fmt.Fprintf(p.conn, "$%d\r\n%s\r\n", len(arg), arg)
	}
	line, err := p.in.ReadString('\n')
	if err != nil {
		p.t.Fatal(err)
	}
	line = strings.TrimSuffix(line, "\r\n")
	if !strings.HasPrefix(line, "$") {
		return line
	}
	n, _ := strconv.Atoi(line[1:])
	reply := make([]byte, n+2)
	if _, err := io.ReadFull(p.in, reply); err != nil {
		p.t.Fatal(err)
	}
	return string(reply[:n])
}
