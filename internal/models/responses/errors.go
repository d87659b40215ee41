package responses

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"

	"dure/agent"
	"dure/internal/models/wire"
)

// errorMessage is how the API and the endpoints that speak it explain
// themselves. Code is a word, or a number that repeats the status.
type errorMessage struct {
	Type    string          `json:"type"`
	Code    json.RawMessage `json:"code"`
	Message string          `json:"message"`
}

// code returns the word for the error.
func (m errorMessage) code() string {
	var word string
	if json.Unmarshal(m.Code, &word) != nil || strings.Trim(word, "0123456789") == "" {
		return m.Type
	}
	return word
}

// explain reads the body of an answer that is an error: the API's, or a gateway's
// that has the message on its outside or nothing but a sentence.
func explain(status int, body []byte) *agent.ModelError {
	var said struct {
		errorMessage
		Error  json.RawMessage `json:"error"`
		Object string          `json:"object"`
	}
	if json.Unmarshal(body, &said) != nil || said.Object == "response" && status == http.StatusOK && !failed(body) {
		return nil
	}
	inner, ok := readError(said.Error)
	if !ok {
		inner = said.errorMessage
	}
	if inner.Message == "" || status == http.StatusOK && !ok {
		return nil
	}
	return classify(status, inner)
}

// readError reads an error that is an object or a sentence.
func readError(raw json.RawMessage) (errorMessage, bool) {
	var m errorMessage
	if json.Unmarshal(raw, &m) == nil && (m.Message != "" || m.code() != "") {
		m.Message = wire.Or(m.Message, m.code())
		return m, true
	}
	m = errorMessage{}
	return m, json.Unmarshal(raw, &m.Message) == nil && m.Message != ""
}

// failed reports whether a whole answer is one that went wrong.
func failed(body []byte) bool {
	var r struct {
		Status string `json:"status"`
	}
	return json.Unmarshal(body, &r) == nil && (r.Status == "failed" || r.Status == "cancelled")
}

// classes are the API's words for what went wrong, and what they mean whatever
// the status. A word that ends in _ is a beginning.
var classes = []struct {
	class agent.FailureClass
	words string
}{
	{agent.FailContext, "context_length_exceeded string_above_max_length request_too_large"},
	{agent.FailQuota, "insufficient_quota billing_hard_limit_reached billing_not_active credit_balance_exhausted usage_limit_reached spend_limit_reached"},
	{agent.FailAuth, "invalid_api_key authentication_error permission_error account_deactivated ip_not_authorized unsupported_country_region_territory"},
	{agent.FailNotFound, "model_not_found deploymentnotfound not_found_error"},
	{agent.FailRate, "rate_limit_exceeded rate_limit_error too_many_requests"},
	{agent.FailServer, "server_error server_is_overloaded service_unavailable_error overloaded_error internal_error vector_store_timeout"},
	{agent.FailTimeout, "timeout request_timeout"},
	{agent.FailInvalid, "invalid_request_error invalid_prompt invalid_encrypted_content content_filter bio_policy cyber_policy misalignment_policy_violation " +
		"data_residency_mismatch image_ invalid_image invalid_image_ invalid_base64_image unsupported_ empty_image_file failed_to_download_image"},
}

// classify turns an explanation of the API into an error. status is 0 inside a
// stream, where the words alone tell. What was said is still as it came.
func classify(status int, said errorMessage) *agent.ModelError {
	e := &agent.ModelError{Class: wire.ByStatus(status), Code: said.code(), Message: said.Message}
	text := strings.ToLower(said.Message)
	class := classOf(strings.ToLower(e.Code))
	switch {
	case class == agent.FailInvalid && status != 0 && status != http.StatusBadRequest:
		// the status says more than that the request was wrong
	case class != "":
		e.Class = class
	}
	switch {
	case wire.Holds(text, "exceeded your current quota", "credit balance"):
		e.Class = agent.FailQuota
	case wire.Holds(text, "maximum context length", "context window", "input tokens exceed") && (e.Class == agent.FailInvalid || status == 0):
		e.Class = agent.FailContext
	case e.Class == agent.FailRate && wire.Holds(text, "request too large"): // more than a minute may take: only less will do
		e.Class = agent.FailContext
	case wire.Holds(text, "invalid url", "unexpected endpoint") && (status == http.StatusOK || status == http.StatusNotFound):
		e.Class = agent.FailProtocol
	case e.Class == agent.FailNotFound && wire.Holds(text, "item with id"):
		e.Class = agent.FailInvalid
	}
	if e.Retryable() {
		e.RetryAfter = asked(text)
	}
	return e
}

func classOf(code string) agent.FailureClass {
	for _, c := range classes {
		for word := range strings.FieldsSeq(c.words) {
			if word == code || strings.HasSuffix(word, "_") && strings.HasPrefix(code, word) {
				return c.class
			}
		}
	}
	return ""
}

// maxAsked bounds what is asked for in words.
const maxAsked = 24 * time.Hour

var inWords = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?:try again in|retry after) ((?:[0-9]{1,6}(?:\.[0-9]{1,6})?(?:ms|s|m|h))+|[0-9]{1,6}(?:\.[0-9]{1,6})? ?seconds?)`)
})

// asked returns how long an explanation asks to wait: "Please try again in
// 1m7.5s", "in 20ms", "retry after 26 seconds".
func asked(text string) time.Duration {
	found := inWords().FindStringSubmatch(text)
	if found == nil {
		return 0
	}
	words, _, seconds := strings.Cut(found[1], "sec")
	if seconds {
		words = strings.TrimSpace(words) + "s"
	}
	d, err := time.ParseDuration(words)
	if err != nil {
		return 0
	}
	return min(max(d, 0), maxAsked)
}
