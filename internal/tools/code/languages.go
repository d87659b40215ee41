package code

import (
	"regexp"
	"slices"
	"sync"
)

// languages returns the languages by the extensions and names of their files.
// Patterns are compiled at the first outline, not when the program starts.
var languages = sync.OnceValue(func() map[string]*language {
	byName := map[string]*language{}
	for _, l := range slices.Concat(classes(), braced(), indented(), others()) {
		for _, f := range l.files {
			byName[f] = l
		}
	}
	return byName
})

// The lexis that many languages share.
var (
	slashes = []string{"//"}
	stars   = [][2]string{{"/*", "*/"}}
	double  = delimiter{open: `"`, end: `"`}
	single  = delimiter{open: `'`, end: `'`}
	triple  = delimiter{open: `"""`, end: `"""`, lines: true}
)

// calls are words that stand before parentheses and are no names, in languages
// where methods have no word of their own before them.
var calls = []string{
	"if", "for", "while", "switch", "catch", "return", "else", "throw", "do", "synchronized", "using", "lock", "foreach",
	"function", "super", "sizeof", "defined", "typeof",
}

func is(kind, pattern string) rule     { return rule{kind: kind, re: regexp.MustCompile(pattern)} }
func member(kind, pattern string) rule { r := is(kind, pattern); r.member = true; return r }
func top(kind, pattern string) rule    { r := is(kind, pattern); r.top = true; return r }

// likeC is the lexis of C, with more strings.
func likeC(more ...delimiter) lexis {
	return lexis{line: slashes, block: stars, strings: append(more, double), chars: true}
}

