package web

import (
	"slices"
	"sync"
	"time"
)

// The bounds of the cache.
const (
	cacheAge   = 15 * time.Minute // for which a page is not fetched again
	cacheBytes = 50_000_000       // of all pages
)

// cache keeps pages for a while. When room is short, the oldest go first.
type cache struct {
	age  time.Duration
	room int // bytes

	mu    sync.Mutex
	used  int
	items map[string]kept
	order []string // by time of arrival
}

type kept struct {
	page *page
	at   time.Time
}

// pageCost is what a page takes besides its text, in bytes.
const pageCost = 1 << 10

func (p *page) size() int { return len(p.text) + len(p.title) + pageCost }

func (c *cache) get(url string, now time.Time) *page {
	c.mu.Lock()
	defer c.mu.Unlock()
	k, ok := c.items[url]
	if !ok {
		return nil
	}
	if now.Sub(k.at) >= c.age {
		c.drop(url)
		return nil
	}
	return k.page
}

func (c *cache) put(url string, p *page, now time.Time) {
	if p.size() > c.room {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(url)
	for c.used+p.size() > c.room {
		c.drop(c.order[0])
	}
	if c.items == nil {
		c.items = map[string]kept{}
	}
	c.items[url] = kept{p, now}
	c.order = append(c.order, url)
	c.used += p.size()
}

// drop is called with mu held.
func (c *cache) drop(url string) {
	k, ok := c.items[url]
	if !ok {
		return
	}
	delete(c.items, url)
	c.used -= k.page.size()
	i := slices.Index(c.order, url)
	c.order = slices.Delete(c.order, i, i+1)
}
