package mirror

import "slices"

// talk is the conversation as its lines have it: which of them follow each other now.
type talk struct {
	last  string          // UUID of the line that the next one follows
	tail  *node           // the newest line of the conversation; nil = it has none
	marks []mark          // where it stood after each line, in the order of the file
	stood map[string]mark // those by UUID
	begin *node           // the newest beginning
	stays []*node         // what stayed of the conversation then
}

// node is a line of the conversation, with those in front of it.
type node struct {
	seq  int64 // of the event that it comes from
	uuid string
	head bool // it stands for what was before
	prev *node
}

// mark is where the conversation stood after a line.
type mark struct {
	seq  int64
	uuid string
	line *node
	tail *node
}

// kept is what stays of the conversation where it begins anew: it follows the anchor there.
type kept struct {
	Anchor string   `json:"anchorUuid"`
	UUIDs  []string `json:"uuids"`
}

// stand notes where the conversation stands after a line.
func (t *talk) stand(line, tail *node) {
	k := mark{line.seq, line.uuid, line, tail}
	t.last, t.tail = line.uuid, tail
	t.marks = append(t.marks, k)
	t.stood[line.uuid] = k
}

// goes has the conversation go on with a line.
func (t *talk) goes(seq int64, uuid string) {
	n := &node{seq: seq, uuid: uuid, prev: t.tail}
	t.stand(n, n)
}

// begins has the conversation begin with a line, behind which some of what was said stays.
func (t *talk) begins(seq int64, uuid string, stays *kept) {
	t.begin, t.stays = &node{seq: seq, uuid: uuid, head: true}, nil
	if stays != nil {
		for _, id := range stays.UUIDs {
			if k, ok := t.stood[id]; ok {
				t.stays = append(t.stays, k.line)
			}
		}
	}
	t.stand(t.begin, follow(t.begin, t.stays))
}

// summed has the conversation go on with what stands for its beginning.
func (t *talk) summed(seq int64, uuid string) {
	if t.begin == nil || t.begin.seq != seq {
		t.goes(seq, uuid)
		return
	}
	n := &node{seq: seq, uuid: uuid, head: true, prev: t.begin}
	t.stand(n, follow(n, t.stays))
}

// follow puts lines behind one.
func follow(n *node, list []*node) *node {
	for _, x := range list {
		n = &node{seq: x.seq, uuid: x.uuid, head: x.head, prev: n}
	}
	return n
}

// heard takes in a line that is there.
func (t *talk) heard(seq int64, k known) {
	switch {
	case k.Subtype == "compact_boundary":
		t.begins(seq, k.UUID, &k.Compact.Kept)
	case k.Summary:
		t.summed(seq, k.UUID)
	default:
		if from, ok := t.stood[k.Parent]; ok && k.Parent != t.last { // it went back before
			t.tail = from.tail
		} else if k.Parent == "" { // to before all of it
			t.tail = nil
		}
		t.goes(seq, k.UUID)
	}
}

// behind are the lines of what was said after an event, without what stands for more.
func (t *talk) behind(seq int64) (list []string) {
	head := false // the event is one of which only what stands for more goes
	for n := t.tail; n != nil; n = n.prev {
		head = head || n.head && n.seq == seq
	}
	for n := t.tail; n != nil; n = n.prev {
		if !n.head && (head || n.seq > seq) {
			list = append(list, n.uuid)
		}
	}
	slices.Reverse(list)
	return list
}

// around are the lines of the conversation as it was in front of an event, and those since.
func (t *talk) around(seq int64) (before, since []string) {
	for n := t.tail; n != nil && n.seq > seq; n = n.prev {
		since = append(since, n.uuid)
	}
	slices.Reverse(since)
	for _, k := range slices.Backward(t.marks) {
		if k.seq < seq {
			return k.tail.lines(), since
		}
	}
	return nil, since
}

// lines are those of a conversation, without the one that only says where it begins.
func (n *node) lines() (list []string) {
	for ; n != nil; n = n.prev {
		if !n.head || n.prev != nil {
			list = append(list, n.uuid)
		}
	}
	slices.Reverse(list)
	return list
}

// root is the first line of a conversation.
func (n *node) root() *node {
	for n != nil && n.prev != nil {
		n = n.prev
	}
	return n
}

// rewound goes back to how the conversation stood after an event. It reports whether it began
// otherwise then than now.
func (t *talk) rewound(to int64) (other bool) {
	now := t.tail.root()
	t.last, t.tail = "", nil
	for _, k := range slices.Backward(t.marks) {
		if k.seq <= to {
			t.last, t.tail = k.uuid, k.tail
			break
		}
	}
	return now != nil && now.head && t.tail.root() != now
}