// classes are languages with bodies in braces in which most things are in
// classes.
func classes() []*language {
	const java = `^\s*(?:@\w+(?:\([^)]*\))?\s+)*(?:(?:public|private|protected|internal|static|final|abstract|sealed|non-sealed|strictfp|default|partial|readonly|ref|unsafe|file|new|virtual|override|async|extern|native|synchronized|required)\s+)*`
	return []*language{
		{
			name: "JavaScript/TypeScript", read: readBraces, skip: calls,
			files: []string{".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx"},
			words: lexis{line: slashes, block: stars, strings: []delimiter{double, single, {open: "`", end: "`", lines: true}}, regexps: true},
			rules: []rule{
				is("class", `^\s*(?:export\s+)?(?:default\s+)?(?:declare\s+)?(?:abstract\s+)?class\s+([\w$]+)`),
				is("interface", `^\s*(?:export\s+)?(?:default\s+)?(?:declare\s+)?interface\s+([\w$]+)`),
				is("enum", `^\s*(?:export\s+)?(?:declare\s+)?(?:const\s+)?enum\s+([\w$]+)`),
				is("namespace", `^\s*(?:export\s+)?(?:declare\s+)?(?:namespace|module)\s+([\w$.]+)`),
				is("namespace", `^\s*declare\s+(global)\b`),
				is("type", `^\s*(?:export\s+)?(?:declare\s+)?type\s+([\w$]+)\s*(?:<.*)?=`),
				is("function", `^\s*(?:export\s+)?(?:default\s+)?(?:declare\s+)?(?:async\s+)?function\s*\*?\s*([\w$]+)`),
				top("const", `^\s*(?:export\s+)?(?:declare\s+)?(?:const|let|var)\s+([\w$]+)`),
				member("method", `^\s*(?:(?:public|private|protected|static|readonly|abstract|override|async|get|set|declare)\s+)*\*?\s*(#?[\w$]+)\s*\??(?:<[^>]*>)?\(`),
				member("field", `^\s*(?:(?:public|private|protected|static|readonly|override|declare)\s+)*(#?[\w$]+)\s*[?!]?\s*[:=]`),
			},
		},
		{name: "Java", semicolons: true, files: []string{".java"}, read: readBraces, skip: calls, words: likeC(triple), rules: []rule{
			is("class", java+`(?:class|@interface)\s+(\w+)`), is("interface", java+`interface\s+(\w+)`), is("enum", java+`enum\s+(\w+)`), is("record", java+`record\s+(\w+)\s*[(<]`),
			member("method", java+`(?:<[^>]+>\s*)?[\w.]+(?:<[^()]*>)?(?:\[\])*\s+(\w+)\s*\(`),
			member("constructor", java+`([A-Z]\w*)\s*\([^;=]*$`),
		}},
		{
			name: "C#", semicolons: true, files: []string{".cs"}, read: readBraces, skip: calls,
			words: likeC(triple, delimiter{open: `@"`, end: `"`, lines: true, raw: true}, delimiter{open: `$@"`, end: `"`, lines: true, raw: true}), rules: []rule{
				is("namespace", `^\s*namespace\s+([\w.]+)`),
				is("class", java+`class\s+(\w+)`), is("interface", java+`interface\s+(\w+)`), is("enum", java+`enum\s+(\w+)`),
				is("struct", java+`struct\s+(\w+)`), is("record", java+`record\s+(?:class\s+|struct\s+)?(\w+)`), is("delegate", java+`delegate\s+[\w.<>\[\]?]+\s+(\w+)`),
				member("method", java+`[\w.]+(?:<[^()]*>)?(?:\[,*\])*\??\s+(\w+)(?:<[^>()]*>)?\s*\(`),
				member("constructor", java+`([A-Z]\w*)\s*\([^;=]*$`),
				member("property", java+`[\w.]+(?:<[^()]*>)?(?:\[,*\])*\??\s+(\w+)\s*(?:\{|=>)`),
			},
		},
		{name: "Kotlin", files: []string{".kt", ".kts"}, read: readBraces, words: likeC(triple), rules: []rule{
			is("class", kotlin+`(?:enum\s+|annotation\s+)?class\s+(\w+)`), is("interface", kotlin+`(?:fun\s+)?interface\s+(\w+)`),
			is("object", kotlin+`(?:companion\s+)?object\s+(\w+)`), member("object", kotlin+`(companion)\s+object`), is("type", kotlin+`typealias\s+(\w+)`),
			is("function", kotlin+`fun\s+(?:<[^>]+>\s*)?(?:[\w.<>?, ]+\.)?(\w+)\s*\(`), is("value", kotlin+`va[lr]\s+(?:[\w.<>?]+\.)?(\w+)`),
		}},
	}
}

