package index

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/state/journal"
)

// world is a source with some of everything.
func world() *logs {
	l := newLogs()
	l.add("a1",
		agent.SessionOpened{Session: "a1", Title: "Café opening hours"},
		input("Why does the parser fail on empty input?"),
		answer("I will look at ParseConfig in config_parser.go.", call("c1", "bash__exec", map[string]string{"command": "grep -rn 'unexpected EOF' ./internal"})),
		result("c1", "bash__exec", "internal/config_parser.go:42: return errors.New(\"unexpected EOF\")\n"),
		answer("The parser does not allow for an empty file."))
	l.add("b2",
		input("서버에서 SQLite를 쓰는 방법을 설명해 줘"),
		answer("데이터베이스 연결은 서버가 시작될 때 한 번만 만듭니다. 설정은 config.go에 있습니다."),
		input("ファイルを開くエラーと数据库连接失败"),
		agent.CallFinished{Tool: "bash__exec", Result: l.spill("c2", "first lines", "first lines\n"+strings.Repeat("filler line of a build\n", 2000)+"deep inside: linker command failed\n")})
	l.add("c3",
		input("one two three"),
		answer("two one"),
		input("RESUME the Résumé of naïve Ångström"),
		agent.ConversationRewound{To: 2},
		input("three two one"))
	m := l.metas["c3"]
	m.Tags, m.Title = []string{"work", "later on"}, "Counting"
	l.metas["c3"] = m
	return l
}

// lines writes hits as a person would.
func lines(r query.SearchResult) string {
	var s strings.Builder
	for _, h := range r.Hits {
		text, shift := h.Snippet, 0
		for _, m := range h.Marks {
			text = text[:m.From+shift] + "[" + text[m.From+shift:m.To+shift] + "]" + text[m.To+shift:]
			shift += 2
		}
		dead := ""
		if h.Dead {
			dead = " dead"
		}
		fmt.Fprintf(&s, "%s %d %s%s: %s\n", h.Session, h.Seq, h.Kind, dead, text)
	}
	if r.More {
		s.WriteString("more\n")
	}
	return s.String()
}

func updated(t testing.TB, x *Index, src Source) query.IndexReport {
	t.Helper()
	rep, err := x.Update(context.Background(), src, 0)
	if err != nil || !rep.Done {
		t.Fatal(rep, err)
	}
	return rep
}

