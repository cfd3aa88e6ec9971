package ring

import "flag"

var histories = flag.Int("histories", 100, "how many random histories TestRandomHistories plays")
