package policy

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"dure/agent"
)

// maxSuggested is how many rules one answer may stand for.
const maxSuggested = 5

// Suggest returns the answers that would hold beyond the call: each with the rules
// that would have allowed it, one for each part that needs approval, at most five.
// There is none where no rule could allow the call. Edits are for the session
// only, and so is what can run anything.
func (p *Policy) Suggest(prop agent.Proposal) []agent.Choice {
	s := p.state.Load()
	if d := s.before(prop); d.Verdict != agent.Pass {
		return nil
	}
	l := look{s: s, Proposal: prop}
	l.gather()
	if s.ManagedOnly || l.floor() != "" || l.unconfined() != "" {
		return nil
	}
	var w words
	if s.ask.collect(&l, &w); w.sole != nil {
		return nil
	}
	sum := l.weigh(false)
	rules, always := l.offers(sum)
	if len(rules) == 0 {
		return nil
	}
	choices := []agent.Choice{{Remember: "session", Rules: rules}}
	if always {
		choices = append(choices, agent.Choice{Remember: "always", Rules: slices.Clone(rules)})
	}
	if folder := l.folderOf(sum); folder != "" {
		choices = append(choices, agent.Choice{Remember: "session", Rules: []string{folder}})
	}
	return choices
}

// offers returns rules that would allow what is open, and whether they may hold
// for ever; none when one of the pieces has none, or what runs later changes.
func (l *look) offers(sum *summary) (rules []string, always bool) {
	if sum.unreadable != "" || l.Effects.Powers != "" { // a yes to one such call is none to the next
		return nil, false
	}
	always = true
	for i := range sum.open {
		offered, lasting := l.offer(&sum.open[i])
		if len(offered) == 0 {
			return nil, false
		}
		always = always && lasting
		for _, r := range offered {
			if !slices.Contains(rules, r) {
				rules = append(rules, r)
			}
		}
		if len(rules) > maxSuggested {
			return nil, false
		}
	}
	return rules, always
}

// offer returns the rules that would allow one piece.
func (l *look) offer(p *piece) (rules []string, always bool) {
	switch {
	case p.command != nil:
		return l.offerCommand(p.command)
	case p.write:
		return []string{l.s.show(editTool) + "(" + l.s.pathText(p.path) + ")"}, false
	case p.path != "":
		return []string{l.s.show(readTool) + "(" + l.s.pathText(p.path) + ")"}, true
	case p.host != "":
		host := hostName(p.host)
		if first := hostName(l.Effects.Hosts[0]); l.Call.Tool == fetchTool && twins(first, host) {
			host = first // its rule is for both
		}
		if _, f := readHost(host, 0); f != nil || l.lines() || specifierOf(l.Call.Tool, "") != aboutHost {
			return l.offerTool()
		}
		return []string{l.s.show(l.Call.Tool) + "(domain:" + host + ")"}, true
	}
	return l.offerTool()
}

// offerTool names the tool as a whole, unless that would allow every command.
func (l *look) offerTool() ([]string, bool) {
	if l.lines() || len(l.Effects.Commands) > 0 {
		return nil, false
	}
	return []string{l.s.show(l.Call.Tool)}, true
}

// folderOf returns the rule for the folder of the one file that a call would edit.
func (l *look) folderOf(sum *summary) string {
	var only string
	for _, p := range sum.open {
		if !p.write || only != "" {
			return ""
		}
		only = p.path
	}
	dir := path.Dir(slashed(only))
	if only == "" || strings.Count(dir, "/") < 2 || slices.Contains(l.s.kept, l.s.keyed(dir)) {
		return ""
	}
	return l.s.show(editTool) + "(" + l.s.pathText(dir) + "/**)"
}

// FolderRule is the rule that allows reading whatever is below a folder.
func (p *Policy) FolderRule(dir string) string {
	s := p.state.Load()
	return s.show(readTool) + "(" + strings.TrimSuffix(s.pathText(dir), "/") + "/**)"
}

