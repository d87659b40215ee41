package shell

import (
	"strings"

	"dure/agent"
)

// readCmd says what a line for cmd.exe would do, as far as it is plain: names with
// arguments, joined by operators. Variables, loops and conditions make it
// unreadable; the commands in them are listed.
func readCmd(command string, o Options) agent.Effects { return cmdIn(command, outermost(o)) }

func cmdIn(command string, f foreign) agent.Effects {
	c := &cmdLine{foreign: f}
	text := c.begin(command)
	if strings.Contains(text, "%") {
		c.unreadable("a variable (%)")
	}
	if strings.Count(text, "!") > 1 {
		c.unreadable("a variable (!)")
	}
	c.read(text)
	return c.effects()
}

// cmdLine reads a text for cmd.exe.
type cmdLine struct {
	foreign
	word   strings.Builder
	inWord bool
	quoted bool
	words  []foreignWord
	to     string // the operator of the redirection whose target comes next
	writes []string
	reads  []string
	open   int // brackets
}

// read goes through a text. Within quotes nothing but the quote means anything.
func (c *cmdLine) read(text string) {
	quotes := false
	for at := 0; at < len(text); at++ {
		b := text[at]
		switch {
		case b == '"':
			quotes = !quotes
			c.inWord, c.quoted = true, true
		case b == '\n':
			if quotes {
				c.unparsed("a quote is not closed")
			}
			quotes = false
			c.end()
		case quotes:
			c.put(b)
		case b == '^':
			if at++; at < len(text) && text[at] != '\n' {
				c.put(text[at])
			}
		case strings.IndexByte(" \t,;=\v\f", b) >= 0:
			c.endWord()
		case b == '&' || b == '|':
			c.end()
		case b == '(' && (len(c.words) == 0 && !c.inWord || c.open > 0 || statement(c.words)), b == ')' && c.open > 0:
			c.bracket(b)
		case b == '<' || b == '>':
			at = c.redirect(text, at)
		case c.remark(text[at:]):
			at += strings.IndexByte(text[at:]+"\n", '\n') - 1
		default:
			c.put(b)
		}
	}
	if quotes {
		c.unparsed("a quote is not closed")
	}
	c.end()
	if c.open > 0 {
		c.unparsed("a bracket is not closed")
	}
}

func (c *cmdLine) bracket(b byte) {
	if c.end(); b == ')' {
		c.open--
		return
	}
	if c.open++; c.open > maxForeignDepth {
		c.unparsed("it is nested too deeply")
	}
}

// statement reports whether words begin one in which brackets part commands.
func statement(words []foreignWord) bool {
	if len(words) == 0 {
		return false
	}
	name := strings.ToLower(strings.TrimPrefix(words[0].text, "@"))
	return name == "if" || name == "for" || name == "else" || name == "do"
}

func (c *cmdLine) put(b byte) {
	c.word.WriteByte(b)
	c.inWord = true
}

// remark reports whether a comment begins.
func (c *cmdLine) remark(rest string) bool {
	if len(c.words) > 0 || c.inWord {
		return false
	}
	if strings.HasPrefix(rest, "::") {
		return true
	}
	return len(rest) >= 3 && strings.EqualFold(rest[:3], "rem") && (len(rest) == 3 || strings.IndexByte(" \t\n", rest[3]) >= 0)
}

// redirect reads an operator, and returns where its last byte is.
func (c *cmdLine) redirect(text string, at int) int {
	// A digit right before it names the descriptor.
	if s := c.word.String(); !c.quoted && len(s) == 1 && s[0] >= '0' && s[0] <= '9' {
		c.word.Reset()
		c.inWord = false
	}
	c.endWord()
	op := text[at]
	if at+1 < len(text) && text[at+1] == '>' {
		at++
	}
	if at+1 < len(text) && text[at+1] == '&' { // 2>&1
		return min(at+2, len(text)-1)
	}
	c.to = string(op)
	return at
}

func (c *cmdLine) endWord() {
	if !c.inWord {
		return
	}
	w := foreignWord{text: c.word.String(), quoted: c.quoted}
	w.known = !strings.ContainsAny(w.text, "%!")
	c.word.Reset()
	c.inWord, c.quoted = false, false
	if c.to == "" {
		c.words = append(c.words, w)
		return
	}
	op := c.to
	c.to = ""
	switch {
	case !w.known:
		c.unreadable("a redirection to what is not known: " + w.text)
	case strings.EqualFold(w.text, "nul"):
	default:
		if p := c.path(w.text, true); p != "" && op == "<" {
			c.reads = append(c.reads, p)
		} else if p != "" {
			c.writes = append(c.writes, p)
		}
	}
}

