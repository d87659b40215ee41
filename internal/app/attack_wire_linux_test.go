package app

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/sys/unix"
)

// The addresses of the net: whatever else is dialled leads to the canaries as well.
// The one of names is of the internet, so that a proxy has no reason to refuse it but
// its list.
const (
	canaryNames = "192.0.2.53" // it looks names up: each is at canaryHost
	canaryHost  = "8.8.8.8"
)

// canaryPorts are those of the servers. What knocks at another one shows in traffic.
var canaryPorts = []string{"22", "25", "53", "80", "443", "4444", "8080", "9418"}

// loopNet brings up the loopback device and has every address lead to it.
func loopNet() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo); err != nil {
		return err
	}
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_unprivileged_port_start", []byte("0"), 0); err != nil {
		return err
	}
	loop, err := net.InterfaceByName("lo")
	if err != nil {
		return err
	}
	return errors.Join(everywhere(unix.AF_INET, loop.Index), everywhere(unix.AF_INET6, loop.Index))
}

// everywhere adds a route by which all addresses of a family are this machine's: it
// asks the kernel in the form of netlink(7) and rtnetlink(7).
func everywhere(family byte, device int) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	const size = unix.SizeofNlMsghdr + unix.SizeofRtMsg + unix.SizeofRtAttr + 4
	var m []byte
	m = binary.NativeEndian.AppendUint32(m, size)
	m = binary.NativeEndian.AppendUint16(m, unix.RTM_NEWROUTE)
	m = binary.NativeEndian.AppendUint16(m, unix.NLM_F_REQUEST|unix.NLM_F_CREATE|unix.NLM_F_ACK)
	m = append(m, make([]byte, 8)...) // number of the question, and who asks
	m = append(m, family, 0, 0, 0, unix.RT_TABLE_LOCAL, unix.RTPROT_BOOT, unix.RT_SCOPE_HOST, unix.RTN_LOCAL, 0, 0, 0, 0)
	m = binary.NativeEndian.AppendUint16(m, unix.SizeofRtAttr+4)
	m = binary.NativeEndian.AppendUint16(m, unix.RTA_OIF)
	m = binary.NativeEndian.AppendUint32(m, uint32(device))
	if err := unix.Sendto(fd, m, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	answer := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, answer, 0)
	if err != nil || n < unix.SizeofNlMsghdr+4 {
		return fmt.Errorf("asking for a route: %d bytes, %w", n, err)
	}
	if code := int32(binary.NativeEndian.Uint32(answer[unix.SizeofNlMsghdr:])); code != 0 {
		return fmt.Errorf("asking for a route: %w", unix.Errno(-code))
	}
	return nil
}

// A listening post counts who comes.
type post struct{ visits atomic.Int64 }

// listen opens a server that nobody should reach.
func (p *post) listen(t *testing.T, network, address string) {
	t.Helper()
	ln, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			p.visits.Add(1)
			c.Close()
		}
	}()
	t.Cleanup(func() { ln.Close(); <-done })
}

// answerNames looks every name up.
func answerNames(t *testing.T) {
	t.Helper()
	conn, err := net.ListenPacket("udp", net.JoinHostPort(canaryNames, "53"))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		question := make([]byte, 4096)
		for {
			n, from, err := conn.ReadFrom(question)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(question[:n]) != nil || len(m.Questions) != 1 {
				continue
			}
			m.Response, m.Additionals = true, nil
			if q := m.Questions[0]; q.Type == dnsmessage.TypeA {
				a := dnsmessage.AResource{A: [4]byte(net.ParseIP(canaryHost).To4())}
				m.Answers = []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class}, Body: &a}}
			}
			if answer, err := m.Pack(); err == nil {
				_, _ = conn.WriteTo(answer, from) // who does not listen asks again
			}
		}
	}()
	t.Cleanup(func() { conn.Close(); <-done })
}

// traffic is what the loopback device of the net has seen, as the kernel writes it:
// a single packet to anywhere changes it.
func traffic() string {
	devices, err := os.ReadFile("/proc/self/net/dev")
	if err != nil {
		return err.Error()
	}
	_, lo, _ := strings.Cut(string(devices), "lo:")
	return strings.Join(strings.Fields(lo), " ")
}

// openCanaries opens the servers that the whole net shares.
func openCanaries(t *testing.T) *post {
	t.Helper()
	p := &post{}
	for _, port := range canaryPorts {
		p.listen(t, "tcp", ":"+port)
	}
	p.listen(t, "unix", "@"+canaryAbstract)
	if err := os.MkdirAll(filepath.Dir(canaryDocker), 0o755); err != nil {
		t.Fatal(err)
	}
	p.listen(t, "unix", canaryDocker)
	answerNames(t)
	return p
}

const (
	canaryAbstract = "dure-canary"
	canaryDocker   = "/run/docker.sock"
)
