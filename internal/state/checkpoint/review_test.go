package checkpoint

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// reviewed is a review as text: a line a file, with its hunks.
func (r *rig) reviewed(v Review) string {
	r.t.Helper()
	all, _, err := r.Open(r.t.Context(), v)
	must(r.t, err)
	var b strings.Builder
	for _, it := range all {
		line := strings.TrimSuffix(r.changes([]Change{it.Change}), "\n")
		if it.Others {
			line += " others"
		}
		if it.Tangled {
			line += " tangled"
		}
		fmt.Fprintf(&b, "%s hunks:%d\n", line, len(it.Hunks))
	}
	return b.String()
}

// reject takes changes back and marks that in the review.
func (r *rig) reject(v *Review, c Choice) Result {
	r.t.Helper()
	p, err := r.PlanReject(r.t.Context(), *v, c)
	must(r.t, err)
	res, err := r.Apply(r.t.Context(), p)
	must(r.t, err)
	done := map[string]bool{}
	for _, path := range res.Done {
		done[path] = true
	}
	m := Mark{Kind: Rejected, At: res.After}
	for _, p := range c.Picks {
		if done[p.Path] {
			m.Picks = append(m.Picks, p)
		}
	}
	v.Marks = append(v.Marks, m)
	return res
}

func (r *rig) accept(v *Review, picks ...Pick) {
	r.t.Helper()
	_, at, err := r.Open(r.t.Context(), *v)
	must(r.t, err)
	must(r.t, r.Pickable(r.t.Context(), *v, picks))
	v.Marks = append(v.Marks, Mark{Kind: Accepted, At: at, Picks: picks, All: picks == nil})
}

func (r *rig) content(name string) string {
	data, err := os.ReadFile(r.path(name))
	if err != nil && !os.IsNotExist(err) {
		r.t.Fatal(err)
	}
	return string(data)
}

const ten = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n16\n"

// What a session changed is shown against how it was before, whatever others did
// meanwhile; each file and hunk is accepted or taken back by itself.
func TestReview(t *testing.T) {
	r := newRig(t, "a="+ten, "b=old\n", "gone=1\n2\n3\n4\n", "mine=x\n", "bin=\x00\x01")
	from := r.take(false)
	r.write("a="+strings.Replace(strings.Replace(ten, "2\n", "two\n", 1), "15\n", "fifteen\n", 1), "new/deep/c=c\n", "moved=1\n2\n3\n4\n5\n", "bin=\x00\x02")
	r.remove("gone")
	r.take(true)
	r.write("mine=y\n", "own=by the user\n")
	r.take(false)
	v := Review{From: from}
	equal(t, "the review", r.reviewed(v), `modified a +2 -2 hunks:2
modified bin binary hunks:0
renamed moved from gone +1 -0 hunks:1
added new/deep/c +1 -0 hunks:1
`)
	open, _, err := r.Open(t.Context(), v)
	must(t, err)
	a := open[0]
	r.accept(&v, Pick{Path: a.Path, ID: a.ID, Hunks: a.Hunks[:1]})
	r.reject(&v, Choice{Picks: []Pick{{Path: a.Path, Hunks: a.Hunks[1:]}, {Path: r.path("moved"), From: r.path("gone")}, {Path: r.path("new/deep/c")}}})
	equal(t, "a", r.content("a"), strings.Replace(ten, "2\n", "two\n", 1))
	equal(t, "the review", r.reviewed(v), "modified bin binary hunks:0\n")
	if _, err := os.Stat(r.path("new")); err == nil {
		t.Error("the folder that came with a file is still there")
	}
	equal(t, "gone", r.content("gone"), "1\n2\n3\n4\n")
	r.accept(&v)
	equal(t, "the review", r.reviewed(v), "")
	equal(t, "mine", r.content("mine"), "y\n")
	r.take(true)
	v.Marks = append(v.Marks, Mark{Kind: Rewound, At: r.rewind(from, Select{Paths: []string{r.path("a")}}).After, To: from, Since: r.List()[len(r.List())-2].ID})
	equal(t, "the review of what was taken back", r.reviewed(v), "")
	equal(t, "a", r.content("a"), ten)
}