// end closes the command that was read.
func (c *cmdLine) end() {
	c.endWord()
	if c.to != "" {
		c.unparsed("a redirection without a target")
	}
	words, reads, writes := c.words, c.reads, c.writes
	c.words, c.reads, c.writes, c.to = nil, nil, nil, ""
	if len(words) == 0 {
		c.e.Reads, c.e.Writes = append(c.e.Reads, reads...), append(c.e.Writes, writes...)
		return
	}
	for _, s := range c.commands(split(words)) {
		s.Reads, s.Writes = append(s.Reads, reads...), append(s.Writes, writes...)
		c.add(s)
	}
}

// split takes apart the name of a command of cmd's own and what may stand right
// behind it, and the switches that do: rd/s, del/f/q, cd.., echo.
func split(words []foreignWord) []foreignWord {
	first := words[0]
	first.text = strings.TrimPrefix(first.text, "@")
	var out []foreignWord
	if cut := strings.IndexAny(first.text, `/.\:+[`); cut > 0 && cmdOwn(first.text[:cut]) {
		rest := first.text[cut:]
		out = append(out, foreignWord{text: first.text[:cut], known: first.known})
		words[0] = foreignWord{text: rest, known: first.known}
	} else {
		out = append(out, first)
		words = words[1:]
	}
	for _, w := range words {
		if w.quoted || len(w.text) < 3 || w.text[0] != '/' || !strings.Contains(w.text[1:], "/") {
			out = append(out, w)
			continue
		}
		for _, s := range strings.Split(w.text[1:], "/") {
			out = append(out, foreignWord{text: "/" + s, known: w.known})
		}
	}
	return out
}

// cmdOwn reports whether cmd has a command itself.
func cmdOwn(name string) bool {
	switch strings.ToLower(name) {
	case "assoc", "break", "call", "cd", "chdir", "cls", "color", "copy", "date", "del", "dir", "dpath", "echo", "endlocal",
		"erase", "exit", "for", "ftype", "goto", "if", "keys", "md", "mkdir", "mklink", "move", "path", "pause", "popd",
		"prompt", "pushd", "rd", "rem", "ren", "rename", "rmdir", "set", "setlocal", "shift", "start", "time", "title",
		"type", "ver", "verify", "vol":
		return true
	}
	return false
}

// commands returns the command that words are, and what it runs. Of a statement
// that is no command everything is one that might be.
func (c *cmdLine) commands(words []foreignWord) []agent.SimpleCommand {
	s := agent.SimpleCommand{}
	for _, w := range words {
		s.Argv = append(s.Argv, w.text)
	}
	if s.Argv[0] == "" {
		c.unreadable("a command without a name")
		return nil
	}
	name := programName(s.Argv[0])
	if !words[0].known {
		c.unreadable("the name of a command is not known: " + s.Argv[0])
	}
	if why := destroyed(words); why != "" {
		c.e.Destructive = why
	}
	switch name {
	case "if", "for", "else", "do", "in", "not", "exist", "defined", "errorlevel":
		c.unreadable("a statement: " + name)
		return append([]agent.SimpleCommand{s}, c.suffixes(words)...)
	case "call", "start":
		c.unreadable(name + " runs something with rules of its own")
		return append([]agent.SimpleCommand{s}, c.suffixes(words)...)
	case "cd", "chdir", "pushd", "popd":
		c.moved = true
	case "set", "path", "goto", "setlocal", "doskey", "assoc", "ftype", "prompt", "shift":
		c.unreadable(name + " changes what comes after it")
	case "cmd":
		cmdCall(&c.foreign, &s, words)
		return []agent.SimpleCommand{s}
	case "powershell", "pwsh":
		if why := powerShellCall(&c.foreign, &s, words); why != "" {
			c.unreadable(why)
		}
		return []agent.SimpleCommand{s}
	case "forfiles":
		c.unreadable("forfiles runs a command for each file")
	}
	if strings.HasPrefix(s.Argv[0], ":") {
		c.unreadable("a label")
	}
	c.files(&s, name, words[1:])
	return []agent.SimpleCommand{s}
}

