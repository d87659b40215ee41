package responses

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"dure/agent"
	"dure/internal/models/wire"
)

const (
	maxID    = 64 // of calls and of items; the API's limit
	maxPhase = 64 // of what is sent back; the API knows commentary and final_answer

	maxFileName = 200 // bytes

	// maxShownText is how much of a text document is shown as text, in bytes.
	maxShownText = 1 << 20
)

// A segment is one message as items of the API.
type segment struct {
	role  agent.Role
	items []item
	mark  int // the last item that can carry a cache mark, or -1
}

// An item is one item of the API's input, as JSON with a comma in front.
type item struct {
	kind itemKind
	data []byte
	mark int // where a cache mark can be put into data, or -1; see segment.mark

	// Of the call that the item makes or answers: the ID in the conversation, the
	// one in data, and where the latter stands, quotes included.
	call, id string
	from, to int
}

type itemKind int

const (
	plain itemKind = iota
	makesCall
	answersCall
	reasons // id is its own
)

const (
	callOpen   = `{"type":"function_call","call_id":`
	resultOpen = `{"type":"function_call_output","call_id":`
	saidOpen   = `{"type":"message","role":"assistant"`
	heardOpen  = `{"type":"message","role":"user","content":[`
)

// encodeMessage writes one message. What the API would refuse is left out:
// empty text, reasoning that nothing follows or that cannot be read, and what
// only another provider can read.
func (e *encoder) encodeMessage(r agent.Request, m agent.Message) segment {
	w := &writer{e: e, r: r, s: segment{role: m.Role, mark: -1}, paired: pairs(m)}
	for _, b := range m.Blocks {
		if m.Role == agent.Assistant {
			w.said(b)
		} else {
			w.heard(b)
		}
	}
	w.flush()
	return w.s
}

// writer writes the items of one message.
type writer struct {
	e *encoder
	r agent.Request
	s segment

	paired    map[string]bool // raw calls that have their output, by ID
	reasoning []item          // waits for the item that it led to
	parts     []byte          // of the user's message so far
}

// said writes a block of an answer.
func (w *writer) said(b agent.Block) {
	switch b.Type {
	case agent.ThinkingBlock:
		if it := w.e.reasoning(b); it.data != nil {
			w.reasoning = append(w.reasoning, it)
		}
	case agent.TextBlock:
		if !wire.Blank(b.Text) {
			w.follow(item{data: saidText(w.e.phase(b), b.Text), mark: -1})
		}
	case agent.CallBlock:
		if b.Call != nil {
			w.follow(callItem(w.r, *b.Call))
		}
	case agent.RawBlock:
		if data := w.e.raw(b, w.paired); data != nil {
			w.follow(item{data: data, mark: -1})
		}
	case agent.ImageBlock, agent.DocumentBlock:
		w.follow(item{data: saidText("", wire.NotShown(b)), mark: -1})
	case agent.ResultBlock:
		w.heard(b)
	}
}

// heard writes a block of the user's.
func (w *writer) heard(b agent.Block) {
	switch b.Type {
	case agent.TextBlock, agent.ImageBlock, agent.DocumentBlock:
		w.parts = w.e.part(w.parts, b)
	case agent.ResultBlock:
		if b.Result != nil {
			w.flush()
			w.add(w.e.resultItem(*b.Result))
		}
	case agent.CallBlock:
		if b.Call != nil {
			w.flush()
			w.add(callItem(w.r, *b.Call))
		}
	}
}

// follow adds an item of an answer, behind the reasoning that led to it.
func (w *writer) follow(it item) {
	for _, r := range w.reasoning {
		w.add(r)
	}
	w.reasoning = nil
	w.add(it)
}

// add adds an item whose comma is still missing.
func (w *writer) add(it item) {
	it.data = append([]byte{','}, it.data...)
	it.from++
	it.to++
	if it.mark >= 0 && w.e.marks {
		it.mark++
		w.s.mark = len(w.s.items)
	}
	w.s.items = append(w.s.items, it)
}

// flush ends the message of the user that is being written.
func (w *writer) flush() {
	if len(w.parts) == 0 {
		return
	}
	data := append(append([]byte(heardOpen), w.parts...), `]}`...)
	w.parts = nil
	w.add(item{data: data, mark: len(data) - len(`}]}`)})
}

