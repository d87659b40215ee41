package builtin

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"dure/agent"
	"dure/internal/tools/catalog"
	"dure/internal/tools/kit"
)

//go:embed toolsearch.md
var toolSearchText string

const toolSearchSchema = `{"type":"object","properties":{"query":{"type":"string","minLength":1,"maxLength":2000,"description":"words, or select:NAME,NAME"},` +
	`"max_results":{"type":"integer","minimum":1,"maximum":20,"default":5}},"required":["query"],"additionalProperties":false}`

// maxAbout is how many bytes of a description are shown of a tool that was found.
const maxAbout = 160

// Search returns the tool that finds those that are only named in the step of a session,
// and has them loaded.
func Search(step func() *catalog.Step, load func(call string, names []string) error) agent.Tool {
	return kit.Tool{
		About: agent.Spec{
			Name: catalog.Search, Description: kit.Describe(toolSearchText), Input: json.RawMessage(toolSearchSchema),
			Class: agent.Read, Group: "planning", Risk: agent.RiskLow,
		},
		Touches: func(agent.ToolContext, agent.Call) (agent.Effects, error) { return agent.Effects{}, nil },
		Does: func(_ context.Context, _ agent.ToolContext, c agent.Call) (agent.Result, error) {
			in, err := kit.Decode[struct {
				Query string `json:"query"`
				Max   int    `json:"max_results"`
			}](c)
			if err != nil {
				return agent.Result{}, err
			}
			s := step()
			found, missing := find(s, in.Query, cmp.Or(in.Max, 5))
			if len(found) > 0 {
				names := make([]string, len(found))
				for i, spec := range found {
					names[i] = spec.Name
				}
				if err := load(c.ID, names); err != nil {
					return agent.Result{}, fmt.Errorf("loading tools: %w", err)
				}
			}
			return agent.OK(foundText(found, missing, len(s.Named()))), nil
		},
	}
}

// maxNamed is how many bytes the names of tools take up at most that are only named.
const maxNamed = 8 << 10

// Named is what a model is told of the tools that are only named in a step, by what their
// names begin with; "" = there are none. Of what is too many, only the number is told.
func Named(s *catalog.Step) string {
	var groups []string
	ends := map[string][]string{}
	for _, spec := range s.Named() {
		at := strings.LastIndex(spec.Name, "__") + 2
		if rest, ok := strings.CutPrefix(spec.Name, "mcp__"); ok { // the name of the tool may have __
			server, _, _ := strings.Cut(rest, "__")
			at = len("mcp____") + len(server)
		}
		begin := spec.Name[:at]
		if ends[begin] == nil {
			groups = append(groups, begin)
		}
		ends[begin] = append(ends[begin], spec.Name[at:])
	}
	if groups == nil {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Further tools, which %s loads by name or by what they do; until then they cannot be called. A name is the part before the star and one behind it:", cmp.Or(s.Names()[catalog.Search], catalog.Search))
	for _, begin := range groups {
		line := strings.Join(ends[begin], ", ")
		if b.Len()+len(begin)+len(line) > maxNamed {
			line = fmt.Sprintf("%d tools", len(ends[begin]))
		}
		fmt.Fprintf(&b, "\n- %s*: %s", begin, line)
	}
	return b.String()
}

// find returns the tools that a query means, the best first, and what is wrong with names
// that it selects.
func find(s *catalog.Step, query string, most int) (found []agent.Spec, missing []string) {
	if list, ok := strings.CutPrefix(strings.TrimSpace(query), "select:"); ok {
		for name := range strings.SplitSeq(list, ",") {
			name = strings.TrimSpace(name)
			at := slices.IndexFunc(s.Named(), func(spec agent.Spec) bool { return spec.Name == name })
			_, there := s.Lookup(name)
			switch {
			case name == "":
			case at < 0 && there:
				missing = append(missing, name+" is loaded already")
			case at < 0:
				missing = append(missing, "there is no tool "+name)
			case !slices.ContainsFunc(found, func(f agent.Spec) bool { return f.Name == name }):
				found = append(found, s.Named()[at])
			}
		}
		return found, missing
	}
	type ranked struct {
		spec  agent.Spec
		score int
	}
	var all []ranked
	words := strings.Fields(strings.ToLower(query))
	for _, spec := range s.Named() {
		if score := fits(spec, words); score > 0 {
			all = append(all, ranked{spec, score})
		}
	}
	slices.SortStableFunc(all, func(a, b ranked) int { return b.score - a.score })
	for _, r := range all[:min(len(all), most)] {
		found = append(found, r.spec)
	}
	return found, nil
}

// leastPart is how many bytes a word has that counts within another one.
const leastPart = 4

// fits says how well a tool fits words; 0 = not at all.
func fits(spec agent.Spec, words []string) (score int) {
	name, about := strings.ToLower(spec.Name), strings.ToLower(spec.Description)
	apart := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }
	inName, inAbout := strings.FieldsFunc(name, apart), strings.FieldsFunc(about, apart)
	for _, word := range words {
		word, needed := strings.CutPrefix(word, "+")
		n := 0
		switch {
		case word == "":
			continue
		case word == name:
			n = 100
		case slices.Contains(inName, word):
			n = 10
		case len(word) >= leastPart && strings.Contains(name, word):
			n = 5
		}
		switch {
		case len(word) >= leastPart-1 && slices.Contains(inAbout, word):
			n += 3
		case len(word) >= leastPart && strings.Contains(about, word):
			n++
		}
		if n == 0 && needed {
			return 0
		}
		score += n
	}
	return score
}

// foundText is what the model reads of a search.
func foundText(found []agent.Spec, missing []string, of int) string {
	var b strings.Builder
	if len(found) > 0 {
		b.WriteString("Loaded. From your next step on you can call:\n")
	} else {
		fmt.Fprintf(&b, "Nothing was loaded; %d tools are known by name. Try other words, or select: with names that you have read.\n", of)
	}
	for _, spec := range found {
		about, _, _ := strings.Cut(strings.TrimSpace(spec.Description), "\n")
		if len(about) > maxAbout {
			about = strings.ToValidUTF8(about[:maxAbout], "") + "..."
		}
		quoted, _ := json.Marshal(about) // so that no description looks like another entry
		fmt.Fprintf(&b, "- %s: %s\n", spec.Name, quoted)
	}
	for _, m := range missing {
		fmt.Fprintf(&b, "(%s)\n", m)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