// suffixes are the commands that may begin at each word of a statement.
func (c *cmdLine) suffixes(words []foreignWord) []agent.SimpleCommand {
	const most = 32
	var all []agent.SimpleCommand
	for i := 1; i < len(words) && i < most; i++ {
		var argv []string
		for _, w := range split(append([]foreignWord(nil), words[i:]...)) {
			argv = append(argv, w.text)
		}
		if why := destroyed(words[i:]); why != "" {
			c.e.Destructive = why
		}
		all = append(all, agent.SimpleCommand{Argv: argv})
	}
	return all
}

// files fills in the files of a command.
func (c *cmdLine) files(s *agent.SimpleCommand, name string, words []foreignWord) {
	kinds, own := map[string]string{
		"type": "r", "dir": "r", "more": "r", "copy": "rw", "xcopy": "rw", "robocopy": "rw", "move": "dw", "ren": "dw", "rename": "dw",
		"del": "d", "erase": "d", "rd": "d", "rmdir": "d", "md": "w", "mkdir": "w", "mklink": "wr", "findstr": "-r", "find": "-r", "fc": "r", "comp": "r",
	}[name]
	if !own {
		if !cmdOwn(name) {
			c.program(s, append([]foreignWord{{text: s.Argv[0], known: true}}, words...))
		}
		return
	}
	at := 0
	for _, w := range words {
		if !w.quoted && strings.HasPrefix(w.text, "/") {
			continue
		}
		kind := kinds[min(at, len(kinds)-1)]
		at++
		if kind == '-' {
			continue
		}
		if !w.known {
			c.unreadable("a file that is not known: " + w.text)
			continue
		}
		p := c.path(w.text, false)
		switch {
		case p == "":
		case kind == 'r':
			s.Reads = append(s.Reads, p)
		case kind == 'd':
			s.Removes = append(s.Removes, p)
			s.Writes = append(s.Writes, p)
		default:
			s.Writes = append(s.Writes, p)
		}
	}
}

// cmdCall reads what cmd is started with: everything behind /c or /k is a command
// line of its own.
func cmdCall(f *foreign, s *agent.SimpleCommand, words []foreignWord) {
	for i := 1; i < len(words); i++ {
		switch t := strings.ToLower(words[i].text); {
		case strings.HasPrefix(t, "/c"), strings.HasPrefix(t, "/k"), strings.HasPrefix(t, "/r"):
			rest := append([]foreignWord(nil), words[i+1:]...)
			if len(t) > 2 {
				rest = append([]foreignWord{{text: words[i].text[2:], known: words[i].known}}, rest...)
			}
			if why := f.script(s, rest, cmdIn); why != "" {
				f.unreadable(why)
			}
			return
		case strings.HasPrefix(t, "/v"):
			f.unreadable("variables that are read late")
		}
	}
	f.unreadable("an interactive shell")
}

// destroyed says what a command of Windows would destroy that is nobody's to
// destroy, or "".
func destroyed(words []foreignWord) string {
	var argv []string
	for _, w := range split(append([]foreignWord(nil), words...)) {
		argv = append(argv, strings.ToLower(w.text))
	}
	has := func(words ...string) bool {
		for _, want := range words {
			found := false
			for _, a := range argv[1:] {
				found = found || a == want
			}
			if !found {
				return false
			}
		}
		return true
	}
	switch name := programName(argv[0]); {
	case (name == "rd" || name == "rmdir") && has("/s"):
		return "it removes a folder with all it holds (" + name + " /s)"
	case (name == "del" || name == "erase") && has("/f", "/s", "/q"):
		return "it removes files at any depth by force (" + name + " /f /s /q)"
	case name == "format" && len(argv) > 1:
		return "it formats a drive"
	case name == "reg" && len(argv) > 1 && argv[1] == "delete":
		return "it removes keys of the registry"
	case name == "netsh" && has("delete"):
		return "it removes settings of the network"
	case name == "schtasks" && has("/delete"):
		return "it removes scheduled tasks"
	case name == "diskpart", name == "cipher" && len(argv) > 1 && strings.HasPrefix(argv[1], "/w"):
		return "it changes disks"
	}
	return ""
}
