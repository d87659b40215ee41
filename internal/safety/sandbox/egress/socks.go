package egress

import (
	"bufio"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"io"
	"net/netip"
	"syscall"
)

// The bytes of SOCKS5 (RFC 1928) and of its passwords (RFC 1929).
const (
	socksVersion  = 5
	socksPassword = 1 // version of the exchange of a password

	methodNone     = 0
	methodPassword = 2
	methodNoneFits = 0xff

	cmdConnect = 1

	addrIPv4 = 1
	addrName = 3
	addrIPv6 = 4

	replyDone        = 0
	replyFailed      = 1
	replyNotAllowed  = 2
	replyUnreachable = 4
	replyRefused     = 5
	replyCommand     = 7
	replyAddrType    = 8
)

// errSOCKS is a client that does not speak the protocol.
var errSOCKS = errors.New("this is not SOCKS5")

// serveSOCKS serves a client that has sent the version of SOCKS5.
func (l *link) serveSOCKS(head headReader) {
	if l.greet(head.buf) != nil {
		return
	}
	t, reply, err := readRequest(head.buf)
	if err != nil {
		l.tell(err)
		if reply != replyDone {
			_ = l.reply(reply)
		}
		return
	}
	r, err := l.reach(t, false)
	if err != nil {
		l.tell(err)
		_ = l.reply(replyOf(err))
		return
	}
	if l.reply(replyDone) != nil {
		return
	}
	head.open()
	l.pass(head.buf, r)
}

// greet agrees on how the client signs in, and lets it.
func (l *link) greet(r *bufio.Reader) error {
	var start [2]byte
	if _, err := io.ReadFull(r, start[:]); err != nil {
		return err
	}
	methods := make([]byte, start[1])
	if _, err := io.ReadFull(r, methods); err != nil {
		return err
	}
	token := l.server.cfg.Token
	method := byte(methodNoneFits)
	for _, m := range methods {
		if m == methodNone && token == "" || m == methodPassword && method == methodNoneFits {
			method = m
		}
	}
	if _, err := l.Write([]byte{socksVersion, method}); err != nil || method == methodNone {
		return err
	}
	if method == methodNoneFits {
		return errSOCKS
	}
	password, err := readPassword(r)
	if err != nil {
		return err
	}
	if token != "" && subtle.ConstantTimeCompare(password, []byte(token)) == 0 {
		_, _ = l.Write([]byte{socksPassword, replyFailed})
		return errSOCKS
	}
	_, err = l.Write([]byte{socksPassword, replyDone})
	return err
}

// readPassword reads name and password, of which the name means nothing.
func readPassword(r *bufio.Reader) ([]byte, error) {
	if v, err := r.ReadByte(); err != nil || v != socksPassword {
		return nil, errSOCKS
	}
	var field []byte
	for range 2 {
		n, err := r.ReadByte()
		if err != nil {
			return nil, err
		}
		field = make([]byte, n)
		if _, err := io.ReadFull(r, field); err != nil {
			return nil, err
		}
	}
	return field, nil
}

// readRequest reads what the client wants. With an error, reply is what to tell
// the client, or replyDone where it does not speak the protocol.
func readRequest(r *bufio.Reader) (t target, reply byte, err error) {
	var start [4]byte // version, command, reserved, type of the address
	if _, err := io.ReadFull(r, start[:]); err != nil {
		return target{}, replyDone, err
	}
	if start[0] != socksVersion || start[2] != 0 {
		return target{}, replyDone, errSOCKS
	}
	if start[1] != cmdConnect {
		return target{}, replyCommand, errSOCKS
	}
	size := byte(0)
	switch start[3] {
	case addrIPv4:
		size = 4
	case addrIPv6:
		size = 16
	case addrName:
		if size, err = r.ReadByte(); err != nil {
			return target{}, replyDone, err
		}
	default:
		return target{}, replyAddrType, errSOCKS
	}
	raw := make([]byte, int(size)+2)
	if _, err := io.ReadFull(r, raw); err != nil {
		return target{}, replyDone, err
	}
	host, port := string(raw[:size]), binary.BigEndian.Uint16(raw[size:])
	if start[3] != addrName {
		a, _ := netip.AddrFromSlice(raw[:size])
		host = a.String()
	}
	if t, err = newTarget(host, port); err != nil {
		return target{}, replyNotAllowed, err
	}
	return t, replyDone, nil
}

// reply answers a request. Where the connection comes from is nobody's business.
func (l *link) reply(code byte) error {
	_, err := l.Write([]byte{socksVersion, code, 0, addrIPv4, 0, 0, 0, 0, 0, 0})
	return err
}

func replyOf(err error) byte {
	switch {
	case isRefusal(err):
		return replyNotAllowed
	case errors.Is(err, syscall.ECONNREFUSED):
		return replyRefused
	}
	return replyUnreachable
}
