package export

import (
	"strings"
	"testing"
)

// What others read as Markdown has no tag, image or script in it, however its code is
// begun and not ended.
func TestHarmless(t *testing.T) {
	for in, want := range map[string]string{
		"a <b> `<c>` <d>":                      "a &lt;b> `<c>` &lt;d>",
		"`\n` <b> `":                           "`\n` &lt;b> `",
		"\\` <b> `":                            "\\` &lt;b> `",
		"| ` | <b> ` |\n| --- | --- |":         "| ` | &lt;b> ` |\n| --- | --- |",
		"```\n<b>\n```\n<c>":                   "```\n<b>\n```\n&lt;c>",
		"```\n<b>":                             "```\n<b>\n```",
		"```\n<b>\n```\u00a0\n<c>":             "```\n<b>\n```\u00a0\n<c>\n```",
		"- a\n  ```\nb <c>":                    "- a\n```\nb <c>\n```",
		"- ```go\n  x\n  ```\n  <b>":           "- ```go\n  x\n```\n<b>\n```",
		"  ~~~\n    ~~~\n<b>":                  "~~~\n    ~~~\n<b>\n~~~",
		"1. a\n   ```go\n   x <- 1\n   ```\nb": "1. a\n```go\nx <- 1\n```\nb",
		"![x](http://e.example/p.png) ![y]":    "!\\[x](http://e.example/p.png) !\\[y]",
		"[x](javascript:a) [y](http://h/a:b)":  "[x]\\(javascript:a) [y](http://h/a:b)",
		"[x](java&#115;cript:a) [y](a/b.md)":   "[x]\\(java&#115;cript:a) [y](a/b.md)",
		"[x](\njavascript:a)":                  "[x]\\(\njavascript:a)",
		"[x]: data:text/html,a\n\n[x]":         "[x]\\: data:text/html,a\n\n[x]",
		"[x]: https://h/\n\n[x](#top \"t\")":   "[x]: https://h/\n\n[x](#top \"t\")",
	} {
		if got := harmless(in); got != want {
			t.Errorf("%q\n got %q\nwant %q", in, got, want)
		}
	}
}

func FuzzHarmless(f *testing.F) {
	for _, s := range []string{"`<a>`", "```\n<a>", "- ~~~\n  ~~~\n", "[a](b) ![c]", "\\`<a>`|", "a ~~~\n  ~~~\n    ~~~\n~"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		s = plain(s)
		out, fence := harmless(s), ""
		for l := range strings.SplitSeq(out, "\n") {
			mark := fenceOf(l)
			switch {
			case fence == "":
				fence = mark
				if mark != "" && !strings.HasPrefix(l, mark) {
					t.Errorf("a fence that is indented: %q", out)
				}
			case strings.HasPrefix(mark, fence) && strings.Trim(l, " \t") == mark:
				fence = ""
			}
			if fence == "" && strings.Contains(l, "![") && !strings.Contains(l, "`") {
				t.Errorf("an image: %q", out)
			}
		}
		if fence != "" {
			t.Errorf("a fence that is not closed: %q", out)
		}
	})
}
