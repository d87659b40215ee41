package telemetry

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Calls of gRPC are requests of HTTP/2: one message goes, behind five bytes that say whether
// it is packed and how long it is, one comes, and behind that how the call went.

const (
	grpcType = "application/grpc"
	grpcHead = 5 // bytes in front of a message
)

// The codes of calls that tell of something to do.
const (
	grpcOK        = 0
	grpcCancelled = 1
	grpcDeadline  = 4
	grpcExhausted = 8
	grpcAborted   = 10
	grpcRange     = 11
	grpcAway      = 14
	grpcLoss      = 15
)

// overHTTP2 is how calls are carried: by HTTP/2 alone, which is spoken at once where nothing
// is encrypted.
func overHTTP2(usual http.RoundTripper) http.RoundTripper {
	t, ok := usual.(*http.Transport)
	if !ok {
		return usual
	}
	own := t.Clone()
	own.Protocols = new(http.Protocols)
	own.Protocols.SetHTTP2(true)
	own.Protocols.SetUnencryptedHTTP2(true)
	return own
}

// framed is a message as a call carries it.
func framed(message []byte, packed bool) []byte {
	data := make([]byte, grpcHead, grpcHead+len(message))
	if packed {
		data[0] = 1
	}
	binary.BigEndian.PutUint32(data[1:], uint32(len(message)))
	return append(data, message...)
}

// unframed is the message of an answer; nil when there is none that can be read. Collectors
// pack answers as they were called.
func unframed(data []byte, how string) []byte {
	if len(data) < grpcHead || uint64(binary.BigEndian.Uint32(data[1:])) > uint64(len(data)-grpcHead) {
		return nil
	}
	message := data[grpcHead : grpcHead+int(binary.BigEndian.Uint32(data[1:]))]
	if data[0] == 0 {
		return message
	}
	if how != "gzip" {
		return nil
	}
	z, err := gzip.NewReader(bytes.NewReader(message))
	if err != nil {
		return nil
	}
	if message, err = io.ReadAll(io.LimitReader(z, maxReply)); err != nil {
		return nil
	}
	return message
}

// call says of a request that it is a call.
func (s *sender) call(req *http.Request, timeout time.Duration) {
	req.Header.Set("Content-Type", grpcType)
	req.Header.Set("TE", "trailers")
	req.Header.Set("Grpc-Timeout", strconv.FormatInt(timeout.Milliseconds(), 10)+"m")
	if s.target.Gzip {
		req.Header.Set("Grpc-Encoding", "gzip")
	}
}

// called reads how a call went. What the collector says besides is not repeated: it may say
// again what it was sent.
func called(resp *http.Response) (rejected int, err error) {
	switch code := resp.StatusCode; code {
	case http.StatusOK:
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return 0, &errAgain{retryAfter(resp.Header.Get("Retry-After")), errors.New("HTTP " + strconv.Itoa(code))}
	default:
		return 0, errors.New("HTTP " + strconv.Itoa(code))
	}
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), grpcType) {
		return 0, errors.New("the answer is none of gRPC")
	}
	reply, err := io.ReadAll(io.LimitReader(resp.Body, maxReply+1))
	if err != nil {
		return 0, &errAgain{err: err}
	}
	if len(reply) > maxReply {
		return 0, errors.New("the answer is too long")
	}
	end := resp.Trailer // which is there once all has been read
	if end.Get("Grpc-Status") == "" {
		end = resp.Header // there is no message
	}
	status, err := strconv.ParseUint(end.Get("Grpc-Status"), 10, 8)
	if err != nil {
		return 0, errors.New("the answer does not say how the call went")
	}
	failed := errors.New("gRPC status " + strconv.FormatUint(status, 10))
	switch status {
	case grpcOK:
		return rejectedOf(unframed(reply, resp.Header.Get("Grpc-Encoding")), false), nil
	case grpcCancelled, grpcDeadline, grpcAborted, grpcRange, grpcAway, grpcLoss:
		after, _ := retryDelay(end.Get("Grpc-Status-Details-Bin"))
		return 0, &errAgain{after, failed}
	case grpcExhausted: // for good, unless it says when it is not
		if after, ok := retryDelay(end.Get("Grpc-Status-Details-Bin")); ok {
			return 0, &errAgain{after, failed}
		}
	}
	return 0, failed
}

// retryDelay reads how long a collector wants to be left alone, of what it says of a call
// that failed: google.rpc.RetryInfo, which is one of the details of a google.rpc.Status. ok
// is false when it says nothing of that.
func retryDelay(details string) (d time.Duration, ok bool) {
	if len(details) > maxReply {
		return 0, false
	}
	status, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(details, "="))
	if err != nil {
		return 0, false
	}
	for len(status) > 0 {
		f, rest, ok := nextField(status)
		if !ok {
			return 0, false
		}
		status = rest
		const detail, name, value = 3, 1, 2
		if f.number != detail || f.wire != wireBytes {
			continue
		}
		of, _ := fieldOf(f.data, name, wireBytes)
		if kind, _ := of.([]byte); !bytes.HasSuffix(kind, []byte("/google.rpc.RetryInfo")) {
			continue
		}
		info, _ := fieldOf(f.data, value, wireBytes)
		inner, _ := info.([]byte)
		wait, _ := fieldOf(inner, 1, wireBytes)
		duration, _ := wait.([]byte)
		seconds, _ := fieldOf(duration, 1, wireVarint)
		nanos, _ := fieldOf(duration, 2, wireVarint)
		s, _ := seconds.(uint64)
		n, _ := nanos.(uint64)
		return min(time.Duration(min(s, 3600))*time.Second+time.Duration(min(n, 999_999_999)), longPause), true
	}
	return 0, false
}