// braced are the other languages with bodies in braces.
func braced() []*language {
	return []*language{
		{name: "Rust", files: []string{".rs"}, read: readBraces, words: likeC(), rules: []rule{
			is("struct", rust+`struct\s+(\w+)`), is("enum", rust+`enum\s+(\w+)`), is("union", rust+`union\s+(\w+)\b`), is("trait", rust+`trait\s+(\w+)`),
			is("impl", `^\s*(?:unsafe\s+)?impl\b\s*(?:<.*?>\s*)?(.+?)\s*(?:where\b.*)?\{?\s*$`), is("mod", rust+`mod\s+(\w+)`),
			is("function", rust+`(?:const\s+|async\s+|unsafe\s+|extern\s+"[^"]*"\s+)*fn\s+(\w+)`), is("macro", `^\s*macro_rules!\s*(\w+)`),
			is("type", rust+`type\s+(\w+)`), is("const", rust+`(?:const|static)\s+(?:mut\s+)?(\w+)\s*:`),
		}},
		{name: "C", semicolons: true, files: []string{".c", ".h"}, read: readBraces, skip: calls, words: likeC(), rules: cRules()},
		{
			name: "C++", semicolons: true, files: []string{".cc", ".cpp", ".cxx", ".hh", ".hpp", ".hxx", ".ipp"}, read: readBraces, skip: calls,
			words: likeC(delimiter{open: `R"(`, end: `)"`, lines: true, raw: true}), rules: cRules(),
		},
		{
			name: "PHP", files: []string{".php"}, read: readBraces,
			words: lexis{line: []string{"//", "#"}, block: stars, strings: []delimiter{double, single}, hash: true}, rules: []rule{
				is("class", `^\s*(?:(?:abstract|final|readonly)\s+)*class\s+(\w+)`), is("interface", `^\s*interface\s+(\w+)`),
				is("trait", `^\s*trait\s+(\w+)`), is("enum", `^\s*enum\s+(\w+)`),
				is("function", `^\s*(?:(?:public|private|protected|static|abstract|final)\s+)*function\s+&?(\w+)`),
				is("const", `^\s*(?:(?:public|private|protected|final)\s+)*const\s+(?:\w+\s+)?(\w+)\s*=`),
			},
		},
		{
			name: "Swift", files: []string{".swift"}, read: readBraces,
			words: lexis{line: slashes, block: stars, strings: []delimiter{triple, double}}, rules: []rule{
				is("class", swift+`class\s+(\w+)`), is("struct", swift+`struct\s+(\w+)`), is("enum", swift+`enum\s+(\w+)`), is("actor", swift+`actor\s+(\w+)`),
				is("protocol", swift+`protocol\s+(\w+)`), is("extension", swift+`extension\s+([\w.]+)`),
				is("function", swift+`func\s+(\w+|[-+*/=<>!&|^~%]+)`), member("init", swift+`(init)[?!]?\s*[(<]`), is("type", swift+`typealias\s+(\w+)`),
				is("value", swift+`(?:let|var)\s+(\w+)`), member("case", `^\s*(?:indirect\s+)?case\s+(\w+)`),
			},
		},
		{
			name: "shell", files: []string{".sh", ".bash", ".zsh"}, read: readBraces,
			words: lexis{line: []string{"#"}, hash: true, strings: []delimiter{
				{open: `"`, end: `"`, lines: true}, {open: `'`, end: `'`, lines: true, raw: true},
			}}, rules: []rule{is("function", `^\s*(?:function\s+([\w:.-]+)|([\w:.-]+)\s*\(\s*\))`)},
		},
	}
}

const (
	kotlin = `^\s*(?:@\w+(?:\([^)]*\))?\s+)*(?:(?:public|private|protected|internal|open|abstract|final|sealed|data|inner|value|inline|override|suspend|operator|infix|tailrec|external|const|lateinit|actual|expect)\s+)*`
	rust   = `^\s*(?:pub(?:\([^)]*\))?\s+)?(?:default\s+|unsafe\s+|auto\s+)*`
	swift  = `^\s*(?:@\w+(?:\([^)]*\))?\s+)*(?:(?:public|private|fileprivate|internal|open|static|class|final|override|mutating|nonmutating|lazy|weak|unowned|required|convenience|indirect|nonisolated|dynamic)(?:\(set\))?\s+)*`
)

func cRules() []rule {
	return []rule{
		is("extern", `^\s*(extern)\s+"[^"]*"\s*\{`), is("namespace", `^\s*(?:inline\s+)?namespace\s+([\w:]+)[^;={]*\{?\s*$`),
		is("namespace", `^\s*(?:inline\s+)?(namespace)\s*\{?\s*$`),
		is("class", `^\s*(?:template\s*<.*>\s*)?class\s+(?:\w+\s+)??(\w+)\s*(?:final\s*)?(?:[:{].*)?$`),
		is("struct", `^\s*(?:template\s*<.*>\s*)?(?:typedef\s+)?struct\s+(\w+)\s*(?:final\s*)?(?:[:{].*)?$`),
		is("union", `^\s*(?:typedef\s+)?union\s+(\w+)\s*(?:\{.*)?$`), is("enum", `^\s*(?:typedef\s+)?enum\s+(?:class\s+|struct\s+)?(\w+)\s*(?:[:{].*)?$`),
		is("macro", `^\s*#\s*define\s+(\w+)`), is("type", `^\s*typedef\s+[^{]*?\b(\w+)\s*;`), is("type", `^\s*using\s+(\w+)\s*=`),
		is("function", `^\s*(?:[A-Za-z_][\w:]*(?:<[^()]*>)?[\s*&]+)+(~?[A-Za-z_][\w:~]*|operator\s*[^\s(]+)\s*\([^;]*(?:;\s*)?$`),
		member("constructor", `^\s*(?:explicit\s+|virtual\s+|constexpr\s+)*(~?[A-Z]\w*)\s*\([^;]*(?:;\s*)?$`),
	}
}