// pathText writes a path as a pattern that matches it wherever the rule is kept.
func (s *state) pathText(p string) string {
	p = slashed(p)
	if s.Home != "" {
		if rest, ok := strings.CutPrefix(p, strings.TrimSuffix(slashed(s.Home), "/")+"/"); ok {
			return "~/" + escaped(rest)
		}
	}
	return "/" + escaped(p)
}

func (l *look) offerCommand(c *agent.SimpleCommand) (rules []string, always bool) {
	if len(c.Argv) == 0 {
		return nil, false
	}
	tool := l.s.show(shellTool)
	if l.Call.Tool == scriptTool {
		tool = l.s.show(scriptTool)
	}
	if c.Kind == agent.CommandReads && c.Flagged == "" && len(c.Reads) > 0 && len(c.Runs)+len(c.Hosts)+len(c.Writes) == 0 && len(c.Vars) == 0 {
		return l.offerReads(c), true
	}
	exact := tool + "(" + exactly(append(slices.Clone(c.Vars), c.Argv...)) + ")"
	switch {
	case len(exact) > maxRule:
		return nil, false
	case anything[program(c.Argv[0])]:
		return []string{exact}, false
	case c.Flagged != "" || !l.harmlessVars(c):
		return []string{exact}, true
	}
	words, ok := prefix(c.Argv)
	if named[program(c.Argv[0])] {
		ok = false
	}
	if !ok {
		return []string{exact}, !runners[strings.Join(words, " ")]
	}
	return []string{tool + "(" + strings.Join(words, " ") + " *)"}, true
}

// offerReads allows reading what a command that only reads would read outside.
func (l *look) offerReads(c *agent.SimpleCommand) (rules []string) {
	for _, p := range c.Reads {
		if at := l.at(p); !at.inside {
			below := ""
			if c.Argv[0] == "cd" || c.Argv[0] == "ls" || c.Argv[0] == "find" {
				below = "/**"
			}
			rules = append(rules, l.s.show(readTool)+"("+strings.TrimSuffix(l.s.pathText(p), "/")+below+")")
		}
	}
	return rules
}

// anything are the programs that run what their arguments say, or remove it: a
// rule for them may hold for a session and no longer, and only for the same words.
var anything = setOf(strings.Fields(`
	sh bash dash zsh fish ksh csh tcsh ash busybox pwsh powershell cmd
	python python2 python3 pypy pypy3 node nodejs deno bun ruby perl php lua luajit tclsh osascript Rscript julia
	awk gawk mawk nawk sed ed ex vi vim emacs
	sudo doas su env eval exec source . xargs parallel find ssh nsenter chroot unshare setsid watch flock ionice
	npx bunx pnpx uvx pipx rm rmdir shred dd trap
`))

// named are the programs whose operands say which files, hosts, processes or data
// they reach: a rule for them has all of the words, whatever else it might have
// been meant for.
var named = setOf(strings.Fields(`
	mv cp install ln chmod chown chgrp truncate tee tar unzip curl wget http https scp sftp ftp rsync rclone nc ncat telnet
	kill killall pkill psql mysql mariadb sqlite mongosh redis-cli
`))

func program(word string) string {
	word = strings.ToLower(programOf(word))
	return strings.TrimRight(word, "0123456789.")
}

// sub are the programs whose first words say what they do, and how many of them.
// A word with a number of its own goes before its program.
var sub = map[string]int{
	"git": 2, "go": 2, "cargo": 2, "npm": 2, "pnpm": 2, "yarn": 2, "pip": 2, "pip3": 2, "uv": 2, "poetry": 2, "docker": 2,
	"podman": 2, "kubectl": 2, "helm": 2, "gh": 3, "glab": 3, "make": 2, "just": 2, "task": 2, "terraform": 2, "dotnet": 2,
	"mvn": 2, "gradle": 2, "bundle": 2, "rails": 2, "composer": 2, "brew": 2, "apt": 2, "apt-get": 2, "systemctl": 2,
	"rustup": 2, "conda": 2, "aws": 3, "gcloud": 3, "az": 3, "nx": 2, "turbo": 2, "mix": 2, "swift": 2, "bazel": 2,
	"npm run": 3, "pnpm run": 3, "yarn run": 3, "go mod": 3, "go tool": 3, "docker compose": 3, "uv run": 3, "poetry run": 3, "uv pip": 3,
	"git remote": 3, "git stash": 3, "bundle exec": 3,
}

