package clients

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/redistest"
	"github.com/dunlin-cache/dunlin/test/harness"
)

var (
	atRedis = flag.Bool("clients.redis", false, "run the applications at one redis-server too")
	only    = flag.String("clients.only", "", "run the programs whose name this regular expression matches")
)

// bullSteps is what BullMQ does.
var bullSteps = []string{"queue", "flow", "replace", "crash", "clear"}

// laravelSteps is what Laravel does, with either of its clients.
var laravelSteps = []string{
	"cache", "tags", "lock", "limits", "session", "pipeline", "queue", "broadcast", "replace", "crash", "stop",
}

// applications are programs that run at once on one cluster, while its nodes are replaced.
var applications = []program{
	{"node-redis's streams", "Node", "node bin/clients/node/node_redis_streams.js", listeningSteps},
	{"ioredis's streams", "Node", "node bin/clients/node/ioredis_streams.js", listeningSteps},
	{"Jedis's streams", "Java", java + "jedis-streams", groupSteps},
	{"Lettuce's streams", "Java", java + "lettuce-streams", groupSteps},
	{"Spring Data Redis streams", "Java", java + "spring-streams", groupSteps},
	{"Redisson", "Java", java + "redisson",
		[]string{"lock", "locks", "map", "bucket", "queue", "topic", "rate-limit", "cluster", "replace", "crash"}},
	{"Spring Session, Bucket4j", "Java", java + "spring-session",
		[]string{"session", "index", "expire", "rate-limit", "replace", "crash"}},
	{"Spring Data repositories", "Java", java + "spring-repositories",
		[]string{"crud", "index", "expire", "replace", "crash"}},
	{"socket.io, rate-limiter-flexible", "Node", "node bin/clients/node/socket_io.js",
		[]string{"pub/sub", "streams", "rate-limit", "replace", "crash"}},
	{"BullMQ", "Node", "node bin/clients/node/bullmq.js", bullSteps},
	{"BullMQ without a tag", "Node", "node bin/clients/node/bullmq.js", bullSteps},
	{"RQ", "Python", python + "rq_jobs.py", []string{"queue", "dependency", "replace", "crash", "stop", "scripts"}},
	{"Celery", "Python", python + "celery_jobs.py",
		[]string{"queue", "chord", "control", "replace", "crash", "stop"}},
	{"Dramatiq", "Python", python + "dramatiq_actors.py",
		[]string{"queue", "group", "rate-limit", "replace", "crash", "maintenance", "clear"}},
	{"Flask-Limiter", "Python", python + "flask_limits.py",
		[]string{"fixed-window", "moving-window", "sliding-window-counter", "reset", "replace", "crash"}},
	{"huey, channels_redis, aiocache", "Python", python + "huey_channels.py",
		[]string{"queue", "group", "cache", "replace", "crash"}},
	{"Sidekiq", "Ruby", ruby + "sidekiq_jobs.rb", []string{"queue", "api", "replace", "crash", "stop"}},
	{"Rails", "Ruby", ruby + "rails.rb", []string{"cache", "race", "many", "counters", "clear", "session", "broadcast",
		"replace", "crash"}},
	{"Laravel, phpredis", "PHP", php + "laravel.php phpredis", laravelSteps},
	{"Laravel, predis", "PHP", php + "laravel.php predis", laravelSteps},
	{"asynq", "Go", "bin/clients/go asynq", []string{"queue", "inspect", "replace", "crash", "stop"}},
	{"redsync", "Go", "bin/clients/go redsync", []string{"lock", "replace", "crash"}},
	{"redislock", "Go", "bin/clients/go redislock", []string{"lock", "replace", "crash"}},
	{"redis_rate", "Go", "bin/clients/go redis_rate", []string{"rate-limit", "replace", "crash"}},
	{"centrifuge", "Go", "bin/clients/go centrifuge", []string{"publish", "history", "presence", "replace", "crash"}},
	{"django-redis", "Python", python + "django_redis_cache.py",
		[]string{"get-or-set", "many", "patterns", "lock", "session", "replace", "crash"}},
}