// indented are the languages with indented bodies.
func indented() []*language {
	return []*language{
		{
			name: "Python", files: []string{".py", ".pyi"}, read: readIndented,
			words: lexis{line: []string{"#"}, strings: []delimiter{triple, {open: `'''`, end: `'''`, lines: true}, double, single}}, rules: []rule{
				is("class", `^\s*class\s+(\w+)`), is("function", `^\s*(?:async\s+)?def\s+(\w+)`), top("value", `^([A-Za-z_]\w*)\s*(?::[^=]+)?=(?:[^=]|$)`),
			},
		},
		{
			name: "YAML", files: []string{".yaml", ".yml"}, data: true, read: readIndented,
			words: lexis{line: []string{"#"}, hash: true}, rules: []rule{is("key", `^\s*(?:"([^"]+)"|'([^']+)'|([\w./$-]+))\s*:(?:\s|$)`)},
		},
		{
			name: "Ruby", files: []string{".rb", ".rake", "rakefile", "gemfile"}, read: readEnds,
			words: lexis{line: []string{"#"}, block: [][2]string{{"=begin", "=end"}}, strings: []delimiter{double, single}, hash: true}, rules: []rule{
				is("class", `^\s*class\s+([\w:]+|<<\s*self)`), is("module", `^\s*module\s+([\w:]+)`),
				is("method", `^\s*(?:(?:private|protected|public|module_function)\s+)?def\s+((?:self\.)?[\w]+[?!=]?|(?:self\.)?[-+*/<>=!~%\[\]&|^]+)`),
				is("const", `^\s*([A-Z]\w*)\s*=(?:[^=~]|$)`),
			},
		},
	}
}

// oneLiner recognises bodies that end in the line in which they begin.
var oneLiner = onDemand(`\bend\s*$|\bdef\s+[\w.?!]+(?:\([^)]*\))?\s*=[^=]|^\s*[A-Z]\w*\s*=`)

// others are Go, and the languages of sections, keys and statements.
func others() []*language {
	return []*language{
		{name: "Go", files: []string{".go"}, exact: true, read: readGo},
		{
			name: "SQL", files: []string{".sql"}, read: readStatements,
			words: lexis{line: []string{"--"}, block: stars, strings: []delimiter{
				{open: "$$", end: "$$", lines: true, raw: true}, {open: `'`, end: `'`, lines: true, raw: true},
			}}, rules: []rule{
				is("statement", `(?i)^\s*create\s+(?:or\s+replace\s+)?(?:(?:global|local|temp|temporary|unlogged|unique|materialized|recursive|external|virtual)\s+)*`+
					`(?:table|view|function|procedure|index|trigger|type|schema|sequence|database|extension|role|domain|policy)\s+(?:concurrently\s+)?(?:if\s+not\s+exists\s+)?([\w."\x60\[\]]+)`),
				is("statement", `(?i)^\s*alter\s+table\s+(?:if\s+exists\s+)?(?:only\s+)?([\w."\x60\[\]]+)`),
			},
		},
		{name: "Markdown", files: []string{".md", ".markdown", ".mdx"}, read: readMarkdown},
		{name: "JSON", files: []string{".json"}, data: true, exact: true, read: readJSON},
		{name: "TOML", files: []string{".toml"}, data: true, read: readSections},
	}
}