func TestSearch(t *testing.T) {
	x := open(t, Options{Now: func() time.Time { return begin.AddDate(1, 0, 0) }})
	updated(t, x, world())
	for _, tt := range []struct{ query, want string }{
		{"parser empty", "a1 2 input: Why does the [parser] fail on [empty] input?\na1 5 answer: The [parser] does not allow for an [empty] file.\n"},
		{`"empty input"`, "a1 2 input: Why does the parser fail on [empty input]?\n"},
		{`"input empty"`, ""},
		{"parser -fail -file", "a1 3 answer: I will look at ParseConfig in config_[parser].go.\na1 4 result: internal/config_[parser].go:42: return errors.New(\"unexpected EOF\")\n"},
		{"config_parser.go kind:answer", "a1 3 answer: I will look at ParseConfig in [config_parser.go].\n"},
		{"parsec*", "a1 3 answer: I will look at [ParseC]onfig in config_parser.go.\n"},
		{`"allow for" file*`, "a1 5 answer: The parser does not [allow for] an empty [file].\n"},
		{"grep kind:call", "a1 3 call: [grep] -rn 'unexpected EOF' ./internal\n"},
		{"cafe", "a1 1 title: [Café] opening hours\n"},
		{"resume angstrom NAIVE", "c3 3 input dead: [RESUME] the [Résumé] of [naïve] [Ångström]\n"},
		{"linker", "b2 4 result: … filler line of a build filler line of a build deep inside: [linker] command failed\n"},

		// Parts of words, and words with particles.
		{"서버", "b2 1 input: [서버]에서 SQLite를 쓰는 방법을 설명해 줘\nb2 2 answer: 데이터베이스 연결은 [서버]가 시작될 때 한 번만 만듭니다. 설정은 config.go에 있습니다.\n"},
		{"이터베", "b2 2 answer: 데[이터베]이스 연결은 서버가 시작될 때 한 번만 만듭니다. 설정은 config.go에 있습니다.\n"},
		{"버", "b2 1 input: 서[버]에서 SQLite를 쓰는 방법을 설명해 줘\nb2 2 answer: 데이터베이스 연결은 서[버]가 시작될 때 한 번만 만듭니다. 설정은 config.go에 있습니다.\n"},
		{"줘", "b2 1 input: 서버에서 SQLite를 쓰는 방법을 설명해 [줘]\n"},
		{"sqlite", "b2 1 input: 서버에서 [SQLite]를 쓰는 방법을 설명해 줘\n"},
		{"SQLite를", "b2 1 input: 서버에서 [SQLite를] 쓰는 방법을 설명해 줘\n"},
		{"SQLite가", ""},
		{"서버 -연결", "b2 1 input: [서버]에서 SQLite를 쓰는 방법을 설명해 줘\n"},
		{`"연결은 서버"`, "b2 2 answer: 데이터베이스 [연결은 서버]가 시작될 때 한 번만 만듭니다. 설정은 config.go에 있습니다.\n"},
		{`"서버 연결"`, ""},
		{"연결 서버", "b2 2 answer: 데이터베이스 [연결]은 [서버]가 시작될 때 한 번만 만듭니다. 설정은 config.go에 있습니다.\n"},
		{"\u1109\u1165\u1107\u1165\u110b\u1166", "b2 1 input: [서버에]서 SQLite를 쓰는 방법을 설명해 줘\n"}, // the same syllables, in pieces
		{"エラー", "b2 3 input: ファイルを開く[エラー]と数据库连接失败\n"},
		{"数据库", "b2 3 input: ファイルを開くエラーと[数据库]连接失败\n"},

		// Filters, and what only looks like one.
		{"one tag:work", "c3 2 answer: two [one]\nc3 5 input: three two [one]\nc3 1 input: [one] two three\n"},
		{`one tag:"later on"`, "c3 2 answer: two [one]\nc3 5 input: three two [one]\nc3 1 input: [one] two three\n"},
		{"one tag:late", ""},
		{"one session:c", "c3 2 answer: two [one]\nc3 5 input: three two [one]\nc3 1 input: [one] two three\n"},
		{"one session:a", ""},
		{"parser workdir:/home/user/a1", "a1 2 input: Why does the [parser] fail on empty input?\na1 5 answer: The [parser] does not allow for an empty file.\na1 3 answer: I will look at ParseConfig in config_[parser].go.\na1 4 result: internal/config_[parser].go:42: return errors.New(\"unexpected EOF\")\n"},
		{"parser workdir:/home/user/a", ""},
		{"one workdir:c3", "c3 2 answer: two [one]\nc3 5 input: three two [one]\nc3 1 input: [one] two three\n"},
		{"one since:2026-01-07", "c3 2 answer: two [one]\nc3 5 input: three two [one]\nc3 1 input: [one] two three\n"},
		{"parser since:2026-01-07", ""},
		{"three since:52w", "c3 5 input: [three] two one\nc3 1 input: one two [three]\n"},
		{"go:42", "a1 4 result: internal/config_parser.[go:42]: return errors.New(\"unexpected EOF\")\n"},
		{"--rn", "a1 3 call: grep -[rn] 'unexpected EOF' ./internal\n"},
		{`"one two" three`, "c3 1 input: [one two] [three]\n"},
	} {
		r, err := x.Search(context.Background(), query.Search{Text: tt.query})
		if err != nil {
			t.Errorf("%s: %v", tt.query, err)
		} else if d := cmp.Diff(tt.want, lines(r)); d != "" {
			t.Errorf("%s:\n%s", tt.query, d)
		}
	}
}

func TestQueryErrors(t *testing.T) {
	x := open(t, Options{})
	for _, tt := range []struct{ query, want string }{
		{"", "the query has no word to look for"},
		{"-not -that", "the query has no word to look for"},
		{"!? ()", "the query has no word to look for"},
		{"parser p*", "the beginning of a word needs two letters"},
		{"kind:call", "the query has no word to look for"},
		{"a kind:thing", "a kind is one of input, answer, call, result, title"},
		{"a since:soon", "since is a time span or a day, such as 7d, 12h or 2026-01-31"},
		{strings.Repeat("a ", 33), "the query has more than 32 words"},
		{strings.Repeat("a", 1001), "the query is longer than 1000 bytes"},
	} {
		_, err := x.Search(context.Background(), query.Search{Text: tt.query})
		if _, ok := errors.AsType[*QueryError](err); !ok || err.Error() != tt.want {
			t.Errorf("%s: %v", tt.query, err)
		}
	}
}

// Newer documents come before older ones that fit as well, and pages do not overlap.
func TestPages(t *testing.T) {
	l := newLogs()
	for n := range 30 {
		l.add(fmt.Sprintf("s%02d", n), input("the same words"))
	}
	x := open(t, Options{Now: func() time.Time { return begin.AddDate(0, 1, 0) }})
	updated(t, x, l)
	var got []string
	for _, offset := range []int{0, 20, 40} {
		r, err := x.Search(context.Background(), query.Search{Text: "same", Offset: offset})
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range r.Hits {
			got = append(got, h.Session)
		}
		got = append(got, fmt.Sprint(r.More))
	}
	var want []string
	for n := 29; n >= 0; n-- {
		if want = append(want, fmt.Sprintf("s%02d", n)); n == 10 {
			want = append(want, "true")
		}
	}
	if d := cmp.Diff(append(want, "false", "false"), got); d != "" {
		t.Error(d)
	}
}