// preparing is how many applications work before the first phase at a time. Their programs take a processor
// each to begin with, and some steps are about time.
const preparing = 6

// workTime lets the applications work before and after a crash. No test depends on it.
const workTime = 500 * time.Millisecond

// A phase is what happens to the servers while all applications go on.
type phase struct {
	word    string           // by which an application asks for it
	happens func() time.Time // it returns when a server was killed
	waiting sync.WaitGroup
	begin   chan struct{}
	over    chan struct{}
	killed  string // in seconds since 1970, "" if none was
}

// phasesOf returns what happens to a cluster: first all nodes are replaced, one after another. Then a node is
// killed, another one joins, and the proxies restart.
func phasesOf(c *harness.Cluster) []*phase {
	replace := func() (none time.Time) {
		for _, node := range c.ByRole("node") {
			node.Term(harness.ReadyTimeout)
			node.Start()
			c.Converge(harness.ReadyTimeout)
		}
		return none
	}
	crash := func() time.Time {
		c.AwaitCopies(harness.ReadyTimeout)
		time.Sleep(workTime)
		node := c.Node(1)
		killed := time.Now()
		node.Kill()
		c.Converge(harness.ReadyTimeout)
		node.Start() // empty: to the others it is a new one
		c.Converge(harness.ReadyTimeout)
		for _, proxy := range c.ByRole("proxy") {
			proxy.Term(harness.ReadyTimeout)
			proxy.Start()
		}
		time.Sleep(workTime)
		return killed
	}
	return []*phase{{word: "replace", happens: replace}, {word: "crash", happens: crash}}
}

// run waits until all applications have asked for the phase, and tells them when it begins and ends.
func (p *phase) run() {
	p.waiting.Wait()
	close(p.begin)
	if killed := p.happens(); !killed.IsZero() {
		p.killed = fmt.Sprintf("%.3f", float64(killed.UnixMilli())/1000)
	}
	close(p.over)
}

// joinedBy returns how an application asks for the phase, and what it does if it does not ask.
func (p *phase) joinedBy() (ask request, pass func()) {
	p.waiting.Add(1)
	pass = sync.OnceFunc(p.waiting.Done)
	return func(tell func(string)) {
		pass()
		<-p.begin
		tell("")
		<-p.over
		tell(p.killed)
	}, pass
}

// allOf has runTogether run all applications.
func allOf(int) bool { return true }

// runTogether runs the applications that are ready, and of which wanted says so, each at its address,
// through the phases.
func runTogether(t *testing.T, phases []*phase, addr func(program) string, wanted func(i int) bool) []outcome {
	outcomes := make([]outcome, len(applications))
	if !slices.ContainsFunc(applications, program.runs) {
		return outcomes
	}
	for _, p := range phases {
		p.begin, p.over = make(chan struct{}), make(chan struct{})
	}
	var running sync.WaitGroup
	places := make(chan struct{}, preparing)
	for i, app := range applications {
		if !app.runs() || !wanted(i) {
			continue
		}
		requests := map[string]request{}
		prepared := sync.OnceFunc(func() { <-places })
		pass := []func(){prepared}
		for _, p := range phases {
			ask, skip := p.joinedBy()
			requests[p.word] = func(tell func(string)) {
				prepared()
				ask(tell)
			}
			pass = append(pass, skip)
		}
		running.Go(func() {
			places <- struct{}{}
			outcomes[i] = app.run(t, addr(app), requests)
			for _, skip := range pass {
				skip()
			}
		})
	}
	for _, p := range phases {
		p.run()
	}
	running.Wait()
	return outcomes
}

