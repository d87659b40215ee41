package shell

import (
	"strings"
	"sync"

	"dure/agent"
)

// powerShellNames are the aliases that PowerShell comes with, and its own commands
// of which something is known here.
var powerShellNames = sync.OnceValue(func() map[string]string {
	names := map[string]string{}
	for line := range strings.Lines(`
Remove-Item rm del erase rd ri rmdir
Get-Content cat type gc
Set-Content sc
Add-Content ac
Clear-Content clc
Out-File
Tee-Object tee
Get-ChildItem ls dir gci
Get-Item gi
Set-Item si
New-Item ni
Copy-Item cp copy cpi
Move-Item mv move mi
Rename-Item ren rni
Clear-Item cli
Invoke-Item ii
Get-ItemProperty gp
Set-ItemProperty sp
Remove-ItemProperty rp
Set-Location cd chdir sl
Push-Location pushd
Pop-Location popd
Get-Location pwd gl
Invoke-Expression iex
Invoke-WebRequest curl wget iwr
Invoke-RestMethod irm
Invoke-Command icm
Invoke-History ihy r
Start-Process start saps
Stop-Process kill spps
Get-Process ps gps
Start-Job sajb
Start-ThreadJob
Start-Service sasv
Stop-Service spsv
Set-Service
Set-Alias sal
New-Alias nal
Import-Alias ipal
Import-Module ipmo
New-Module nmo
New-Object
Add-Type
Set-Variable sv set
New-Variable nv
Clear-Variable clv
Remove-Variable rv
ForEach-Object foreach %
Where-Object where ?
Select-String sls
Select-Object select
Sort-Object sort
Compare-Object compare diff
Measure-Object measure
Format-Table ft
Format-List fl
Get-Command gcm
Get-Help help man
Get-Member gm
Get-History h history ghy
Write-Output echo write
Clear-Host clear cls
Out-Host oh
Start-Sleep sleep
Get-Alias gal
Get-Variable gv
Enter-PSSession etsn
New-PSDrive ndr mount
Format-Volume
Clear-Disk
Initialize-Disk
Remove-Partition
`) {
		fields := strings.Fields(line)
		for _, name := range fields {
			names[strings.ToLower(name)] = fields[0]
		}
	}
	return names
})

// powerShellName returns the name of a command as PowerShell writes it: aliases are
// resolved, and a name that is known is spelled as it is there. Others stay.
func powerShellName(name string) string {
	if full, ok := powerShellNames()[strings.ToLower(name)]; ok {
		return full
	}
	return name
}

// powerShellOpaque are the commands and the words that run text, change what names
// mean, or can do anything.
var powerShellOpaque = map[string]string{
	"Invoke-Expression": "it runs a text", "Invoke-Command": "it runs a script block", "Invoke-Item": "it opens a file with its program",
	"Invoke-History": "it runs what was run before", "Start-Process": "it starts a program with settings of its own",
	"Start-Job": "it runs a script block", "Start-ThreadJob": "it runs a script block", "Set-Alias": "it changes what a name means",
	"New-Alias": "it changes what a name means", "Import-Alias": "it changes what names mean", "Import-Module": "it loads code",
	"New-Module": "it loads code", "New-Object": "it makes an object that can do anything", "Add-Type": "it loads code",
	"Set-Variable": "it sets a variable", "New-Variable": "it sets a variable", "Set-Item": "it changes what a name means",
	"Enter-PSSession": "it goes to another machine", "New-PSDrive": "it changes what paths mean",
}

// powerShellWords begin statements that are no commands.
var powerShellWords = map[string]bool{
	"if": true, "elseif": true, "else": true, "for": true, "foreach": true, "while": true, "do": true, "until": true,
	"switch": true, "function": true, "filter": true, "workflow": true, "class": true, "enum": true, "using": true,
	"try": true, "catch": true, "finally": true, "trap": true, "throw": true, "return": true, "exit": true, "break": true,
	"continue": true, "param": true, "begin": true, "process": true, "end": true, "data": true, "configuration": true,
	"dynamicparam": true, "define": true, "from": true, "var": true, "inlinescript": true, "parallel": true, "sequence": true,
}

// powerShellFiles says what commands do with the files that they are given: reading,
// writing or removing those of each position; the last letter goes for all further
// ones. A parameter's own letter stands behind its name.
var powerShellFiles = map[string]struct {
	positions string // r, w, d (removes), or - for what is no file
	params    string
}{
	"Get-Content": {"r", "path r literalpath r"}, "Get-ChildItem": {"r-", "path r literalpath r"}, "Get-Item": {"r", "path r literalpath r"},
	"Select-String": {"-r", "path r literalpath r"}, "Set-Content": {"w-", "path w literalpath w"}, "Add-Content": {"w-", "path w literalpath w"},
	"Clear-Content": {"w", "path w literalpath w"}, "Out-File": {"w-", "filepath w literalpath w"}, "Tee-Object": {"w-", "filepath w literalpath w"},
	"New-Item": {"w", "path w name w target r value -"}, "Remove-Item": {"d", "path d literalpath d"}, "Copy-Item": {"rw", "path r literalpath r destination w"},
	"Move-Item": {"dw", "path d literalpath d destination w"}, "Rename-Item": {"dw", "path d literalpath d newname w"}, "Clear-Item": {"w", "path w literalpath w"},
	"Invoke-WebRequest": {"-", "outfile w infile r"}, "Invoke-RestMethod": {"-", "outfile w infile r"},
}

