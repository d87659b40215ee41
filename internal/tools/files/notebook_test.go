package files

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"image"
	"image/png"
	"strings"
	"testing"

	"dure/agent"
)

// nb is a notebook as Jupyter writes it, with fields that nobody knows.
const nb = `{
 "cells": [
  {
   "cell_type": "markdown",
   "id": "intro",
   "metadata": {"b": 1,   "a": [ ]},
   "source": [
    "# Title\n",
    "text"
   ]
  },
  {
   "cell_type": "code",
   "execution_count": 3,
   "id": "c0de",
   "metadata": {},
   "outputs": [
    {
     "name": "stdout",
     "output_type": "stream",
     "text": [
      "1\n",
      "2\n"
     ]
    }
   ],
   "source": [
    "print(1)"
   ]
  }
 ],
 "metadata": {
  "language_info": {"name": "python"},
  "unknown": 1.50e3
 },
 "nbformat": 4,
 "nbformat_minor": 5
}
`

func TestReadNotebook(t *testing.T) {
	d := newDesk(t)
	d.put("n.ipynb", nb)
	d.want("read", in{"file_path": "n.ipynb"}, "<cell id=\"intro\" type=\"markdown\">\n# Title\ntext\n</cell>\n<cell id=\"c0de\" type=\"code\">\nprint(1)\n<output>\n1\n2\n</output>\n</cell>")
	d.want("read", in{"file_path": "n.ipynb", "offset": 5, "limit": 2}, "<cell id=\"c0de\" type=\"code\">\nprint(1)\n[lines 5-6 of 11; continue with offset 7]")
	d.want("read", in{"file_path": "n.ipynb", "encoding": "utf-8", "limit": 1}, "1\t{\n[lines 1-1 of 38; continue with offset 2]")
	d.put("other.ipynb", `{"cells": 7}`)
	d.want("read", in{"file_path": "other.ipynb"}, "1\t{\"cells\": 7}")
	d.put("void.ipynb", `{"cells": []}`)
	d.want("read", in{"file_path": "void.ipynb"}, "[the notebook has no cells]")
}

func TestReadNotebookOutputs(t *testing.T) {
	d := newDesk(t)
	var img bytes.Buffer
	d.check(png.Encode(&img, image.NewGray(image.Rect(0, 0, 2, 2))))
	picture := map[string]any{"output_type": "display_data", "data": map[string]any{"image/png": base64.StdEncoding.EncodeToString(img.Bytes()), "text/plain": []string{"<Figure>"}}}
	data, err := json.Marshal(map[string]any{"nbformat": 4, "cells": []any{map[string]any{"cell_type": "code", "source": "plot()", "outputs": []any{
		picture, picture, picture, picture, picture,
		map[string]any{"output_type": "error", "ename": "E", "evalue": "no", "traceback": []string{"line 1"}},
		map[string]any{"output_type": "stream", "text": strings.Repeat("두", outputChars+5)},
		map[string]any{"output_type": "display_data", "data": map[string]any{"image/png": "AAAA"}},
		map[string]any{"output_type": "display_data", "data": map[string]any{"text/html": "<b>"}},
	}}}})
	d.check(err)
	d.put("n.ipynb", string(data))
	r := d.do("read", in{"file_path": "n.ipynb"})
	want := `<cell id="cell-0" type="code">` + "\nplot()\n"
	for _, s := range []string{"image 1", "image 2", "image 3", "image 4", "left out"} {
		want += "<output>\n<Figure>\n[image/png, " + s + "]\n</output>\n"
	}
	want += "<output>\nE: no\nline 1\n</output>\n<output>\n" + strings.Repeat("두", outputChars) + "… [5 more characters]\n</output>\n<output>\n[image/png, left out]\n</output>\n<output>\n[text/html]\n</output>\n</cell>"
	if r.Text != want {
		t.Errorf("%s", r.Text)
	}
	if len(r.Blocks) != notebookImages || r.Blocks[0].Type != agent.ImageBlock || r.Blocks[0].Media.Type != "image/png" {
		t.Errorf("%d blocks", len(r.Blocks))
	}
}