func saidText(phase, text string) []byte {
	d := []byte(saidOpen)
	if phase != "" {
		d = wire.Quote(append(d, `,"phase":`...), phase)
	}
	return append(wire.Quote(append(d, `,"content":[{"type":"output_text","text":`...), text), `}]}`...)
}

// said is what of a message item has to go back with its text: models that
// reason read from it whether they were done.
type said struct {
	Phase string `json:"phase,omitempty"`
}

func (e *encoder) phase(b agent.Block) string {
	var s said
	if b.Provider != e.info.Provider || e.info.Thinking == "" || len(b.Raw) == 0 || json.Unmarshal(b.Raw, &s) != nil {
		return ""
	}
	if len(s.Phase) > maxPhase || wire.Plain(s.Phase) != s.Phase {
		return ""
	}
	return s.Phase
}

// reasoning returns a reasoning item as it goes back to who gave it, or one
// without data. An item that has neither encrypted nor open content is a mere
// name, which nobody can look up: nothing is stored.
func (e *encoder) reasoning(b agent.Block) item {
	var r struct {
		Type      string          `json:"type"`
		ID        string          `json:"id"`
		Summary   json.RawMessage `json:"summary"`
		Encrypted string          `json:"encrypted_content"`
		Content   json.RawMessage `json:"content"`
	}
	if b.Provider != e.info.Provider || len(b.Raw) == 0 || json.Unmarshal(b.Raw, &r) != nil || r.Type != "reasoning" {
		return item{}
	}
	if e.info.Thinking == "" { // a model that does not reason takes none
		return item{}
	}
	content := list(r.Content)
	named := strings.HasPrefix(r.ID, "rs") && len(r.ID) <= maxID && wire.Plain(r.ID) == r.ID
	if !named || r.Encrypted == "" && content == nil {
		return item{}
	}
	d := wire.Quote([]byte(`{"type":"reasoning","id":`), r.ID)
	if d = append(d, `,"summary":`...); list(r.Summary) != nil {
		d = append(d, list(r.Summary)...)
	} else {
		d = append(d, `[]`...)
	}
	if content != nil {
		d = append(append(d, `,"content":`...), content...)
	}
	if r.Encrypted != "" {
		d = wire.Quote(append(d, `,"encrypted_content":`...), r.Encrypted)
	}
	return item{kind: reasons, data: append(d, '}'), mark: -1, id: r.ID}
}

// list returns raw when it is a JSON array with something in it, or nil.
func list(raw json.RawMessage) []byte {
	whole, ok := wire.Canonical(nil, raw)
	if !ok || len(whole) <= len(`[]`) || whole[0] != '[' {
		return nil
	}
	return whole
}

// rawItem is what has to be known of an item of a kind that we do not model.
type rawItem struct {
	Type   string `json:"type"`
	CallID string `json:"call_id"`
}

const outputSuffix = "_output"

// pairs returns the IDs of the raw calls of a message that came with their
// output, both of them ran at the provider. The others cannot go back: no API
// takes half a pair.
func pairs(m agent.Message) map[string]bool {
	var calls, outputs map[string]bool
	for _, b := range m.Blocks {
		var it rawItem
		if b.Type != agent.RawBlock || json.Unmarshal(b.Raw, &it) != nil || it.CallID == "" {
			continue
		}
		if calls == nil {
			calls, outputs = make(map[string]bool), make(map[string]bool)
		}
		if strings.HasSuffix(it.Type, outputSuffix) {
			outputs[it.CallID] = calls[it.CallID]
		} else {
			calls[it.CallID] = true
		}
	}
	return outputs
}

// raw returns an item of a kind that we do not model, as it came, or nil.
func (e *encoder) raw(b agent.Block, paired map[string]bool) []byte {
	var it rawItem
	data, ok := wire.Canonical(nil, b.Raw)
	if b.Provider != e.info.Provider || !ok || !wire.Object(data) || json.Unmarshal(data, &it) != nil {
		return nil
	}
	switch it.Type {
	case "", "message", "reasoning", "function_call", "function_call_output", "item_reference", "mcp_approval_request":
		return nil
	}
	if it.CallID != "" && !paired[it.CallID] {
		return nil
	}
	return data
}

func callItem(r agent.Request, c agent.Call) item {
	it, d := opened(makesCall, callOpen, c.ID)
	d = wire.Quote(append(d, `,"name":`...), wire.ToolName(r.Presented(c.Tool)))
	d = wire.Quote(append(d, `,"arguments":`...), string(wire.CallInput(nil, c)))
	it.data = append(d, '}')
	return it
}

