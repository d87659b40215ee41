package oracle_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// exceptions are the recorded streams of which the readers say different things,
// each with the reason. One that agrees after all is a failure.
var exceptions = map[string]string{
	"anthropic/messages/calls": "a delta for a block that nobody opened: the library gives up, the adapter leaves it out",
	"anthropic/messages/cut":   cutShort,
	"chat/chat/cut":            cutShort,
	"responses/responses/cut":  cutShort,
	"gemini/gemini/cut":        cutShort,

	// Servers that are compatible with Chat Completions as far as they go.
	"chat/chat/groq":        "the usage comes in x_groq, which the library does not know",
	"chat/chat/loose":       "calls have neither ID nor index, and arguments are an object: the library cannot add them up",
	"chat/chat/mistral":     "the content is a list of parts, which the library takes for text",
	"chat/chat/older":       "a single function_call, which the library's sum leaves out",
	"chat/chat/ollama":      "two calls share the index 0: the library makes them one",
	"chat/chat/unknown":     "a chunk with another ID: the library cannot add it up",
	"script/chat/quirks":    "calls have neither ID nor index: the library makes them one",
	"script/chat/repeating": "each piece of a call repeats its name: the library joins the names",

	"responses/responses/filtered": "no item was ever done: the library has text only in its deltas",

	"responses/responses/unclosed": "reasoning that was never done and is longer in the last event: the adapter keeps what it has shown",

	"gemini/gemini/text":        "the library takes a comment for a broken chunk",
	"gemini/gemini/unknown":     "the library refuses a part whose text is a number",
	"gemini/gemini/malformed":   lostCall,
	"script/gemini/broken-call": lostCall,
}

const (
	cutShort = "the library takes a stream without its end for a whole answer"
	lostCall = "a call that the API could not read is nothing to the library, and a failure that may be tried again to the adapter"
)

// TestRecordedStreams plays the streams that the tests of the adapters and of the
// scripted model have on file.
func TestRecordedStreams(t *testing.T) {
	each(t, func(t *testing.T, a api) {
		c := newCompare(t, a)
		files := recordings(t, a)
		for _, name := range slices.Sorted(maps.Keys(files)) {
			diff := c.same(t, recording{body: files[name], seed: uint64(len(name))})
			switch reason, excepted := exceptions[name]; {
			case diff != "" && !excepted:
				t.Errorf("%s: the library's answer (-) and the adapter's (+): %s", name, diff)
			case diff == "" && excepted:
				t.Errorf("%s: the readers agree, but it is an exception: %s", name, reason)
			}
		}
		t.Logf("%d streams", len(files))
	})
}

// recordings returns the streams on file for an API, by folder and name.
func recordings(t *testing.T, a api) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for _, folder := range []string{a.folder + "/testdata", "script/testdata/" + string(a.format)} {
		found, err := filepath.Glob(filepath.Join("../internal/models", folder, "*.sse"))
		if err != nil || len(found) == 0 {
			t.Fatalf("no streams in %s: %v", folder, err)
		}
		for _, f := range found {
			data, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			family, _, _ := strings.Cut(folder, "/")
			files[family+"/"+string(a.format)+"/"+strings.TrimSuffix(filepath.Base(f), ".sse")] = data
		}
	}
	return files
}
