package tracking

import "sync"

// Target is a connection to which others may redirect their invalidations. Its methods may be called on any
// loop.
type Target interface {
	// Redirected has the client told to forget a key, or all keys.
	Redirected(key string, all bool)
}

// Directory finds the connections of a process by their ids. Any goroutine may use it.
type Directory struct {
	mu   sync.Mutex
	byID map[uint64]Target
}

// Add adds a connection.
func (d *Directory) Add(id uint64, t Target) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.byID == nil {
		d.byID = make(map[uint64]Target)
	}
	d.byID[id] = t
}

// Remove removes a connection.
func (d *Directory) Remove(id uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.byID, id)
}

// Find returns the connection with the id, nil if there is none.
func (d *Directory) Find(id uint64) Target {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.byID[id]
}
