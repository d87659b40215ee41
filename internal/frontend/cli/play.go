package cli

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"dure/agent"
	"dure/internal/frontend/text"
)

const (
	// maxPlayed bounds how many events are held so that one can go back and forth.
	// Longer sessions are played up to an event of theirs.
	maxPlayed = 200_000

	// backDrawn is how many events are drawn again up to one that was gone to.
	backDrawn = 60
)

// A player shows the events of a session on a terminal. It is used by one goroutine.
type player struct {
	*CLI
	info   agent.SessionInfo
	o      PlayOptions
	s      *screen
	v      *painter
	events []agent.Event
	at     int    // events that are on the screen, or were
	paused bool   //
	seek   string // "g" and the digits that were typed; "" = nothing is
	said   string // below the flow, until the next key
	left   *Exited
}

// playKeys plays on a terminal that gives single keys.
func (c *CLI) playKeys(ctx context.Context, info agent.SessionInfo, o PlayOptions) error {
	p := &player{CLI: c, info: info, o: o, s: newScreen(o.Terminal)}
	for e, err := range c.stored(ctx, info.ID, o.To) {
		if err != nil {
			return err
		}
		if len(p.events) == maxPlayed {
			return &agent.Problem{Code: agent.ProblemUsage, Message: c.Text.Say(text.PlayLong, "n", maxPlayed), Fix: c.Text.Say(text.FixPlayLong)}
		}
		p.events = append(p.events, e)
	}
	if o.Terminal.Raw != nil {
		restore, err := o.Terminal.Raw()
		if err != nil {
			return err
		}
		defer restore()
	}
	done := make(chan struct{})
	defer close(done)
	p.start()
	p.loop(ctx, readTerminal(o.Terminal, done))
	p.s.show(nil, 0, 0)
	p.s.startLine()
	if err := p.s.w.Flush(); err != nil {
		return err
	}
	if p.left.Code == ExitOK {
		return nil
	}
	return p.left
}

// start is in front of the first event that is played.
func (p *player) start() {
	p.v = newPainter(p.Text, p.s, p.info.Workdir)
	for p.at < len(p.events) && p.events[p.at].Seq < p.o.From {
		p.v.Apply(p.events[p.at])
		p.at++
	}
}

// loop plays until the user leaves.
func (p *player) loop(ctx context.Context, input <-chan typed) {
	timer := time.NewTimer(p.gap())
	defer timer.Stop()
	for p.left == nil {
		p.redraw()
		var due <-chan time.Time
		if !p.paused && p.seek == "" && p.at < len(p.events) {
			due = timer.C
		}
		select {
		case <-due:
			p.forward()
			timer.Reset(p.gap())
		case in, ok := <-input:
			if !ok {
				p.quit(ExitOK) // the terminal has gone
				break
			}
			for _, k := range in.keys {
				p.key(ctx, k)
			}
			in.read()
			timer.Reset(p.gap())
		case <-ctx.Done():
			p.quit(ExitCode(context.Cause(ctx)))
		}
	}
}

// gap is how long the next event has to wait.
func (p *player) gap() time.Duration {
	if p.o.NoWait || p.at == 0 || p.at >= len(p.events) {
		return 0
	}
	d := p.events[p.at].Time.Sub(p.events[p.at-1].Time)
	if p.o.Speed > 0 {
		d = time.Duration(float64(d) / p.o.Speed)
	}
	if p.o.MaxPause > 0 {
		d = min(d, p.o.MaxPause)
	}
	return max(d, 0)
}

// forward draws the next event.
func (p *player) forward() {
	if p.at < len(p.events) {
		p.again(p.v, p.events[p.at])
		p.at++
	}
}

// to goes to where so many events have been played.
func (p *player) to(at int) {
	at = min(max(at, 0), len(p.events))
	if at < p.at || at > p.at+backDrawn {
		p.s.clear()
		p.s.lines, p.s.col = 0, 0
		p.v = newPainter(p.Text, p.s, p.info.Workdir)
		for _, e := range p.events[:max(0, at-backDrawn)] {
			p.v.Apply(e)
		}
		p.at = max(0, at-backDrawn)
	}
	for p.at < at {
		p.forward()
	}
}