// dump is all that an index has, apart from how it is numbered.
func dump(t testing.TB, x *Index) []string {
	t.Helper()
	rows, err := x.conn.QueryContext(context.Background(), `SELECT s.id, s.title, s.workdir, s.tags, s.head, s.seq, s.last, s.dead, s.stale, d.seq, d.piece, d.kind, d.time, d.tool, d.text,
		(SELECT count(*) FROM words WHERE words MATCH 'meta : "s' || s.num || '"'), (SELECT count(*) FROM words WHERE words MATCH 'meta : "s' || s.num || '" AND meta : "k' || d.kind || '"' AND rowid = d.id)
		FROM sessions s LEFT JOIN docs d ON d.session = s.num ORDER BY s.id, d.seq, d.kind, d.tool, d.piece`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		cols := make([]any, 17)
		to := make([]any, len(cols))
		for i := range cols {
			to[i] = &cols[i]
		}
		if err := rows.Scan(to...); err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprint(cols...))
	}
	var docs, found int
	if err := x.conn.QueryRowContext(context.Background(), "SELECT count(*) FROM docs").Scan(&docs); err != nil {
		t.Fatal(err)
	}
	if err := x.conn.QueryRowContext(context.Background(), `SELECT count(*) FROM words WHERE words MATCH 'meta : k1 OR meta : k2 OR meta : k3 OR meta : k4 OR meta : k5'`).Scan(&found); err != nil {
		t.Fatal(err)
	}
	return append(all, fmt.Sprint(docs, found))
}

// fresh is what an index has that was made at once.
func fresh(t testing.TB, src Source) []string {
	t.Helper()
	x := open(t, Options{})
	updated(t, x, src)
	return dump(t, x)
}

// What changes in the sessions changes in the index, and what did not is not read.
func TestUpdate(t *testing.T) {
	l := world()
	x := open(t, Options{Dir: t.TempDir()})
	if rep := updated(t, x, l); rep != (query.IndexReport{Done: true, Sessions: 3, Events: 14, Documents: 19}) {
		t.Errorf("%+v", rep)
	}
	for _, step := range []struct {
		what  string
		reads int
		do    func()
	}{
		{"nothing", 0, func() {}},
		{"more is said", 1, func() { l.add("a1", input("one thing more")) }},
		{"a title", 1, func() { m := l.metas["b2"]; m.Title = "Another"; l.metas["b2"] = m }},
		{"a new session", 1, func() { l.add("d4", input("hello")) }},
		{"a rewind", 2, func() { l.add("b2", agent.ConversationRewound{To: 2}) }},
		{"a session is gone", 0, func() { l.ids = append(l.ids[:1:1], l.ids[2:]...) }},
		{"another log of the same name", 1, func() {
			delete(l.metas, "a1")
			delete(l.all, "a1")
			m := journal.Meta{}
			m.ID, m.Created = "a1", "2026-01-06T00:00:00Z"
			l.metas["a1"] = m
			l.add("a1", input("quite another"))
		}},
		{"a log with another end", 3, func() {
			l.all["c3"] = l.all["c3"][:4]
			m := l.metas["c3"]
			m.Head = 4
			l.metas["c3"] = m
			l.add("c3", input("written after the disk was restored"))
			l.all["c3"][4].ID = "another"
			m = l.metas["c3"]
			m.Updated += "0"
			l.metas["c3"] = m
		}},
		{"a damaged log", 1, func() {
			l.add("c3", input("before the damage"))
			l.bad["c3"] = fmt.Errorf("reading: %w", journal.ErrDamaged)
		}},
		{"the damage is known", 0, func() {}},
		{"a log that cannot be opened now", 1, func() {
			l.add("d4", input("later"))
			l.bad["d4"] = errors.New("too many open files")
		}},
		{"and is tried again", 1, func() { l.bad["d4"] = nil }},
		{"at last", 0, func() {}},
	} {
		step.do()
		l.reads = 0
		updated(t, x, l)
		if l.reads != step.reads {
			t.Errorf("%s: %d reads, not %d", step.what, l.reads, step.reads)
		}
		if l.bad["d4"] != nil {
			continue // there is no end of it
		}
		if d := cmp.Diff(fresh(t, l), dump(t, x)); d != "" {
			t.Errorf("%s:\n%s", step.what, d)
		}
	}
}

