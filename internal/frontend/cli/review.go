package cli

import (
	"context"
	"strings"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/frontend/text"
)

// Bounds of what the conversation shows of a file's changes, in lines.
const (
	reviewLines = 60
	reviewFiles = 20 // that are shown with their lines, and not only counted
)

// reviewing is a walk through what was changed, file by file. Each answer is sent when
// it is given; those on hunks when their file is done.
type reviewing struct {
	report query.DiffReport
	at     int // file
	asks   reviewAsk

	hunk             int // in the hunks of the file; -1 = not among them
	accepts, rejects []string

	// What was sent and is not in the log yet: then it goes on with the next file, or
	// to its end. What is typed meanwhile is kept.
	waits int
	last  bool
	typed string

	accepted, rejected int // files
}

// reviewAsk is what the next key answers.
type reviewAsk uint8

const (
	askFile reviewAsk = iota
	askMerge
	askAll
)

func (r *reviewing) file() query.FileDiff { return r.report.Files[r.at] }

// changes asks what the session has changed.
func (ch *chat) changes(ctx context.Context, paths ...string) (query.DiffReport, bool) {
	r, err := client.Query[query.DiffReport](ctx, ch.Client, query.Diff{Session: ch.sess.Info.ID, Paths: paths})
	if ch.failed(err) {
		return r, false
	}
	if r.Gone {
		ch.v.note(yellow, ch.Text.Say(text.DiffGone))
	}
	return r, true
}

// slashDiff shows what was changed: all of a file that is named, the beginning of
// each otherwise.
func (ch *chat) slashDiff(ctx context.Context, arg string) {
	var paths []string
	if arg != "" {
		paths = []string{arg}
	}
	r, ok := ch.changes(ctx, paths...)
	if !ok {
		return
	}
	for i, f := range r.Files {
		ch.s.line(4, statLine(ch.Text, f)...)
		switch {
		case arg != "":
			ch.showHunks(f, 0, len(f.Hunks), 0)
		case i < reviewFiles:
			ch.showHunks(f, 0, len(f.Hunks), diffLines)
		}
	}
	ch.v.note(dim, totalLine(ch.Text, r))
}

// showHunks draws some hunks of a file, at most so many lines of them; 0 = all.
func (ch *chat) showHunks(f query.FileDiff, from, to, most int) {
	shown := 0
	for i := from; i < to; i++ {
		if most > 0 && shown >= most {
			break
		}
		ch.s.line(4, part{yellow, "  " + hunkHead(f.Hunks[i], i+1)})
		for _, l := range f.Hunks[i].Lines {
			if most > 0 && shown == most {
				break
			}
			ch.s.line(6, part{signStyle(l), "    " + l[:1] + " " + whole(ch.Text, l[1:], maxLine, " ")})
			shown++
		}
	}
	if rest := count(f.Hunks[from:to]) - shown; rest > 0 {
		ch.s.line(4, part{dim, "    " + ch.Text.Say(text.DiffMore, "n", rest, "how", "/diff "+text.ExactLine(f.Path))})
	}
}

// slashChanges begins to go through what was changed.
func (ch *chat) slashChanges(ctx context.Context, _ string) {
	if ch.v.Turn.Running {
		ch.v.note(yellow, ch.Text.Say(text.ReviewBusy))
		return
	}
	r, ok := ch.changes(ctx)
	switch {
	case !ok:
	case len(r.Files) == 0:
		ch.v.note(dim, ch.Text.Say(text.DiffNone))
	default:
		ch.review = &reviewing{report: r, hunk: -1}
		ch.showReviewed()
	}
}

// showReviewed draws the file that is asked about.
func (ch *chat) showReviewed() {
	r := ch.review
	head := ch.Text.Say(text.ReviewFile, "at", r.at+1, "all", len(r.report.Files)) + " "
	ch.s.line(4, append([]part{{dim, head}}, statLine(ch.Text, r.file())...)...)
	ch.showHunks(r.file(), 0, len(r.file().Hunks), reviewLines)
	ch.s.line(2, part{dim, "  " + ch.Text.Say(text.ReviewKeys)})
}

// reviewPrompt is what stands before the answer.
func (ch *chat) reviewPrompt() string {
	switch r := ch.review; {
	case r.asks == askMerge:
		return ch.Text.Say(text.ReviewMergePrompt)
	case r.asks == askAll:
		return ch.Text.Say(text.ReviewSurePrompt)
	case r.hunk >= 0:
		return ch.Text.Say(text.ReviewHunkPrompt)
	}
	return ch.Text.Say(text.ReviewPrompt)
}

// answerReview takes a key, or a line.
func (ch *chat) answerReview(ctx context.Context, s string) {
	r := ch.review
	if r.waits > 0 {
		r.typed += s
		return
	}
	if len(s) > 1 && s[0] == '/' {
		ch.leaveReview()
		ch.slash(ctx, s)
		return
	}
	switch {
	case r.asks == askMerge:
		ch.answerMerge(ctx, s)
	case r.asks == askAll:
		r.asks = askFile
		if s == "y" || s == "yes" {
			ch.rejectRest(ctx)
			return
		}
		ch.showReviewed()
	case r.hunk >= 0:
		ch.answerHunk(ctx, s)
	default:
		ch.answerFile(ctx, s)
	}
}