// What somebody else changed in the same file is never overwritten without a word.
func TestRejectKeepsWhatOthersDid(t *testing.T) {
	late := strings.Replace(ten, "15\n", "fifteen\n", 1)
	for name, c := range map[string]struct {
		user    string // in which the session has changed line 2
		how     Choice
		want    string // "" = as the user left it
		reports string
	}{
		"elsewhere":          {strings.Replace(late, "2\n", "two\n", 1), Choice{}, "", "restore a: outside\n"},
		"elsewhere, merged":  {strings.Replace(late, "2\n", "two\n", 1), Choice{Merge: true}, late, ""},
		"elsewhere, forced":  {strings.Replace(late, "2\n", "two\n", 1), Choice{Force: true}, ten, ""},
		"the same":           {strings.Replace(ten, "2\n", "deux\n", 1), Choice{}, "", "restore a: outside\n"},
		"the same, merged":   {strings.Replace(ten, "2\n", "deux\n", 1), Choice{Merge: true}, "", "restore a: overlap\n"},
		"the same, marked":   {strings.Replace(ten, "2\n", "deux\n", 1), Choice{Merge: true, Marks: true}, strings.Replace(ten, "2\n", "<<<<<<< as it is now\ndeux\n=======\n2\n>>>>>>> without the rejected changes\n", 1), ""},
		"the same, forced":   {strings.Replace(ten, "2\n", "deux\n", 1), Choice{Force: true}, ten, ""},
		"taken back already": {ten, Choice{}, "", "restore a: changed\n"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, "a="+ten)
			v := Review{From: r.take(false)}
			r.write("a=" + strings.Replace(ten, "2\n", "two\n", 1))
			r.take(true)
			r.write("a=" + c.user)
			c.how.Picks = []Pick{{Path: r.path("a")}}
			res := r.reject(&v, c.how)
			if c.want == "" {
				c.want = c.user
			}
			equal(t, "the file", r.content("a"), c.want)
			equal(t, "left", r.items(res.Left), c.reports)
			if c.reports == "" {
				equal(t, "the review", r.reviewed(v), "")
			}
			r.rewind(res.Before, Select{})
			equal(t, "taken back itself", r.content("a"), c.user)
		})
	}
}

// A choice is about what was seen.
func TestStaleChoices(t *testing.T) {
	r := newRig(t, "a="+ten)
	v := Review{From: r.take(false)}
	r.write("a=" + strings.Replace(ten, "2\n", "two\n", 1))
	seen := r.take(true)
	open, _, err := r.Open(t.Context(), v)
	must(t, err)
	r.write("a="+strings.Replace(ten, "3\n", "three\n", 1), "b=new\n")
	r.take(true)
	for name, c := range map[string]Choice{
		"by ID":       {Picks: []Pick{{Path: r.path("a"), ID: open[0].ID}}},
		"by snapshot": {Picks: []Pick{{Path: r.path("a")}}, Seen: seen},
		"all":         {All: true, Seen: seen},
		"by hunk":     {Picks: []Pick{{Path: r.path("a"), Hunks: open[0].Hunks}}},
	} {
		before := r.picture()
		if res := r.reject(&v, c); len(res.Left) == 0 {
			t.Errorf("%s: nothing was left", name)
		}
		equal(t, name, r.picture(), before)
	}
	if err := r.Pickable(t.Context(), v, []Pick{{Path: r.path("a"), ID: open[0].ID}}); err == nil {
		t.Error("a change that was not seen could be accepted")
	}
}

// A rewind leads to the review that there was, and back.
func TestReviewOfARewind(t *testing.T) {
	r := newRig(t, "a=1\n", "b=1\n")
	v := Review{From: r.take(false)}
	r.write("a=2\n")
	middle := r.take(true)
	r.write("b=2\n")
	r.take(true)
	r.accept(&v)
	back := r.rewind(middle, Select{})
	v.Marks = append(v.Marks, Mark{Kind: Rewound, At: back.After, Since: back.Before, To: middle})
	equal(t, "back", r.reviewed(v), "")
	equal(t, "b", r.content("b"), "1\n")
	there := r.rewind(back.Before, Select{})
	v.Marks = append(v.Marks, Mark{Kind: Rewound, At: there.After, Since: there.Before, To: back.Before})
	equal(t, "there", r.reviewed(v), "")
	begin := r.rewind(v.From, Select{})
	v.Marks = append(v.Marks, Mark{Kind: Rewound, At: begin.After, Since: begin.Before, To: v.From})
	equal(t, "at the beginning", r.reviewed(v), "")
}

// A store that is in use can be looked at, and nothing of it changes.
func TestReadOnly(t *testing.T) {
	r := newRig(t, "a=1\n")
	v := Review{From: r.take(false)}
	r.write("a=2\n")
	r.take(true)
	c := r.c
	c.ReadOnly = true
	before := picture(t, c.Dir)
	other := *r
	s, err := Open(c)
	must(t, err)
	other.Store = s
	equal(t, "the review", other.reviewed(v), "modified a +1 -1 hunks:1\n")
	if _, err := s.Take(t.Context(), Label{}); err == nil {
		t.Error("a snapshot was taken")
	}
	must(t, s.Close())
	equal(t, "the store", picture(t, c.Dir), before)
}