// A fork has what it was made from: that is found once, and in the fork if one asks.
func TestForks(t *testing.T) {
	l := newLogs()
	l.add("parent", input("common ground"), answer("only here"))
	l.add("fork")
	l.all["fork"] = append(l.all["fork"], l.all["parent"][0])
	m := l.metas["fork"]
	m.Head, m.Parent, m.ForkSeq = 1, "parent", 1
	l.metas["fork"] = m
	l.add("fork", answer("only there"))
	x := open(t, Options{})
	updated(t, x, l)
	for _, tt := range []struct{ query, want string }{
		{"common", "parent 1 input: [common] ground\n"},
		{"common session:fork", "fork 1 input: [common] ground\n"},
		{"only", "fork 2 answer: [only] there\nparent 2 answer: [only] here\n"},
	} {
		r, err := x.Search(context.Background(), query.Search{Text: tt.query})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(tt.want, lines(r)); d != "" {
			t.Errorf("%s:\n%s", tt.query, d)
		}
	}
}

// An update that has little time goes on where it was.
func TestInPieces(t *testing.T) {
	l := world()
	now := begin
	x := open(t, Options{Dir: t.TempDir(), Now: func() time.Time { now = now.Add(time.Second); return now }})
	for n := 0; ; n++ {
		rep, err := x.Update(context.Background(), l, time.Second)
		if err != nil || n > 20 {
			t.Fatal(n, rep, err)
		}
		if rep.Done {
			if n < 3 || rep.Left != 0 {
				t.Errorf("done in %d pieces, %+v", n, rep)
			}
			break
		}
	}
	if d := cmp.Diff(fresh(t, l), dump(t, x)); d != "" {
		t.Error(d)
	}
}

func TestCancelled(t *testing.T) {
	x := open(t, Options{Dir: t.TempDir()})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := x.Update(ctx, world(), 0); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if _, err := x.Search(ctx, query.Search{Text: "one"}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	updated(t, x, world())
	if d := cmp.Diff(fresh(t, world()), dump(t, x)); d != "" {
		t.Error(d)
	}
}

// One process writes; others search meanwhile, and say so if they want to write, too.
func TestOneWriter(t *testing.T) {
	dir := t.TempDir()
	x := open(t, Options{Dir: dir})
	updated(t, x, world())
	y := open(t, Options{Dir: dir, Wait: time.Millisecond})
	inside := func(string) {
		r, err := y.Search(context.Background(), query.Search{Text: "thing"})
		if err != nil || len(r.Hits) != 0 {
			t.Errorf("while it was written: %v %v", r, err)
		}
		if _, err := y.Update(context.Background(), world(), 0); !errors.Is(err, ErrBusy) {
			t.Errorf("a second writer: %v", err)
		}
		if err := y.Reset(context.Background()); !errors.Is(err, ErrBusy) {
			t.Errorf("removed while it was written: %v", err)
		}
		y = open(t, Options{Dir: dir, Wait: time.Millisecond})
	}
	x.o.Fault = func(boundary string) {
		if boundary == "update.commit" {
			inside(boundary)
		}
	}
	l := world()
	l.add("a1", input("one thing more"))
	updated(t, x, l)
	r, err := y.Search(context.Background(), query.Search{Text: "thing"})
	if err != nil || lines(r) != "a1 6 input: one [thing] more\n" {
		t.Errorf("%s %v", lines(r), err)
	}
}

// What is no index, or another one, is thrown away; the user is told nothing of it.
func TestMadeAgain(t *testing.T) {
	page := func(n int64, path string) error {
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = f.WriteAt([]byte(strings.Repeat("\xa5", 4096)), n*4096)
		return err
	}
	for _, tt := range []struct {
		name  string
		spoil func(path string) error
	}{
		{"missing", os.Remove},
		{"empty", func(path string) error { return os.Truncate(path, 0) }},
		{"text", func(path string) error {
			return os.WriteFile(path, []byte(strings.Repeat("no database ", 1000)), 0o600)
		}},
		{"half", func(path string) error { return os.Truncate(path, 4096+100) }},
		{"first page", func(path string) error { return page(0, path) }},
		{"of another version", func(path string) error {
			x := open(t, Options{Dir: filepath.Dir(path)})
			return errors.Join(x.exec(context.Background(), "PRAGMA user_version = 99"), x.Close())
		}},
	} {
		dir := t.TempDir()
		x := open(t, Options{Dir: dir})
		updated(t, x, world())
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, fileName)
		if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o077 != 0 && os.PathSeparator == '/' {
			t.Fatal(info.Mode(), err)
		}
		if err := tt.spoil(path); err != nil {
			t.Fatal(err)
		}
		x = open(t, Options{Dir: dir})
		if _, err := x.Update(context.Background(), world(), 0); errors.Is(err, ErrDamaged) {
			if err := x.Reset(context.Background()); err != nil {
				t.Fatal(tt.name, err)
			}
		}
		updated(t, x, world())
		if d := cmp.Diff(fresh(t, world()), dump(t, x)); d != "" {
			t.Errorf("%s:\n%s", tt.name, d)
		}
	}
}
