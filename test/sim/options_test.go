package sim

import (
	"github.com/dunlin-cache/dunlin/node/ownership"
	"github.com/dunlin-cache/dunlin/node/replica"
	"github.com/dunlin-cache/dunlin/proxy/order"
	"github.com/dunlin-cache/dunlin/proxy/wide"
	"github.com/dunlin-cache/dunlin/ring/office"
)

// options are what one history begins with, and the rules that it breaks.
type options struct {
	seed   uint64
	copies int        // 0: by chance
	only   []mischief // what happens; nil: anything
	// script happens in the place of mischief by chance.
	script func(*world)
	// majority sets --min-members to more than half of the nodes that there are in the beginning.
	majority bool
	// hard has the network be slow, and snapshots take long.
	hard bool
	// busy has clients talk almost without a pause.
	busy bool
	// narrow has all commands on keys concern one partition.
	narrow bool
	// overflows has logs overflow more often than by chance.
	overflows bool
	// later has nodes answer some commands later.
	later bool
	// holds has the cluster reach the level of this build, and transactions hold partitions. It
	// needs later.
	holds bool
	// claims has clients wait for elements of lists, which others push.
	claims bool
	// reads has clients follow journals with XREAD, to which others add entries.
	reads bool
	// moves has clients move elements between lists of two places. It needs claims.
	moves bool
	// channels has clients publish on channels, to which each proxy listens.
	channels bool
	// alone has each XREAD name journals of one partition.
	alone bool
	// restless has more happen in less time.
	restless bool
	rules
}

// rules are those of the protocol that can be broken, to see that the simulation notices.
type rules struct {
	ownership ownership.Broken // those of node/ownership itself
	replica   replica.Broken   // those of node/replica itself
	order     order.Broken     // those of proxy/order
	wide      wide.Broken      // those of proxy/wide
	office    office.Broken    // those of ring/office

	adoptForeign bool // members adopt any table of a later epoch
	splitUnits   bool // the effects of a transaction reach copies one by one
	noTurns      bool // a claim that is told that it is ready has no turn
	setsAgain    bool // SETs may be executed again behind later ones
	anyTime      bool // blocking commands may be answered late
	ignoreTurns  bool // who is woken for one of its keys pops from another one where a claim has its turn
	noReturns    bool // proxies keep what they have popped for a client that is gone
	moveUnheld   bool // others use lists between which an element is moved
	takeFirst    bool // an element that is moved is taken before it is stored
	followEarly  bool // proxies follow a channel while the owner before may have more
	endEarly     bool // they end there while that may publish still
	listenEarly  bool // nodes have who listens be live before they have the table
	noBacklogs   bool // a new owner keeps nothing for those who follow
	noMissed     bool // it does not pass on what they have not got
	keepUnhanded bool // a node keeps what it published for those who follow where it hands over nothing
	handAway     bool // a node hands over channels with which others have gone on without it
	takeLate     bool // a new owner takes what was published elsewhere, though it has served since
	trustAnybody bool // it says that it has everything
	knowAnybody  bool // it takes it that the owner before has told of all who follow
	oneReader    bool // of those who wait for entries of a journal, one is served when there are some
}
