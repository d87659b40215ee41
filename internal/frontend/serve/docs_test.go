package serve

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/base/meter"
	"dure/internal/frontend/auth"
)

// The documents name every route, command, query, code and figure of the server.
func TestDocuments(t *testing.T) {
	read := func(name string) string {
		data, err := os.ReadFile("../../../docs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	figures := meter.New(time.Unix(0, 0))
	s, err := New(Config{Client: client.New(newLogs()), Token: secret, Version: "1", Files: noFiles, Meter: figures})
	if err != nil {
		t.Fatal(err)
	}
	defer s.end()
	server, errs := read("server.md"), read("errors.md")
	named := regexp.MustCompile(`^(/v1/(?:sessions/\{id\}/commands|queries)/)(.*)$`)
	for _, r := range s.routes {
		want := "`" + r.Method + " " + r.Path + "`"
		if m := named.FindStringSubmatch(r.Path); m != nil {
			if !strings.Contains(server, "`"+m[2]+"`") {
				t.Errorf("docs/server.md does not name %s", m[2])
			}
			want = "`" + r.Method + " " + m[1] + "{name}`"
		}
		if !strings.Contains(server, want) {
			t.Errorf("docs/server.md does not have %s", want)
		}
	}
	for _, m := range figures.Read() {
		if !strings.Contains(server, "`"+m.Name+"`") {
			t.Errorf("docs/server.md does not have the figure %s", m.Name)
		}
	}
	if table := accessTable(); !strings.Contains(server, table) {
		t.Errorf("docs/server.md does not have this table:\n%s", table)
	}
	_, codes, _ := strings.Cut(errs, "## The server\n")
	codes, _, _ = strings.Cut(codes, "\n## ")
	for _, code := range []string{
		noRoute, wrongMethod, noJSON, badRequest, tooSlow, forbidden, ending, string(client.ProblemAnswered), string(client.ProblemNoQuestion), guarded, localOnly, noFile, noUser, badPath,
		auth.NoName, auth.NoOrigin, auth.NoToken, auth.TooMany, auth.TooOften, auth.TooLarge, auth.Incomplete, auth.Unavailable,
	} {
		if !strings.Contains(codes, "`"+code+"`") {
			t.Errorf("docs/errors.md does not have the code %s", code)
		}
	}
	for code := range statuses {
		if code != agent.ProblemInternal && !strings.Contains(errs, "`"+string(code)+"`") {
			t.Errorf("docs/errors.md does not have the problem %s", code)
		}
	}
}

// accessTable is who may ask what, as docs/server.md has it.
func accessTable() string {
	var b strings.Builder
	b.WriteString("| query | users may set | |\n|---|---|---|\n")
	for _, name := range query.Queries() {
		a := query.AccessTo(name)
		users, rest := "they may not ask it", ""
		if a.Guarded {
			rest = "guarded"
		}
		if a.Local != "" {
			rest = "local: " + a.Local
		}
		if a.Users != nil {
			users = "nothing"
			typ, _, _ := query.QueryTypes(name)
			var fields []string
			for _, f := range a.Users {
				field, _ := typ.FieldByName(f)
				wire, _, _ := strings.Cut(field.Tag.Get("json"), ",")
				fields = append(fields, "`"+wire+"`")
			}
			if fields != nil {
				users = strings.Join(fields, ", ")
			}
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", name, users, rest)
	}
	return b.String()
}
