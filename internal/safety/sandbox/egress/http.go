package egress

import (
	"bufio"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http/httpguts"
)

// A route is a connection towards a target: to it, or to a proxy that takes
// requests for it.
type route struct {
	net.Conn
	via *url.URL // nil = to the target
}

// CloseWrite says that nothing more is sent, where the connection can.
func (r *route) CloseWrite() error { return closeWrite(r.Conn) }

// maxInterim is how many answers may come before the answer.
const maxInterim = 8

// errRequest is a request that is none for a proxy.
var errRequest = errors.New("this is a proxy: ask for http://HOST/..., or use CONNECT HOST:PORT")

// serveHTTP serves one request and closes the connection: the next one may be for
// another host, and has one of its own.
func (l *link) serveHTTP(head headReader) {
	defer l.linger()
	req, err := http.ReadRequest(head.buf)
	if err != nil || req.ProtoMajor != 1 || !validHeader(req.Header) {
		l.answer(http.StatusBadRequest, "the request cannot be read", "")
		return
	}
	head.open()
	if !l.signedIn(req.Header) {
		l.answer(http.StatusProxyAuthRequired, "the proxy wants its token", "Use the address of the proxy that is set in the environment.")
		return
	}
	t, err := targetOf(req)
	if err == nil {
		err = l.forward(req, t, head)
	}
	r, refused := errors.AsType[*refusal](err)
	switch {
	case err == nil:
	case refused:
		l.tell(err)
		l.answer(http.StatusForbidden, r.text, nextStep(r.why))
	case errors.Is(err, errRequest):
		l.answer(http.StatusBadRequest, err.Error(), "")
	default:
		l.answer(http.StatusBadGateway, err.Error(), "")
	}
}

// forward connects the request's client and target, and passes on what they say.
// An error means that the client has got no answer yet.
func (l *link) forward(req *http.Request, t target, head headReader) error {
	plain := req.Method != http.MethodConnect
	remote, err := l.reach(t, plain)
	if err != nil {
		return err
	}
	if plain {
		return l.exchange(req, remote)
	}
	if _, err := io.WriteString(l, "HTTP/1.1 200 Connection established\r\n\r\n"); err == nil {
		l.pass(head.buf, remote)
	}
	return nil
}

func validHeader(h http.Header) bool {
	for name, values := range h {
		if !httpguts.ValidHeaderFieldName(name) || !all(values, httpguts.ValidHeaderFieldValue) {
			return false
		}
	}
	return true
}

func all(list []string, ok func(string) bool) bool {
	return !slices.ContainsFunc(list, func(s string) bool { return !ok(s) })
}

// signedIn reports whether the client gave the token, as the password of any user.
func (l *link) signedIn(h http.Header) bool {
	if l.server.cfg.Token == "" {
		return true
	}
	scheme, rest, _ := strings.Cut(h.Get("Proxy-Authorization"), " ")
	if !strings.EqualFold(scheme, "Basic") {
		return false
	}
	pair, err := base64.StdEncoding.DecodeString(strings.TrimSpace(rest))
	_, password, _ := strings.Cut(string(pair), ":")
	return err == nil && subtle.ConstantTimeCompare([]byte(password), []byte(l.server.cfg.Token)) == 1
}

// targetOf returns what a request is for. The Host field does not matter: it is
// written anew.
func targetOf(req *http.Request) (target, error) {
	u := req.URL
	host, port := u.Hostname(), u.Port()
	switch {
	case u.User != nil, u.Opaque != "", host == "":
		return target{}, errRequest
	case req.Method == http.MethodConnect:
		if u.Path != "" || u.RawQuery != "" || port == "" {
			return target{}, errRequest
		}
	case u.Scheme != "http":
		return target{}, errRequest
	case port == "":
		port = "80"
	}
	if strings.HasPrefix(u.Host, "[") != strings.Contains(host, ":") {
		return target{}, errRequest
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return target{}, errRequest
	}
	return newTarget(host, uint16(n))
}