// opened returns an item with the ID of its call, and its data so far.
func opened(kind itemKind, head, call string) (item, []byte) {
	id := callID(call)
	d := wire.Quote([]byte(head), id)
	return item{kind: kind, mark: -1, call: call, id: id, from: len(head), to: len(d)}, d
}

// callID returns the ID of a call as the API can bear it. A longer one keeps its
// beginning, and gets a hash of the whole.
func callID(id string) string {
	plain := wire.CallID(id)
	if len(plain) <= maxID {
		return plain
	}
	sum := sha256.Sum256([]byte(id))
	hash := hex.EncodeToString(sum[:8])
	return plain[:maxID-len(hash)-1] + "_" + hash
}

// resultItem writes what a call came to. A failure says so: the API has no
// other place for it.
func (e *encoder) resultItem(r agent.Result) item {
	it, d := opened(answersCall, resultOpen, r.ID)
	text := wire.ResultText(r)
	if r.Failed() && (r.Text != "" || len(r.Output) > 0) {
		text = "The call failed.\n" + text
	}
	var media []byte
	for _, b := range r.Blocks {
		media = e.part(media, b)
	}
	if media == nil && wire.Blank(text) {
		text = "(no output)"
	}
	d = append(d, `,"output":`...)
	if media == nil && !e.marks {
		it.data = append(wire.Quote(d, text), '}')
		return it
	}
	d = append(d, '[')
	if !wire.Blank(text) {
		d = inputText(d, text)
		if media != nil {
			d = append(d, ',')
		}
	}
	it.data = append(append(d, media...), `]}`...)
	it.mark = len(it.data) - len(`}]}`)
	return it
}

func inputText(d []byte, text string) []byte {
	return append(wire.Quote(append(d, `{"type":"input_text","text":`...), text), '}')
}

// part appends a part of the user's message or of a result: text, an image, a
// document, or words that the model cannot be shown one.
func (e *encoder) part(d []byte, b agent.Block) []byte {
	text := b.Text
	switch b.Type {
	case agent.TextBlock:
	case agent.ImageBlock, agent.DocumentBlock:
		if b.Media == nil {
			return d
		}
		if more := e.media(separated(d), b); more != nil {
			return more
		}
		text = shownText(b)
	default:
		return d
	}
	if wire.Blank(text) {
		return d
	}
	return inputText(separated(d), text)
}

func separated(d []byte) []byte {
	if len(d) > 0 {
		d = append(d, ',')
	}
	return d
}

// media appends an image or a PDF, or returns nil when the model cannot be
// shown it.
func (e *encoder) media(d []byte, b agent.Block) []byte {
	m := b.Media
	kind, _, _ := strings.Cut(m.Type, ";")
	linked := len(m.Data) == 0
	if linked && !strings.HasPrefix(m.URL, "https://") && !strings.HasPrefix(m.URL, "http://") {
		return nil
	}
	switch kind {
	case "image/jpeg", "image/png", "image/gif", "image/webp":
		if !e.info.Images || b.Type != agent.ImageBlock {
			return nil
		}
		if d = append(d, `{"type":"input_image","detail":"auto","image_url":`...); linked {
			return append(wire.Quote(d, m.URL), '}')
		}
		return append(wire.DataURL(d, kind, m.Data), '}')
	case "application/pdf":
		if !e.info.PDF || b.Type != agent.DocumentBlock {
			return nil
		}
		if linked {
			return append(wire.Quote(append(d, `{"type":"input_file","file_url":`...), m.URL), '}')
		}
		d = wire.Quote(append(d, `{"type":"input_file","filename":`...), fileName(m.Name))
		return append(wire.DataURL(append(d, `,"file_data":`...), kind, m.Data), '}')
	}
	return nil
}

func fileName(name string) string {
	if name = name[:min(len(name), maxFileName)]; wire.Blank(name) {
		return "document.pdf"
	}
	return name
}

// shownText is the text that stands for media which the model is not shown as
// such: that of a text document, or that it is not shown.
func shownText(b agent.Block) string {
	m := b.Media
	kind, _, _ := strings.Cut(m.Type, ";")
	if b.Type != agent.DocumentBlock || kind != "text/plain" || m.URL != "" || len(m.Data) > maxShownText || wire.Blank(string(m.Data)) {
		return wire.NotShown(b)
	}
	if m.Name == "" {
		return string(m.Data)
	}
	return m.Name + ":\n" + string(m.Data)
}