// known fills in what is known of a command of PowerShell.
func (p *powerShell) known(c *agent.SimpleCommand, words []foreignWord) {
	name := c.Argv[0]
	if why := powerShellOpaque[name]; why != "" {
		p.unreadable(why)
	}
	switch {
	case powerShellWords[strings.ToLower(name)]:
		p.unreadable("a statement: " + name)
	case strings.HasSuffix(name, "-Location"):
		p.moved = p.moved || name != "Get-Location"
	case name == "Format-Volume" || name == "Clear-Disk" || name == "Initialize-Disk" || name == "Remove-Partition":
		p.e.Destructive = name + " destroys what a disk holds"
	case name == "Remove-Item":
		p.removes(words)
	}
	switch programName(name) {
	case "powershell", "pwsh":
		if why := powerShellCall(&p.foreign, c, words); why != "" {
			p.unreadable(why)
		}
		return
	case "cmd":
		cmdCall(&p.foreign, c, words)
		return
	}
	if f, ok := powerShellFiles[name]; ok {
		p.files(c, words[1:], f.positions, strings.Fields(f.params))
		return
	}
	if _, own := powerShellNames()[strings.ToLower(name)]; !own && words[0].known {
		p.program(c, words)
	}
	if why := destroyed(words); why != "" {
		p.e.Destructive = why
	}
	for _, w := range words {
		if w.text == "--%" && !w.quoted {
			p.unreadable("what stands behind --% is not read")
		}
	}
}

// parameter returns the name of a parameter in lower case, and what is bound to it
// with a colon.
func parameter(w foreignWord) (name, value string, ok bool) {
	if w.quoted || !w.known || len(w.text) < 2 || w.text[0] != '-' || w.text[1] >= '0' && w.text[1] <= '9' {
		return "", "", false
	}
	name, value, _ = strings.Cut(strings.ToLower(w.text[1:]), ":")
	if value != "" {
		value = w.text[len(name)+2:]
	}
	return name, value, true
}

// files fills in the files of a command. Names of parameters may be cut short; which
// ones take a value is not known of all of them, so that the word behind an unknown
// one counts as well as not.
func (p *powerShell) files(c *agent.SimpleCommand, words []foreignWord, positions string, params []string) {
	at := 0
	kindOf := func(name string) byte {
		for i := 0; i+1 < len(params); i += 2 {
			if strings.HasPrefix(params[i], name) {
				return params[i+1][0]
			}
		}
		return 0
	}
	for i := 0; i < len(words); i++ {
		w := words[i]
		if name, value, ok := parameter(w); ok {
			kind := kindOf(name)
			if kind == 0 {
				continue
			}
			if value == "" && i+1 < len(words) {
				i++
				value, ok = words[i].text, words[i].known
			}
			p.file(c, value, ok, kind, strings.HasPrefix("literalpath", name))
			continue
		}
		p.file(c, w.text, w.known, positions[min(at, len(positions)-1)], false)
		at++
	}
	if c.Argv[0] == "Get-ChildItem" && at == 0 && len(c.Reads) == 0 {
		p.file(c, ".", true, 'r', true)
	}
}

func (p *powerShell) file(c *agent.SimpleCommand, name string, known bool, kind byte, literal bool) {
	if kind == '-' {
		return
	}
	if !known {
		p.unreadable("a file that is not known: " + name)
		return
	}
	at := p.path(name, literal)
	if at == "" {
		return
	}
	switch kind {
	case 'r':
		c.Reads = append(c.Reads, at)
	case 'd':
		c.Removes = append(c.Removes, at)
		c.Writes = append(c.Writes, at)
	default:
		c.Writes = append(c.Writes, at)
	}
}

// removes looks for the removal of a whole drive.
func (p *powerShell) removes(words []foreignWord) {
	recurse, root := false, ""
	for _, w := range words[1:] {
		name, value, ok := parameter(w)
		switch {
		case ok && strings.HasPrefix("recurse", name), strings.EqualFold(w.text, "/s"):
			recurse = true
		case ok && value != "" && rootOfDrive(value):
			root = value
		case !ok && rootOfDrive(w.text):
			root = w.text
		}
	}
	if recurse && root != "" {
		p.e.Destructive = "it removes all of " + root
	}
}

// powerShellCall reads what powershell or pwsh is started with. It returns why that
// cannot be done, or "".
func powerShellCall(f *foreign, c *agent.SimpleCommand, words []foreignWord) string {
	for i := 1; i < len(words); i++ {
		name, _, ok := parameter(words[i])
		if !ok && strings.HasPrefix(words[i].text, "/") {
			name, ok = strings.ToLower(words[i].text[1:]), true
		}
		switch {
		case ok && (strings.HasPrefix("encodedcommand", name) || name == "ec" || strings.HasPrefix("encodedarguments", name)):
			return "a command line that is encoded"
		case ok && strings.HasPrefix("file", name):
			return "a script"
		case ok && strings.HasPrefix("command", name):
			return f.script(c, words[i+1:], powerShellIn)
		case ok && (strings.HasPrefix("noprofile", name) || strings.HasPrefix("nologo", name) || strings.HasPrefix("noninteractive", name) || name == "nop"):
		case ok:
			i++ // -ExecutionPolicy Bypass and the like take a value
		default:
			return f.script(c, words[i:], powerShellIn)
		}
	}
	return "an interactive shell"
}

// script reads a command line that is made of the rest of the words.
func (f *foreign) script(c *agent.SimpleCommand, words []foreignWord, read foreignReader) string {
	var parts []string
	why := ""
	for _, w := range words {
		if !w.known {
			why = "a command line that is not known"
		}
		parts = append(parts, w.text)
	}
	if f.depth >= maxForeignDepth {
		return "command lines are nested too deeply"
	}
	c.Runs = append(c.Runs, f.inside(strings.Join(parts, " "), read)...)
	return why
}
