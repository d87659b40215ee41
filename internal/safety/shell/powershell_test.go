package shell

import (
	"strings"
	"testing"
	"time"

	"dure/agent"
)

// inBrief writes what a reading of a foreign language has found: commands with their
// words parted by blanks, in < > what they run in turn; then what they read (r),
// write (w) and remove (d), and whether all of it is unreadable, unparsed or
// destructive.
func inBrief(e agent.Effects) string {
	var b strings.Builder
	var write func([]agent.SimpleCommand)
	write = func(commands []agent.SimpleCommand) {
		for i, c := range commands {
			if i > 0 {
				b.WriteString("; ")
			}
			b.WriteString(strings.Join(c.Argv, " "))
			for _, list := range []struct {
				letter string
				paths  []string
			}{{"r", c.Reads}, {"w", c.Writes}, {"d", c.Removes}} {
				for _, p := range list.paths {
					b.WriteString(" " + list.letter + ":" + p)
				}
			}
			if len(c.Runs) > 0 {
				b.WriteString(" <")
				write(c.Runs)
				b.WriteString(">")
			}
		}
	}
	write(e.Commands)
	for _, f := range []struct{ name, why string }{{"unreadable", e.Unreadable}, {"unparsed", e.Unparsed}, {"destructive", e.Destructive}} {
		if f.why != "" {
			b.WriteString(" !" + f.name)
		}
	}
	return strings.TrimSpace(b.String())
}

