package read

import (
	"cmp"
	"fmt"
	"strings"

	"dure/agent/query"
	"dure/internal/knowledge/mention"
)

// describe is an attachment as front-ends have it.
func describe(a mention.Attachment) query.Mentioned {
	d := query.Mentioned{
		ID: a.ID, Kind: string(a.Kind), Text: a.Mention.Text, Name: a.Name, Path: a.Path, First: a.First, Last: a.Last,
		Bytes: a.Bytes, Media: a.Media, State: query.MentionAttached, Reason: a.Refused,
	}
	if a.Media == "" && a.Refused == "" {
		d.Lines = strings.Count(strings.TrimSuffix(a.Text, "\n"), "\n") + 1
	}
	switch {
	case a.Refused != "":
		d.State = query.MentionLeft
	case a.Path == "" && a.Text == "":
		d.State, d.Lines = query.MentionNamed, 0
	case a.Truncated:
		d.State = query.MentionCut
	}
	return d
}

// label is what a person reads of a mention.
func label(d query.Mentioned) string {
	name := cmp.Or(d.Path, d.Name)
	switch {
	case d.Kind == string(mention.Session):
		name = "session:" + d.Name
	case d.Path == "" && strings.HasPrefix(d.Text, "@#"):
		name = "#" + d.Name
	}
	if d.First > 0 {
		name += fmt.Sprintf(":%d-%d", d.First, d.Last)
	}
	return name
}

// weight is how much is read with an input, for people.
func weight(bytes int) string {
	switch {
	case bytes >= 1<<20:
		return fmt.Sprintf("%.1f MB", float64(bytes)/(1<<20))
	case bytes >= 1<<10:
		return fmt.Sprintf("%.1f KB", float64(bytes)/(1<<10))
	}
	return fmt.Sprintf("%d B", bytes)
}

// reason tells the model why it reads nothing of a mention; "" = it does.
func (m *mentions) reason(a mention.Attachment) string {
	switch a.Refused {
	case "":
		if a.Path == "" && a.Text == "" && a.Kind == mention.URL {
			return "the user names this address; nothing of it was read. Fetch it with " + m.c.Fetch + " if you need it"
		}
		if a.Path == "" && a.Text == "" {
			return "nothing was read"
		}
		return ""
	case mention.Missing:
		return "there is nothing of that name in the workspace"
	case mention.Outside:
		return "it is not in the workspace; nothing was read"
	case mention.Secret, mention.Denied:
		return "it is kept from being read (" + a.Refused + ")"
	case "no-media":
		return "the model that answers takes no such media"
	}
	return "not attached: " + a.Refused
}
