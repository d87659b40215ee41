package export

import "dure/internal/frontend/text"

// Words are what a document says by itself, in the language of its reader.
type Words struct {
	Session, Folder, Model, Created, Updated, Tags, Origin, Cost string

	You, Assistant, Thinking, Arguments, Result, Failed, NoResult, Change, System, Child string

	Plan, PlanChanged, PlanApproved, PlanRejected, PlanAnother string

	Compacted, TurnFailed, Settled, Note, Good, Bad string

	Cut   string // behind it: why the log ends here
	More  string // behind it: bytes of a text that are left out
	Image string // stands for an image that is not shown
	Print string // how to print the page
}

// level is what stands in front of a note.
func (w Words) level(level string) string {
	switch level {
	case "compacted":
		return w.Compacted
	case "failed":
		return w.TurnFailed
	case "settled":
		return w.Settled
	}
	return w.Note
}

// plan is what became of a plan, and by whose word. The text is all of it where whole is
// set, and else why.
func (w Words) plan(it Item) (name string, whole bool) {
	switch it.Level {
	case "proposed":
		return w.Plan, true
	case "changed":
		name, whole = w.PlanChanged, true
	case "approved":
		name = w.PlanApproved
	case "regenerate":
		name = w.PlanAnother
	default:
		name = w.PlanRejected
	}
	switch it.From {
	case "":
	case "user":
		name += " (" + w.You + ")"
	default:
		name += " (" + it.From + ")"
	}
	return name, whole
}

// row is a line of the head of a document.
type row struct{ name, value string }

// head is what a document says of its session.
func (w Words) head(d *Doc) []row {
	const stamp = "2006-01-02 15:04:05 UTC"
	rows := []row{{w.Session, d.Session}, {w.Folder, d.Workdir}, {w.Model, d.Model}, {w.Created, d.Created.Format(stamp)}, {w.Updated, d.Updated.Format(stamp)}}
	if len(d.Tags) > 0 {
		tags := ""
		for _, t := range d.Tags {
			tags += " #" + t
		}
		rows = append(rows, row{w.Tags, tags[1:]})
	}
	if d.Origin != "" {
		rows = append(rows, row{w.Origin, d.Origin})
	}
	if d.Cost != nil {
		rows = append(rows, row{w.Cost, d.Cost.String()})
	}
	var some []row
	for _, r := range rows {
		if r.value != "" {
			some = append(some, r)
		}
	}
	return some
}

// WordsOf returns the words of documents in a language.
func WordsOf(t text.Catalog) Words {
	return Words{
		Session: t.Say(text.DocSession), Folder: t.Say(text.DocFolder), Model: t.Say(text.DocModel), Created: t.Say(text.DocCreated),
		Updated: t.Say(text.DocUpdated), Tags: t.Say(text.DocTags), Origin: t.Say(text.DocOrigin), Cost: t.Say(text.DocCost),
		You: t.Say(text.DocYou), Assistant: t.Say(text.DocAssistant), Thinking: t.Say(text.DocThinking), Arguments: t.Say(text.DocArguments),
		Result: t.Say(text.DocResult), Failed: t.Say(text.DocFailed), NoResult: t.Say(text.DocNoResult), Change: t.Say(text.DocChange),
		System: t.Say(text.DocSystem), Child: t.Say(text.DocChild), Compacted: t.Say(text.DocCompacted), TurnFailed: t.Say(text.DocTurnFailed),
		Plan: t.Say(text.PlanDoc), PlanChanged: t.Say(text.PlanDocChanged), PlanApproved: t.Say(text.PlanIsApproved), PlanRejected: t.Say(text.PlanIsRejected),
		PlanAnother: t.Say(text.PlanIsAnother),
		Settled:     t.Say(text.DocSettled), Note: t.Say(text.DocNote), Good: t.Say(text.DocGood), Bad: t.Say(text.DocBad),
		Cut: t.Say(text.DocCut), More: t.Say(text.DocMore), Image: t.Say(text.DocImage), Print: t.Say(text.DocPrint),
	}
}