// repeatIfGivenUp runs the applications that have failed once more, on a cluster of their own, if the
// members of c have logged since then that a node was given up while it lived: then more has happened
// to nodes than the phases say, because the machine did not let them run. What fails again has failed.
func repeatIfGivenUp(t *testing.T, c *harness.Cluster, since time.Time, outcomes []outcome) {
	t.Helper()
	failed := map[int]bool{}
	for i, p := range applications {
		if p.runs() && !outcomes[i].passes(p) {
			failed[i] = true
		}
	}
	if len(failed) == 0 {
		return
	}
	for _, proxy := range c.ByRole("proxy") {
		t.Logf("%s has logged of pipes: %q", proxy.ID, proxy.Says(since, "pipe to node broke"))
	}
	why := givenUp(c, since)
	if len(why) == 0 {
		return
	}
	t.Logf("nodes that lived were given up:\n%s", strings.Join(why, ""))
	for i := range failed {
		t.Logf("%s runs again, after steps %v, and %q", applications[i].name, outcomes[i].passed, outcomes[i].wrong)
	}
	other, _ := startForPrograms(t)
	for i, o := range runTogether(t, phasesOf(other), addrsIn(other), func(i int) bool { return failed[i] }) {
		if failed[i] {
			outcomes[i] = o
		}
	}
}

// givenUp returns what the members have logged since then about nodes that were given up while they
// lived: they owed replies in silence, others took them for dead, or they noticed that they had stood
// still.
func givenUp(c *harness.Cluster, since time.Time) (lines []string) {
	for _, m := range c.Members {
		lines = append(lines, m.Says(since, "sent nothing for too long", "Refuting a dead message", "msg=fenced")...)
	}
	return lines
}

// TestGivenUp: only what the logs say since the beginning counts, and a pipe that breaks explains nothing by itself.
func TestGivenUp(t *testing.T) {
	log := filepath.Join(t.TempDir(), "p1.log")
	const before, later = "time=2026-12-02T00:10:59.088Z level=", "time=2026-12-02T00:11:18.970Z level="
	lines := []string{
		before + "WARN msg=fenced member=n1 reason=\"it stood still\"\n",
		later + "WARN msg=\"pipe to node broke\" node=n1 err=\"recv: connection reset by peer\"\n",
		later + "WARN msg=\"pipe to node broke\" node=n2 err=\"node sent nothing for too long with commands outstanding\"\n",
		later + "INFO msg=stopping\n",
		"a line without a time, as of a panic: msg=fenced\n",
		later + "WARN msg=\"memberlist: Refuting a dead message (from: n3@dn9udsj5rrsa)\"\n",
	}
	if err := os.WriteFile(log, []byte(strings.Join(lines, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	c := &harness.Cluster{T: t, Members: []*harness.Member{{T: t, ID: "p1", Logged: log}}}
	got := givenUp(c, time.Date(2026, 12, 2, 0, 11, 0, 0, time.UTC))
	if want := []string{lines[2], lines[5]}; !slices.Equal(got, want) {
		t.Errorf("given up: %q, want %q", got, want)
	}
}

// TestApplicationsAtRedis runs the applications at one redis-server, which is killed and started again with its data:
// what their programs expect of a cluster is what they do there.
func TestApplicationsAtRedis(t *testing.T) {
	if !*atRedis {
		t.Skip("proves the programs, not Dunlin; -clients.redis runs it")
	}
	t.Setenv("SINGLE_SERVER", "1")
	server := redistest.StartServer(t, "--appendonly", "yes", "--appendfsync", "always")
	phases := []*phase{
		{word: "replace", happens: func() (none time.Time) { return none }},
		{word: "crash", happens: func() time.Time {
			time.Sleep(workTime)
			killed := time.Now()
			server.Kill()
			server.StartLoaded() // no node answers LOADING either
			time.Sleep(workTime)
			return killed
		}},
	}
	outcomes := runTogether(t, phases, func(p program) string { return server.Addr + pinned[p.name] }, allOf)
	for i, p := range applications {
		t.Run(p.name, func(t *testing.T) {
			p.skipUnlessReady(t)
			outcomes[i].judge(t, p)
		})
	}
}