func (ch *chat) answerFile(ctx context.Context, s string) {
	r := ch.review
	switch s {
	case "a":
		ch.decide(ctx, agent.Accept{At: r.report.To, Files: []agent.Pick{pickOf(r.file())}})
	case "r":
		ch.reject(ctx)
	case "h":
		if len(r.file().Hunks) < 2 {
			ch.s.line(2, part{dim, "  " + ch.Text.Say(text.ReviewKeys)})
			return
		}
		r.hunk, r.accepts, r.rejects = 0, nil, nil
		ch.showHunk()
	case "A":
		r.last = true
		ch.decide(ctx, agent.Accept{At: r.report.To, Files: ch.rest()})
	case "R":
		r.asks = askAll
		ch.s.line(2, part{yellow, "  " + ch.Text.Say(text.ReviewSure, "n", len(r.report.Files)-r.at)})
	case "n", "":
		ch.nextFile()
	case "q":
		ch.leaveReview()
	default:
		ch.s.line(2, part{dim, "  " + ch.Text.Say(text.ReviewKeys)})
	}
}

// rest are the files that have not been asked about.
func (ch *chat) rest() (picks []agent.Pick) {
	for _, f := range ch.review.report.Files[ch.review.at:] {
		picks = append(picks, pickOf(f))
	}
	return picks[:min(len(picks), agent.MaxPicks)]
}

func (ch *chat) rejectRest(ctx context.Context) {
	ch.review.last = true
	ch.decide(ctx, agent.Reject{At: ch.review.report.To, Files: ch.rest()})
}

// decide sends what was decided about a file, and waits until the log has it.
func (ch *chat) decide(ctx context.Context, commands ...agent.Command) {
	r := ch.review
	for _, c := range commands {
		if !ch.send(ctx, c) {
			break
		}
		r.waits++
	}
	if r.waits == 0 {
		ch.nextFile()
	}
}

// decided takes in what came of it.
func (ch *chat) decided(ctx context.Context, b agent.Body) {
	r := ch.review
	if r == nil || r.waits == 0 {
		return
	}
	switch b := b.(type) {
	case agent.ChangesAccepted:
		r.accepted += len(b.Files)
	case agent.FilesRewound:
		r.rejected += len(b.Rejected)
	default:
		return
	}
	if r.waits--; r.waits > 0 {
		return
	}
	ch.nextFile()
	for typed := r.typed; typed != "" && ch.review != nil; {
		r.typed = ""
		ch.answerReview(ctx, typed[:1])
		typed = typed[1:] + r.typed
	}
}

// reject takes the file back; of one that others have changed, too, it asks first.
func (ch *chat) reject(ctx context.Context) {
	r := ch.review
	if !r.file().Others {
		ch.sendReject(ctx, agent.Reject{})
		return
	}
	r.asks = askMerge
	k := text.ReviewMerge
	if r.file().Tangled {
		k = text.ReviewMarks
	}
	ch.s.line(2, part{yellow, "  " + ch.Text.Say(k)})
}

func (ch *chat) answerMerge(ctx context.Context, s string) {
	r := ch.review
	switch s {
	case "m":
		ch.sendReject(ctx, agent.Reject{Merge: true, Marks: r.file().Tangled})
	case "f":
		ch.sendReject(ctx, agent.Reject{Force: true})
	case "n", "q", "":
		ch.nextFile()
	default:
		ch.v.note(dim, ch.Text.Say(text.ReviewMergePrompt))
	}
}

func (ch *chat) sendReject(ctx context.Context, c agent.Reject) {
	r := ch.review
	c.At, c.Files = r.report.To, []agent.Pick{pickOf(r.file())}
	r.asks = askFile
	ch.decide(ctx, c)
}

// showHunk draws the hunk that is asked about.
func (ch *chat) showHunk() {
	r := ch.review
	ch.showHunks(r.file(), r.hunk, r.hunk+1, reviewLines)
	ch.s.line(2, part{dim, "  " + ch.Text.Say(text.ReviewHunkKeys, "at", r.hunk+1, "all", len(r.file().Hunks))})
}

func (ch *chat) answerHunk(ctx context.Context, s string) {
	r := ch.review
	id := r.file().Hunks[r.hunk].ID
	switch s {
	case "a":
		r.accepts = append(r.accepts, id)
	case "r":
		r.rejects = append(r.rejects, id)
	case "n", "":
	case "q":
		r.hunk = -1
		ch.showReviewed()
		return
	default:
		ch.showHunk()
		return
	}
	if r.hunk++; r.hunk < len(r.file().Hunks) {
		ch.showHunk()
		return
	}
	ch.sendHunks(ctx)
}

// sendHunks sends what was said about the hunks of a file. What is rejected goes
// first: what is accepted is about the file as it was shown.
func (ch *chat) sendHunks(ctx context.Context) {
	r := ch.review
	pick := func(hunks []string) []agent.Pick {
		p := pickOf(r.file())
		p.Hunks = hunks
		return []agent.Pick{p}
	}
	var said []agent.Command
	if len(r.rejects) > 0 {
		said = append(said, agent.Reject{At: r.report.To, Files: pick(r.rejects)})
	}
	if len(r.accepts) > 0 {
		said = append(said, agent.Accept{At: r.report.To, Files: pick(r.accepts)})
	}
	ch.decide(ctx, said...)
}

func (ch *chat) nextFile() {
	r := ch.review
	r.asks, r.hunk = askFile, -1
	if r.at++; r.last || r.at >= len(r.report.Files) {
		ch.leaveReview()
		return
	}
	ch.showReviewed()
}

// leaveReview says what came of the review.
func (ch *chat) leaveReview() {
	r := ch.review
	ch.review = nil
	left := max(len(r.report.Files)-r.accepted-r.rejected, 0)
	ch.v.note(dim, ch.Text.Say(text.ReviewDone, "accepted", r.accepted, "rejected", r.rejected, "left", left))
}

// reviewKeys takes keys as they are pressed.
func (ch *chat) reviewKeys(ctx context.Context, k key) {
	if k.code == keyEnter {
		return
	}
	for _, s := range strings.Split(k.text, "") {
		if ch.review != nil {
			ch.answerReview(ctx, s)
		}
	}
}