// runners run whatever is named behind them, or change what many depend on.
var runners = setOf([]string{
	"docker run", "docker exec", "podman run", "podman exec", "npm exec", "npm x", "pnpm exec", "pnpm dlx", "yarn dlx", "yarn exec", "uv run",
	"poetry run", "bundle exec", "go run", "cargo run", "kubectl exec",
	"kubectl delete", "kubectl apply", "helm install", "helm upgrade", "helm uninstall", "terraform apply", "terraform destroy",
})

// prefix returns the words of a command that say what it does. It is not ok where
// they do not stand at the beginning, or say nothing.
func prefix(argv []string) (words []string, ok bool) {
	if !plainWord(argv[0]) || assignment(argv[0]) {
		return nil, false
	}
	n, has := sub[argv[0]]
	if !has {
		return argv[:1], true
	}
	for i := 1; i < n; i++ {
		if i == len(argv) || !plainWord(argv[i]) || argv[i][0] == '-' || strings.ContainsAny(argv[i], "/=") {
			return argv[:i], false
		}
		words = argv[:i+1]
		if longer := sub[strings.Join(words, " ")]; longer > n {
			n = longer
		}
		if runners[strings.Join(words, " ")] {
			return words, false
		}
	}
	return words, true
}

// exactly writes words so that a pattern matches them and nothing else.
func exactly(argv []string) string {
	var b strings.Builder
	for i, word := range argv {
		if i > 0 {
			b.WriteByte(' ')
		}
		if name, value, ok := strings.Cut(word, "="); ok && assignment(word) {
			b.WriteString(name + "=")
			if word = value; word == "" {
				continue
			}
		}
		if plainWord(word) {
			b.WriteString(word)
			continue
		}
		b.WriteByte('"')
		b.WriteString(quoteMeta.Replace(word))
		b.WriteByte('"')
	}
	return b.String()
}

var quoteMeta = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "*", `\*`, "$", `\$`, "`", "\\`")

// flip says the nearest change that would have led to another verdict; "" = there
// is none.
func (l *look) flip(d agent.Decision, asked *words, sum *summary) string {
	bypass := "mode " + string(agent.ModeBypass)
	if l.s.DisableBypass {
		bypass = ""
	}
	switch d.By {
	case "rule":
		return without(asked)
	case "floor":
		e := &l.Effects
		if e.Unparsed != "" || e.User || e.Transactional || l.protected() == "" || d.Reason != printable(l.protected())+" is a protected path" {
			return ""
		}
		return bypass
	case "confinement":
		return bypass
	case "mode":
	default:
		return ""
	}
	if sum.unreadable != "" {
		return bypass
	}
	if l.s.Mode == agent.ModePlan && d.Verdict == agent.Deny {
		return "mode " + string(agent.ModeDefault)
	}
	edits := !slices.ContainsFunc(sum.open, func(p piece) bool { return !p.write || !l.at(p.path).inside })
	if edits && l.s.Mode == agent.ModeDefault {
		return "mode " + string(agent.ModeAcceptEdits)
	}
	if rules, _ := l.offers(sum); len(rules) > 0 && !l.s.ManagedOnly {
		return "allow " + strings.Join(rules, ", ")
	}
	return bypass
}

// without names the rule that would have to go.
func without(w *words) string {
	r := w.strictest()
	if r == nil {
		return ""
	}
	text := fmt.Sprintf("without the rule %s", r.text)
	if r.source != "" {
		text += " (" + r.source + ")"
	}
	if w.several {
		text += " and the others that " + string(r.verdict) + " it"
	}
	return text
}