func TestReadPowerShell(t *testing.T) {
	o := Options{Dir: `C:\w`, Home: `C:\Users\u`}
	for _, tt := range []struct{ command, want string }{
		// plain commands
		{`Get-ChildItem`, `Get-ChildItem r:C:\w`},
		{`ls src`, `Get-ChildItem src r:C:\w\src`},
		{`dir -Path src -Filter *.go`, `Get-ChildItem -Path src -Filter *.go r:C:\w\src !unreadable`},
		{`cat a.txt`, `Get-Content a.txt r:C:\w\a.txt`},
		{`GET-CONTENT 'a b.txt'`, `Get-Content a b.txt r:C:\w\a b.txt`},
		{`gc -literalp "a[1].txt"`, `Get-Content -literalp a[1].txt r:C:\w\a[1].txt`},
		{`type ..\x\a.txt`, `Get-Content ..\x\a.txt r:C:\x\a.txt`},
		{`type ~/a.txt`, `Get-Content ~/a.txt r:C:\Users\u\a.txt`},
		{`type /x`, `Get-Content /x r:C:\x`},
		{`npm test`, `npm test`},
		{`echo 'it''s; rm x'`, `Write-Output it's; rm x`},
		{"echo \"a`\"b; c\"", `Write-Output a"b; c`},
		{"echo a` b", `Write-Output a b`},
		{"npm `\n test", `npm test`},
		{`npm test # rm x`, `npm test`},
		{`npm <# rm x #> test`, `npm test`},
		{`echo a#b`, `Write-Output a#b`},
		{`rm a, b,c`, `Remove-Item a b c w:C:\w\a w:C:\w\b w:C:\w\c d:C:\w\a d:C:\w\b d:C:\w\c`},
		{`cp a.txt b.txt`, `Copy-Item a.txt b.txt r:C:\w\a.txt w:C:\w\b.txt`},
		{`mv -Destination b a`, `Move-Item -Destination b a w:C:\w\b w:C:\w\a d:C:\w\a`},
		{`iwr https://host.example -OutFile x`, `Invoke-WebRequest https://host.example -OutFile x w:C:\w\x`},

		// several
		{`npm test; rm x`, `npm test; Remove-Item x w:C:\w\x d:C:\w\x`},
		{`npm test | rm x`, `npm test; Remove-Item x w:C:\w\x d:C:\w\x`},
		{`npm test && rm x || del y`, `npm test; Remove-Item x w:C:\w\x d:C:\w\x; Remove-Item y w:C:\w\y d:C:\w\y`},
		{"npm test\nrm x", `npm test; Remove-Item x w:C:\w\x d:C:\w\x`},
		{"npm test\r\nrm x", `npm test; Remove-Item x w:C:\w\x d:C:\w\x`},
		{`npm test & rm x`, `npm test; Remove-Item x w:C:\w\x d:C:\w\x`},
		{"r`m x", `Remove-Item x w:C:\w\x d:C:\w\x`},
		{`& 'rm' x`, `Remove-Item x w:C:\w\x d:C:\w\x`},
		{`cd ..; rm x`, `Set-Location ..; Remove-Item x !unreadable`},

		// redirections
		{`npm test > out.txt 2>&1`, `npm test w:C:\w\out.txt`},
		{`npm test 2> $null`, `npm test`},
		{`npm test *>> "o ut"`, `npm test w:C:\w\o ut`},
		{`npm test > $x`, `npm test !unreadable`},
		{`npm test >`, `npm test !unreadable`},

		// what is not plain
		{`$x = rm y`, `Remove-Item y w:C:\w\y d:C:\w\y !unreadable`},
		{`rm $x`, `Remove-Item $x !unreadable`},
		{`rm "a$x"`, `Remove-Item "a$x" !unreadable`},
		{`echo $(rm x)`, `Remove-Item x w:C:\w\x d:C:\w\x; Write-Output $(rm x) !unreadable`},
		{`echo "a$(rm x)"`, `Remove-Item x w:C:\w\x d:C:\w\x; Write-Output "a$(rm x)" !unreadable`},
		{`(rm x)`, `Remove-Item x w:C:\w\x d:C:\w\x; (rm x) !unreadable`},
		{`echo (rm x).Length`, `Remove-Item x w:C:\w\x d:C:\w\x; Write-Output (rm x) .Length !unreadable`},
		{`echo @(rm x)`, `Remove-Item x w:C:\w\x d:C:\w\x; Write-Output @(rm x) !unreadable`},
		{`if (test) { rm x }`, `test; Remove-Item x w:C:\w\x d:C:\w\x; if (test) { rm x } !unreadable`},
		{`1..3 | % { rm x }`, `1..3; Remove-Item x w:C:\w\x d:C:\w\x; ForEach-Object { rm x } !unreadable`},
		{`function ls { rm x }`, `Remove-Item x w:C:\w\x d:C:\w\x; function ls { rm x } !unreadable`},
		{`& $x y`, `$x y !unreadable`},
		{`& { rm x }`, `Remove-Item x w:C:\w\x d:C:\w\x; { rm x } !unreadable`},
		{`. .\x.ps1`, `. .\x.ps1 r:C:\w\x.ps1 !unreadable`},
		{`iex 'rm x'`, `Invoke-Expression rm x !unreadable`},
		{`[System.IO.File]::Delete('x')`, `x; [System.IO.File]::Delete('x') !unreadable`},
		{`powershell -EncodedCommand AAAA`, `powershell -EncodedCommand AAAA !unreadable`},
		{`pwsh -e AAAA`, `pwsh -e AAAA !unreadable`},
		{`pwsh -NoProfile -Command rm x`, `pwsh -NoProfile -Command rm x <Remove-Item x w:C:\w\x d:C:\w\x>`},
		{`powershell.exe -ep Bypass "rm x; del y"`, `powershell.exe -ep Bypass rm x; del y <Remove-Item x w:C:\w\x d:C:\w\x; Remove-Item y w:C:\w\y d:C:\w\y>`},
		{`cmd /c "del x"`, `cmd /c del x <del x w:C:\w\x d:C:\w\x>`},
		{`sal ls rm`, `Set-Alias ls rm !unreadable`},
		{`Set-Item Env:PATH x`, `Set-Item Env:PATH x !unreadable`},
		{`rm *`, `Remove-Item * !unreadable`},
		{`cat \\host\share\x`, `Get-Content \\host\share\x !unreadable`},
		{`cat HKLM:\x`, `Get-Content HKLM:\x !unreadable`},
		{`echo --% %x%`, `Write-Output --% %x% !unreadable`},
		{"rm \u2013Recurse x", "Remove-Item \u2013Recurse x w:C:\\w\\x d:C:\\w\\x !unreadable"},
		{"echo \u2018a; rm x\u2019", "Write-Output \u2018a; Remove-Item x\u2019 !unreadable"},
		{"@'\nrm x\n'@ | npm test", "rm x; npm test !unreadable"},
		{"echo @\"\n$(rm x)\n\"@", "Remove-Item x w:C:\\w\\x d:C:\\w\\x; $(rm x); Write-Output @\"\n$(rm x)\n\"@ !unreadable"},

		// nothing, and what cannot be parsed
		{``, `!unparsed`},
		{`# rm x`, `!unparsed`},
		{`;`, `!unparsed`},
		{`echo 'a`, `Write-Output a !unparsed`},
		{`echo "a`, `Write-Output a !unparsed`},
		{`echo (rm x`, `Remove-Item x w:C:\w\x d:C:\w\x; Write-Output (rm x !unreadable !unparsed`},
		{`echo ) ; rm x`, `Write-Output; Remove-Item x w:C:\w\x d:C:\w\x !unparsed`},
		{"echo a\x00; rm x", `Write-Output a; Remove-Item x w:C:\w\x d:C:\w\x !unparsed`},

		// what nobody may destroy
		{`Remove-Item -Recurse -Force C:\`, `Remove-Item -Recurse -Force C:\ w:C:\ d:C:\ !destructive`},
		{`rm -r -fo /`, `Remove-Item -r -fo / w:C:\ d:C:\ !destructive`},
		{`ri C:\* -rec`, `Remove-Item C:\* -rec !unreadable !destructive`},
		{`rm -Recurse build`, `Remove-Item -Recurse build w:C:\w\build d:C:\w\build`},
		{`Format-Volume -DriveLetter C`, `Format-Volume -DriveLetter C !destructive`},
		{`reg delete HKLM\x`, `reg delete HKLM\x !destructive`},
		{`cmd /c rd /s /q x`, `cmd /c rd /s /q x <rd /s /q x w:C:\w\x d:C:\w\x> !destructive`},
		{`netsh advfirewall firewall delete rule name=x`, `netsh advfirewall firewall delete rule name=x !destructive`},
		{`schtasks.exe /Delete /tn x`, `schtasks.exe /Delete /tn x !destructive`},
	} {
		if got := inBrief(readPowerShell(tt.command, o)); got != tt.want {
			t.Errorf("%s\n got %s\nwant %s", tt.command, got, tt.want)
		}
	}
}

func TestReadCmd(t *testing.T) {
	o := Options{Dir: `C:\w`, Home: `C:\Users\u`}
	for _, tt := range []struct{ command, want string }{
		{`dir`, `dir`},
		{`type a.txt`, `type a.txt r:C:\w\a.txt`},
		{`type "a b.txt" c:\x\y`, `type a b.txt c:\x\y r:C:\w\a b.txt r:c:\x\y`},
		{`npm test`, `npm test`},
		{`npm test & del x`, `npm test; del x w:C:\w\x d:C:\w\x`},
		{`npm test && del x || erase y`, `npm test; del x w:C:\w\x d:C:\w\x; erase y w:C:\w\y d:C:\w\y`},
		{`npm test | del x`, `npm test; del x w:C:\w\x d:C:\w\x`},
		{"npm test\r\ndel x", `npm test; del x w:C:\w\x d:C:\w\x`},
		{`(npm test) & (del x)`, `npm test; del x w:C:\w\x d:C:\w\x`},
		{`@del x`, `del x w:C:\w\x d:C:\w\x`},
		{`d^el x`, `del x w:C:\w\x d:C:\w\x`},
		{`"d"el x`, `del x w:C:\w\x d:C:\w\x`},
		{`DEL,x;y`, `DEL x y w:C:\w\x w:C:\w\y d:C:\w\x d:C:\w\y`},
		{`echo a ^& del x`, `echo a & del x`},
		{`echo "a & del x"`, `echo a & del x`},
		{"echo a^\nb", `echo ab`},
		{`echo a > x 2>&1`, `echo a w:C:\w\x`},
		{`echo a 1>x 2>nul`, `echo a w:C:\w\x`},
		{`>>x echo a`, `echo a w:C:\w\x`},
		{`sort < x`, `sort r:C:\w\x`},
		{`echo.a`, `echo .a`},
		{`cd.. & del x`, `cd ..; del x !unreadable`},
		{`copy a b`, `copy a b r:C:\w\a w:C:\w\b`},
		{`rem del x`, `!unparsed`},
		{"rem del x\ndel y", `del y w:C:\w\y d:C:\w\y`},
		{`:: del x`, `!unparsed`},

		{`del %x%`, `del %x% !unreadable`},
		{`%x% y`, `%x% y !unreadable`},
		{`echo "%x%"`, `echo %x% !unreadable`},
		{`del !x!`, `del !x! !unreadable`},
		{`echo a > %x%`, `echo a !unreadable`},
		{`for %i in (a b) do del x`, `for %i in; %i in; in; a b; do del x; del x; x !unreadable`},
		{`for %i in (a) do (rd /s y)`, `for %i in; %i in; in; a; do; rd /s y w:C:\w\y d:C:\w\y !unreadable !destructive`},
		{`if exist x (del y) else (del z)`, `if exist x; exist x; x; del y w:C:\w\y d:C:\w\y; else; del z w:C:\w\z d:C:\w\z !unreadable`},
		{`if exist x del y`, `if exist x del y; exist x del y; x del y; del y; y !unreadable`},
		{`call x.bat`, `call x.bat; x.bat !unreadable`},
		{`start "" del x`, `start  del x;  del x; del x; x !unreadable`},
		{`set PATH=. & ls`, `set PATH .; ls r:C:\w !unreadable`},
		{`cmd /c del x`, `cmd /c del x <del x w:C:\w\x d:C:\w\x>`},
		{`cmd.exe /q /c "del x & del y"`, `cmd.exe /q /c del x & del y <del x w:C:\w\x d:C:\w\x; del y w:C:\w\y d:C:\w\y>`},
		{`cmd /k`, `cmd /k !unparsed`},
		{`powershell -c "rm x"`, `powershell -c rm x <Remove-Item x w:C:\w\x d:C:\w\x>`},
		{`del *.txt`, `del *.txt !unreadable`},
		{`del \\host\x`, `del \\host\x !unreadable`},
		{`echo "a`, `echo a !unparsed`},
		{`(del x`, `del x w:C:\w\x d:C:\w\x !unparsed`},
		{``, `!unparsed`},
		{`&&`, `!unparsed`},
		{"echo a\x00", `echo a !unparsed`},

		{`rd /s x`, `rd /s x w:C:\w\x d:C:\w\x !destructive`},
		{`rd/s/q x`, `rd /s /q x w:C:\w\x d:C:\w\x !destructive`},
		{`rmdir x /S`, `rmdir x /S w:C:\w\x d:C:\w\x !destructive`},
		{`rd x`, `rd x w:C:\w\x d:C:\w\x`},
		{`del /f /s /q x`, `del /f /s /q x w:C:\w\x d:C:\w\x !destructive`},
		{`del/F/S/Q x`, `del /F /S /Q x w:C:\w\x d:C:\w\x !destructive`},
		{`del /q x`, `del /q x w:C:\w\x d:C:\w\x`},
		{`format c:`, `format c: !destructive`},
		{`reg delete HKLM\x /f`, `reg delete HKLM\x /f !destructive`},
		{`reg query HKLM\x`, `reg query HKLM\x`},
		{`netsh interface ip delete dns x`, `netsh interface ip delete dns x !destructive`},
		{`schtasks /delete /tn x`, `schtasks /delete /tn x !destructive`},
		{`if exist x rd /s y`, `if exist x rd /s y; exist x rd /s y; x rd /s y; rd /s y; /s y; y !unreadable !destructive`},
		{`cmd /c cmd /c rd /s x`, `cmd /c cmd /c rd /s x <cmd /c rd /s x <rd /s x w:C:\w\x d:C:\w\x>> !destructive`},
	} {
		if got := inBrief(readCmd(tt.command, o)); got != tt.want {
			t.Errorf("%s\n got %s\nwant %s", tt.command, got, tt.want)
		}
	}
}

func TestPowerShellName(t *testing.T) {
	for _, tt := range []struct{ name, want string }{
		{"rm", "Remove-Item"}, {"RD", "Remove-Item"}, {"remove-item", "Remove-Item"}, {"iwr", "Invoke-WebRequest"}, {"git", "git"}, {"Git", "Git"},
	} {
		if got := powerShellName(tt.name); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// However a text is nested, reading it takes no longer than its length allows.
func TestForeignTime(t *testing.T) {
	for _, piece := range []string{"pwsh -c $(", "$(", "(", "{", "\"$(", "@\"\n$(", "cmd /c ", "pwsh -c ", "pwsh -c cmd /c ", "if ", "for (", "a & ", "(a)", "^", "`", "<#", "del/a/b "} {
		began := time.Now()
		readPowerShell(strings.Repeat(piece, 10_000/len(piece)), Options{Dir: `C:\w`})
		readCmd(strings.Repeat(piece, 10_000/len(piece)), Options{Dir: `C:\w`})
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("%q: %v", piece, took)
		}
	}
}

// Neither reading panics or takes long, and neither is ever empty.
func FuzzForeign(f *testing.F) {
	for _, seed := range []string{"rm x; $(ls) \"$x\" 'a' @'\nx\n'@ { a } > b", "a & (b) > c %d% ^e", "pwsh -c cmd /c pwsh -c x", "(((({{{{", "`", "^", "a >", "\"$(\"$(", "(a 2>&", "{ > &"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, e := range []agent.Effects{readPowerShell(text, Options{Dir: `C:\w`}), readCmd(text, Options{Dir: "/w"})} {
			if len(e.Commands) == 0 && e.Unparsed == "" && e.Unreadable == "" {
				t.Errorf("%q is nothing", text)
			}
			for _, c := range e.Commands {
				if len(c.Argv) == 0 {
					t.Errorf("%q has a command without words", text)
				}
			}
		}
	})
}