func TestNotebookEdit(t *testing.T) {
	const code = "   \"source\": [\n    \"print(1)\"\n   ]\n"
	const output = "[\n    {\n     \"name\": \"stdout\",\n     \"output_type\": \"stream\",\n     \"text\": [\n      \"1\\n\",\n      \"2\\n\"\n     ]\n    }\n   ]"
	const first = "  {\n   \"cell_type\": \"markdown\",\n   \"id\": \"intro\",\n   \"metadata\": {\"b\": 1,   \"a\": [ ]},\n   \"source\": [\n    \"# Title\\n\",\n    \"text\"\n   ]\n  }"
	second := nb[strings.Index(nb, "  {\n   \"cell_type\": \"code\""):strings.Index(nb, "\n ],")]
	for _, c := range []struct {
		name  string
		input in
		says  string
		want  string // the notebook, with NEW for an ID that was made
	}{
		{
			"replace code",
			in{"cell_id": "c0de", "new_source": "x = \"<두>\"\ny"},
			"Replaced cell c0de of n.ipynb",
			strings.NewReplacer(code, "   \"source\": [\n    \"x = \\\"<두>\\\"\\n\",\n    \"y\"\n   ]\n", output, "[]", `"execution_count": 3`, `"execution_count": null`).Replace(nb),
		},
		{
			"replace markdown",
			in{"cell_id": "intro", "new_source": ""},
			"Replaced cell intro of n.ipynb",
			strings.Replace(nb, "[\n    \"# Title\\n\",\n    \"text\"\n   ]", "[]", 1),
		},
		{"by number", in{"cell_id": "cell-0", "new_source": "# Title\nother"}, "Replaced cell intro of n.ipynb", strings.Replace(nb, `"text"`, `"other"`, 1)},
		{
			"code to markdown",
			in{"cell_id": "c0de", "new_source": "print(1)", "cell_type": "markdown"},
			"Replaced cell c0de of n.ipynb",
			strings.NewReplacer(`"cell_type": "code"`, `"cell_type": "markdown"`, "   \"execution_count\": 3,\n", "", "   \"outputs\": "+output+",\n", "").Replace(nb),
		},
		{
			"markdown to code",
			in{"cell_id": "intro", "new_source": "text", "cell_type": "code"},
			"Replaced cell intro of n.ipynb",
			strings.NewReplacer(`"cell_type": "markdown",`, "\"cell_type\": \"code\",\n   \"execution_count\": null,", "    \"# Title\\n\",\n", "", "\"a\": [ ]},\n", "\"a\": [ ]},\n   \"outputs\": [],\n").Replace(nb),
		},
		{
			"insert at the beginning",
			in{"new_source": "m", "cell_type": "markdown", "edit_mode": "insert"},
			"Inserted cell NEW of n.ipynb",
			strings.Replace(nb, first, "  {\n   \"cell_type\": \"markdown\",\n   \"id\": \"NEW\",\n   \"metadata\": {},\n   \"source\": [\n    \"m\"\n   ]\n  },\n"+first, 1),
		},
		{
			"insert at the end",
			in{"cell_id": "c0de", "new_source": "m\n", "edit_mode": "insert"},
			"Inserted cell NEW of n.ipynb",
			strings.Replace(nb, second, second+",\n  {\n   \"cell_type\": \"code\",\n   \"execution_count\": null,\n   \"id\": \"NEW\",\n   \"metadata\": {},\n   \"outputs\": [],\n   \"source\": [\n    \"m\\n\"\n   ]\n  }", 1),
		},
		{"delete the first", in{"cell_id": "intro", "new_source": "", "edit_mode": "delete"}, "Deleted cell intro of n.ipynb", strings.Replace(nb, first+",\n", "", 1)},
		{"delete the last", in{"cell_id": "c0de", "new_source": "", "edit_mode": "delete"}, "Deleted cell c0de of n.ipynb", strings.Replace(nb, ",\n"+second, "", 1)},
	} {
		d := newDesk(t)
		d.seen(map[string]string{"n.ipynb": nb})
		c.input["notebook_path"] = "n.ipynb"
		call := d.newCall(c.input)
		k := d.tools["notebook__edit"].(agent.Checker)
		mark, err := k.Mark(t.Context(), d.context(), call)
		d.check(err)
		r, err := d.tools["notebook__edit"].Run(t.Context(), d.context(), call)
		d.check(err)
		var out struct {
			Cell string `json:"cell_id"`
		}
		d.check(json.Unmarshal(r.Output, &out))
		says, _, _ := strings.Cut(r.Text, ":")
		if says != strings.ReplaceAll(c.says, "NEW", out.Cell) {
			t.Errorf("%s: %s", c.name, r.Text)
		}
		if got, want := d.get("n.ipynb"), strings.ReplaceAll(c.want, "NEW", out.Cell); got != want {
			t.Errorf("%s: %s\n-- want\n%s", c.name, got, want)
		}
		if p, _, err := k.Probe(t.Context(), d.context(), call, mark); err != nil || p != agent.ProbeDone {
			t.Errorf("%s: the mark does not fit: %s, %v", c.name, p, err)
		}
	}
}