// exchange passes on a request and its answer.
func (l *link) exchange(req *http.Request, remote *route) error {
	out := l.outgoing(req, remote)
	var sent sync.WaitGroup
	defer sent.Wait()
	defer l.stopReading()
	defer remote.Close()
	sent.Go(func() { // an error shows in the answer, or in that there is none
		if remote.via != nil {
			_ = out.WriteProxy(remote)
		} else {
			_ = out.Write(remote)
		}
	})
	resp, err := readAnswer(remote, out)
	if err != nil {
		return errors.New("the host has sent no answer that can be read")
	}
	defer resp.Body.Close()
	dropHops(resp.Header)
	resp.Close, resp.Trailer = true, nil
	resp.ProtoMajor, resp.ProtoMinor = 1, 1
	if !req.ProtoAtLeast(1, 1) {
		resp.TransferEncoding = nil // it ends with the connection
	}
	if resp.Write(onlyWriter{l}) != nil {
		l.client.Close() // so that it sees that it is cut short
	}
	return nil
}

// stopReading ends the sending of a request that has its answer.
func (l *link) stopReading() { _ = l.client.SetReadDeadline(time.Now()) }

// outgoing returns the request as the target gets it.
func (l *link) outgoing(req *http.Request, remote *route) *http.Request {
	out := req.WithContext(l.server.ctx)
	out.Header = maps.Clone(req.Header)
	dropHops(out.Header)
	if strings.EqualFold(out.Header.Get("Expect"), "100-continue") && req.ContentLength != 0 {
		_, _ = io.WriteString(l, "HTTP/1.1 100 Continue\r\n\r\n")
	}
	out.Header.Del("Expect")
	if out.Header.Get("User-Agent") == "" {
		out.Header["User-Agent"] = nil // or one is made up
	}
	if remote.via != nil {
		if auth := upstreamHeader(remote.via).Get("Proxy-Authorization"); auth != "" {
			out.Header.Set("Proxy-Authorization", auth)
		}
	}
	host := l.to.host
	if l.to.addr.Is6() {
		host = "[" + host + "]"
	}
	if l.to.port != 80 {
		host += ":" + strconv.Itoa(int(l.to.port))
	}
	u := *req.URL
	u.Host, u.Fragment, u.RawFragment = host, "", ""
	out.URL, out.Host, out.Close, out.Trailer = &u, host, true, nil
	return out
}

// readAnswer reads the header of an answer.
func readAnswer(remote io.Reader, req *http.Request) (*http.Response, error) {
	head := newHeadReader(remote)
	for range maxInterim {
		resp, err := http.ReadResponse(head.buf, req)
		if err != nil {
			return nil, err
		}
		if resp.StatusCode == http.StatusSwitchingProtocols || !validHeader(resp.Header) {
			return nil, errRequest
		}
		if resp.StatusCode >= 200 {
			head.open()
			return resp, nil
		}
		_ = resp.Body.Close() // it has none
	}
	return nil, errRequest
}

// hops are the header fields that mean the next hop alone.
var hops = []string{
	"Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization",
	"Te", "Trailer", "Transfer-Encoding", "Upgrade", "Http2-Settings",
}

// dropHops removes them, and those that Connection names.
func dropHops(h http.Header) {
	for _, v := range h["Connection"] {
		for name := range strings.SplitSeq(v, ",") {
			h.Del(strings.TrimSpace(name))
		}
	}
	for _, name := range hops {
		h.Del(name)
	}
}

// nextStep says what can be done about a refusal.
func nextStep(why string) string {
	switch why {
	case WhyHost, WhyPort:
		return "Ask the user to allow it, or go on without it."
	case WhyName:
		return "Use a host name, or an address in its usual form."
	}
	return "Go on without it."
}

// answer says to the client why it gets nothing, in the status line too, since
// few show the body of an answer to CONNECT. Both texts are ASCII, and one line.
func (l *link) answer(status int, text, next string) {
	if l.pulse != nil {
		l.pulse.Stop()
	}
	_ = l.client.SetDeadline(time.Now().Add(refuseTime))
	body := text + ".\n"
	if next != "" {
		body += next + "\n"
	}
	resp := http.Response{
		Status: strconv.Itoa(status) + " " + text, StatusCode: status, ProtoMajor: 1, ProtoMinor: 1, Close: true,
		Header:        http.Header{"Content-Type": {"text/plain; charset=utf-8"}},
		Body:          io.NopCloser(strings.NewReader(body)),
		ContentLength: int64(len(body)),
	}
	if status == http.StatusProxyAuthRequired {
		resp.Header.Set("Proxy-Authenticate", `Basic realm="dure"`)
	}
	w := bufio.NewWriter(l.client)
	_ = resp.Write(w) // a client that has gone does not want to know
	_ = w.Flush()
}