// turn returns where the n-th turn from here ends: 1 = the next one, -1 = the one in
// front of it.
func (p *player) turn(n int) int {
	for at := p.at + n; at > 0 && at < len(p.events); at += n {
		if _, ok := p.events[at-1].Body.(agent.TurnEnded); ok {
			return at
		}
	}
	if n < 0 {
		return 0
	}
	return len(p.events)
}

func (p *player) key(ctx context.Context, k key) {
	p.said = ""
	switch k.code {
	case keyInterrupt:
		p.quit(ExitInterrupted)
	case keyEOF:
		p.quit(ExitOK)
	case keyEnter:
		if p.seek != "" {
			p.goTo()
		}
	case keyBackspace:
		if p.seek != "" {
			p.seek = p.seek[:len(p.seek)-1]
		}
	case keyLeft:
		p.step(p.at - 1)
	case keyRight:
		p.step(p.at + 1)
	case keyTurnBack, keyUp:
		p.step(p.turn(-1))
	case keyTurnOn, keyDown:
		p.step(p.turn(1))
	case keyRedraw:
		p.to(0)
	case keyText:
		for _, r := range k.text {
			p.letter(ctx, r)
		}
	}
}

func (p *player) letter(ctx context.Context, r rune) {
	if p.seek != "" {
		const most = 18 // digits
		if r >= '0' && r <= '9' && len(p.seek) <= most {
			p.seek += string(r)
		} else {
			p.seek = ""
		}
		return
	}
	switch r {
	case ' ':
		p.paused = !p.paused
	case '[':
		p.step(p.turn(-1))
	case ']':
		p.step(p.turn(1))
	case 'g':
		p.seek = "g"
	case 'f':
		p.fork(ctx)
	case 'q':
		p.quit(ExitOK)
	}
}

// step goes somewhere and stays there.
func (p *player) step(at int) {
	p.paused, p.seek = true, ""
	p.to(at)
}

func (p *player) goTo() {
	n, err := strconv.Atoi(p.seek[1:])
	if err != nil || n > len(p.events) {
		p.said = p.Text.Say(text.PlayNoEvent, "seq", p.seek[1:], "head", len(p.events))
		p.seek = ""
		return
	}
	p.step(n)
}

// fork makes a session that goes on from the event on show.
func (p *player) fork(ctx context.Context) {
	p.paused = true
	if p.at == 0 {
		return
	}
	s, err := p.Client.Open(ctx, agent.Open{Fork: p.info.ID, At: p.events[p.at-1].Seq, Edit: true})
	if err == nil {
		err = s.Close(ctx)
	}
	if err != nil {
		p.v.fault(explain(p.Text, err))
		return
	}
	p.v.note(green, p.Text.Say(text.Forked, "session", s.Info.ID, "from", p.info.ID))
}

func (p *player) quit(code int) {
	if p.left == nil {
		p.left = &Exited{Code: code}
	}
}

// redraw brings the line below the flow up to date.
func (p *player) redraw() {
	p.s.measure()
	line := p.said
	switch {
	case p.seek != "":
		line = p.Text.Say(text.PlaySeek, "seq", p.seek[1:])
	case line == "":
		line = p.status()
	}
	line = text.Cut(line, p.s.usable())
	if p.o.Terminal.Color {
		line = "\x1b[2m" + line + "\x1b[0m"
	}
	p.s.show([]string{line}, 0, 0)
	if err := p.s.w.Flush(); err != nil {
		p.quit(ExitFailed) // nobody sees us any more
	}
}

func (p *player) status() string {
	state, when := text.Playing, ""
	switch {
	case p.at >= len(p.events):
		state = text.PlayEnd
	case p.paused:
		state = text.PlayPaused
	}
	if p.at > 0 {
		when = p.events[p.at-1].Time.Local().Format(time.TimeOnly)
	}
	return joined(p.Text.Say(state), fmt.Sprintf("%d/%d", p.at, len(p.events)), when, p.Text.Say(text.PlayKeys))
}