func TestNotebookEditOtherForms(t *testing.T) {
	d := newDesk(t)
	d.seen(map[string]string{
		"line.ipynb": `{"cells":[{"cell_type":"code","metadata":{},"outputs":[],"source":"x\ny"}],"nbformat":4,"nbformat_minor":2}`,
		"void.ipynb": "{\r\n  \"nbformat\": 4,\r\n  \"cells\": []\r\n}",
	})
	d.do("notebook__edit", in{"notebook_path": "line.ipynb", "cell_id": "0", "new_source": "z\n"})
	d.do("notebook__edit", in{"notebook_path": "line.ipynb", "cell_id": "cell-0", "edit_mode": "insert", "cell_type": "markdown", "new_source": "a\nb"})
	if got, want := d.get("line.ipynb"), `{"cells":[{"cell_type":"code","execution_count":null,"metadata":{},"outputs":[],"source":"z\n"},{"cell_type":"markdown","metadata":{},"source":["a\n","b"]}],"nbformat":4,"nbformat_minor":2}`; got != want {
		t.Error(got)
	}
	d.do("notebook__edit", in{"notebook_path": "void.ipynb", "edit_mode": "insert", "cell_type": "markdown", "new_source": "a"})
	if got, want := d.get("void.ipynb"), "{\r\n  \"nbformat\": 4,\r\n  \"cells\": [\r\n    {\r\n      \"cell_type\": \"markdown\",\r\n      \"metadata\": {},\r\n      \"source\": [\r\n        \"a\"\r\n      ]\r\n    }\r\n  ]\r\n}"; got != want {
		t.Errorf("%q", got)
	}
}

func TestNotebookEditRefuses(t *testing.T) {
	d := newDesk(t)
	d.put("unread.ipynb", nb)
	d.seen(map[string]string{"n.ipynb": nb, "text": "x", "v3.ipynb": `{"nbformat":3,"worksheets":[]}`, "twice.ipynb": `{"nbformat":4,"cells":[{"cell_type":"code","id":"a","source":""},{"cell_type":"code","id":"a","source":""}]}`})
	edit := func(path, cell string) in { return in{"notebook_path": path, "cell_id": cell, "new_source": "x"} }
	for _, c := range []struct {
		input in
		want  string
	}{
		{edit("unread.ipynb", "intro"), "E_FILE_NOT_READ: WS/unread.ipynb exists and has not been read in this session"},
		{edit("none.ipynb", "intro"), "E_FILE_NOT_FOUND: WS/none.ipynb does not exist"},
		{edit("n.ipynb", "gone"), `E_EDIT_NO_MATCH: no cell has the id "gone"`},
		{edit("n.ipynb", "cell-2"), `E_EDIT_NO_MATCH: no cell has the id "cell-2"`},
		{edit("n.ipynb", ""), "E_TOOL_INPUT: cell_id is missing"},
		{edit("twice.ipynb", "a"), `E_EDIT_AMBIGUOUS: several cells have the id "a"`},
		{edit("v3.ipynb", "a"), "E_FILE_TYPE: WS/v3.ipynb is not a notebook of format 4: it has no cells, or another format"},
		{edit("text", "a"), "E_FILE_TYPE: WS/text is not a notebook of format 4: invalid character 'x' looking for beginning of value"},
		{in{"notebook_path": "n.ipynb", "cell_id": "a"}, "E_TOOL_INPUT: new_source is missing or too large"},
	} {
		if got, _, _ := strings.Cut(d.text("notebook__edit", c.input), "\n"); got != c.want {
			t.Errorf("%v: %s", c.input, got)
		}
	}
}

func FuzzNotebookEdit(f *testing.F) {
	for _, mode := range []string{cellReplace, cellInsert, cellDelete} {
		f.Add(nb, "intro", "x\ny", "code", mode)
		f.Add(`{"nbformat":4,"cells":[{"cell_type":"code","source":"","a":{"cells":[1]}}]}`, "cell-0", "", "markdown", mode)
	}
	f.Fuzz(func(t *testing.T, text, cell, source, kind, mode string) {
		e, err := newNotebookEdit(text)
		if err != nil || cell == "" && mode != cellInsert || mode != cellReplace && mode != cellInsert && mode != cellDelete {
			return
		}
		if err := e.apply(notebookInput{Cell: cell, Source: &source, Type: kind, Mode: mode}); err != nil {
			return
		}
		var before, after map[string]any
		if json.Unmarshal([]byte(text), &before) != nil || json.Unmarshal(e.text, &after) != nil {
			t.Fatalf("%s", e.text)
		}
		n := map[string]int{cellInsert: 1, cellDelete: -1}[mode]
		if len(after["cells"].([]any)) != len(before["cells"].([]any))+n || len(after) != len(before) {
			t.Fatalf("%s", e.text)
		}
	})
}
