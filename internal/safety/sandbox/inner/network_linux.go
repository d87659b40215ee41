package inner

import "golang.org/x/sys/unix"

// backlog is how many connections may wait for the program outside.
const backlog = 128

// network brings up the loopback device, and opens a listener on a port of it for
// the program outside: what is connected to it is served there.
func network(port int64) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return failing("opening a socket", err)
	}
	defer func() { _ = unix.Close(fd) }()
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return failing("naming the loopback device", err)
	}
	lo.SetUint16(unix.IFF_UP)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo); err != nil {
		return failing("bringing up the loopback device", err)
	}
	if port == 0 {
		return nil
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Port: int(port), Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return failing("naming the proxy", err)
	}
	if err := unix.Listen(fd, backlog); err != nil {
		return failing("opening the proxy", err)
	}
	return failing("handing out the proxy", report(Listens, nil, fd))
}
